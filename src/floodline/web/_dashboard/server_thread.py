"""Runs an app on a thread of this process."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from threading import Thread
from urllib.parse import quote

from floodline.errors import ServeFailed

try:
    import uvicorn
    from starlette.applications import Starlette

    from floodline.web._dashboard.connections import Allowance, Server, bounded_protocol
except ImportError as error:
    raise ImportError(
        f"the dashboard needs uvicorn ({error}); run: pip install 'floodline[web]'"
    ) from error

PORT = 7357
TRIES = 20


@dataclass(slots=True, frozen=True)
class Serving:
    """A running server: `url` is where it answers; `close()` ends it and its streams."""

    url: str
    host: str
    port: int
    _app: Starlette
    _server: uvicorn.Server
    _thread: Thread

    def address(self, token: str | None = None) -> str:
        """Return the address to open: the url, with the token if there is one."""
        return f"{self.url}/?token={quote(token, safe='')}" if token else f"{self.url}/"

    def close(self, timeout: float = 5.0) -> None:
        """Stop serving and wait for it, at most `timeout` seconds; a second call does nothing."""
        self._app.state.live.close()
        self._server.should_exit = True
        self._thread.join(timeout)


def serve(
    app: Starlette,
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    sock: socket.socket | None = None,
    allowance: Allowance | None = None,
) -> Serving:
    """Serve an app on a daemon thread, from now on.

    Port 0 is any free one, None the usual one or the next free one. A requested port that is taken
    raises `ServeFailed`. `sock` is what `listen(host, port)` returned before; `allowance` bounds
    what strangers can take.
    """
    sock = sock or listen(host, port)
    allowance = allowance or Allowance.of_process()
    number: int = sock.getsockname()[1]
    config = uvicorn.Config(
        app,
        access_log=False,
        backlog=2 * allowance.connections,  # asyncio accepts as many in one go
        h11_max_incomplete_event_size=allowance.head,
        http=bounded_protocol(allowance),
        lifespan="off",
        log_config=None,  # logging is up to the program
        log_level="error",
        loop="asyncio",
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    server = Server(config)
    thread = Thread(target=_run, args=(server, sock), name="floodline-web", daemon=True)
    thread.start()
    named = f"[{host}]" if ":" in host else host
    return Serving(f"http://{named}:{number}", host, number, app, server, thread)


def _run(server: uvicorn.Server, sock: socket.socket) -> None:
    with sock:  # a server stopped while starting leaves it open
        server.run(sockets=[sock])


def listen(host: str, port: int | None) -> socket.socket:
    """Listen on a port as `serve` does; clients wait until there is an app to answer them."""
    if port is not None:
        return _bind(host, port)
    for number in range(PORT, PORT + TRIES):
        try:
            return _bind(host, number)
        except ServeFailed as error:
            if not _taken(error.__cause__):
                raise
    return _bind(host, 0)


def _bind(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise ServeFailed(f"port {port} is not between 0 and 65535; give another --port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.create_server((host, port), family=family)
        # connections inherit it where asyncio does not set it; without it, each answer written in
        # two parts waits 40 ms for an acknowledgement
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
    except OSError as error:
        if _taken(error):
            why = "is taken; give another --port, or 0 for any free one"
        else:
            why = f"cannot be listened on ({error}); give another --port or --host"
        raise ServeFailed(f"port {port} of {host} {why}") from error


def _taken(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE
