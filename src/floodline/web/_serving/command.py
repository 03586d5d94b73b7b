"""`floodline serve`: listen, and serve in this process or in several."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from floodline.errors import ConfigError
from floodline.web._dashboard.server_thread import listen
from floodline.web._serving.options import Options
from floodline.web._serving.supervisor import Supervisor
from floodline.web._serving.worker import serve_here


def run_service(options: Options, say: Callable[[str], None], *, store: str) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit status. `store` is what may be printed."""
    if options.workers > 1 and not hasattr(os, "fork"):
        raise ConfigError("--workers needs fork, which is missing here; start several services")
    with listen(options.host, options.port) as sock:
        named = f"[{options.host}]" if ":" in options.host else options.host
        scheme = "http" if options.tls_cert is None else "https"
        number = sock.getsockname()[1]
        workers = f", {options.workers} workers" if options.workers > 1 else ""
        words = f"serving {store} at {scheme}://{named}:{number}{workers}; docs at /docs"
        if options.workers > 1:
            say(words)
            return Supervisor(options, sock, say).run()
        return serve_here(options, sock, opened=partial(say, words))
