"""One process that serves: uvicorn with bounded connections, and a drain in two steps."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn

from floodline._service import make_service
from floodline._service._http.service import Service
from floodline._service._metrics import Board
from floodline.web._dashboard.connections import Allowance, Server, bounded_protocol
from floodline.web._serving.access_log import logging_lines
from floodline.web._serving.dashboard import dashboard_routes
from floodline.web._serving.options import Options

HEAD = 16 << 10
SECONDS = 20.0  # for the head of a request, and between two parts of an answer
KEEP_ALIVE = 15  # longer than clients keep theirs, so that they are the ones to close


class DrainingServer(Server):
    """Turns not ready at the first SIGTERM, stops listening a little later, then ends.

    Ctrl-C skips the wait; so does a second signal. It ends as well when its supervisor is gone.
    """

    def __init__(self, config: uvicorn.Config, service: Service, parent: int | None) -> None:
        super().__init__(config)
        self._service, self._parent = service, parent
        self._stopping: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def stopping(self) -> bool:
        """True if it was told to end, perhaps before it had begun."""
        return self._service.draining

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's
        """Begin to drain; called by a signal, or by a test."""
        if self._service.draining or sig == signal.SIGINT or self._loop is None:
            self.force_exit = self.should_exit and sig == signal.SIGINT
            self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._drain)
        else:
            self._service.drain()

    def _drain(self) -> None:
        self._service.drain()
        if self._stopping is None and self._loop is not None:
            self._stopping = self._loop.call_later(self._service.limits.drain, self._stop)

    def _stop(self) -> None:
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Look ten times a second whether to end."""
        if self._parent is not None and os.getppid() != self._parent:
            self._service.drain()
            self.should_exit = True
        return await super().on_tick(counter)


def make_server(
    options: Options, board: Board | None = None, *, parent: int | None = None
) -> DrainingServer:
    """Return a server that has opened its store and waits for a socket."""
    limits = options.limits
    app = make_service(limits, options.tenants, options.door, board=board, extra=dashboard_routes)
    allowance = Allowance(
        connections=limits.max_connections,
        head=HEAD,
        request=limits.max_body + 4 * HEAD,
        seconds=SECONDS,
    )
    config = uvicorn.Config(
        app,
        access_log=False,
        backlog=min(2048, 2 * allowance.connections),
        h11_max_incomplete_event_size=allowance.head,
        http=bounded_protocol(allowance),
        lifespan="on",
        log_config=None,
        log_level="error",
        loop="asyncio",
        proxy_headers=False,  # `Guard` reads the one that it needs
        server_header=False,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=None if options.tls_key is None else str(options.tls_key),
        timeout_graceful_shutdown=max(1, int(limits.grace)),
        timeout_keep_alive=KEEP_ALIVE,
        ws="none",
    )
    return DrainingServer(config, app.state.service, parent)


def serve_here(
    options: Options,
    sock: socket.socket,
    board: Board | None = None,
    *,
    parent: int | None = None,
    opened: Callable[[], None] | None = None,
) -> int:
    """Serve until told to end; return the exit status. `opened` is called if the store can be."""
    with logging_lines(access=options.access_log):
        server = make_server(options, board, parent=parent)
        if opened is not None:
            opened()
        server.run(sockets=[sock])
    sys.stdout.flush()
    return 0 if server.started or server.stopping else 3
