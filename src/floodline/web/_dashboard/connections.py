"""Connections to the dashboard: so many at a time, so many bytes of a request, and a deadline.

On loopback every user of the machine can connect. Whoever says nothing, or too much, or does not
take its answer, makes room for the next, so that the owner always gets in.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import Any, cast

from floodline.recorder._descriptors import Seldom, descriptor_limit

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
except ImportError as error:
    raise ImportError(
        f"the dashboard needs uvicorn ({error}); run: pip install 'floodline[web]'"
    ) from error

STREAM = "/api/live"  # bounded by itself, and slow readers of it are cut off there


@dataclass(slots=True, frozen=True)
class Allowance:
    """What the connections to a dashboard may take."""

    connections: int = 64  # more than there are streams
    head: int = 16 << 10  # bytes of the head of a request; browsers send other servers' cookies too
    request: int = 64 << 10  # bytes that may come between two answers: all is GET, without a body
    seconds: float = 10.0  # for the head of a request, and for a part of the answer to be taken

    @classmethod
    def of_process(cls) -> Allowance:
        """Return an allowance that leaves descriptors for the recorder."""
        return cls(connections=max(8, min(64, descriptor_limit() // 8)))


def bounded_protocol(allowance: Allowance) -> type[H11Protocol]:
    """Return a protocol for uvicorn whose connections keep to the allowance together."""
    oldest_first: dict[Connection, None] = {}

    class Bounded(Connection):
        open_now = oldest_first
        allowed = allowance

    return Bounded


class Connection(H11Protocol):
    """A connection that may have to make room for another."""

    open_now: dict[Connection, None]
    allowed: Allowance

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._received = self._left = 0
        self._late: asyncio.TimerHandle | None = None

    @property
    def _busy(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        return cycle is not None and not cycle.response_complete

    @property
    def _streams(self) -> bool:
        return self._busy and self.scope["path"] == STREAM

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Count a new one in, and let another go for it if there are too many."""
        super().connection_made(transport)
        self.open_now[self] = None
        self._expect()
        if len(self.open_now) > self.allowed.connections:
            self._displace()

    def _displace(self) -> None:
        """Let the oldest go of those that ask for nothing, else of those that are no stream."""
        others = [one for one in self.open_now if one is not self]
        oldest = min(others, key=lambda one: (one._streams, one._busy))
        del self.open_now[oldest]
        oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it out."""
        self.open_now.pop(self, None)
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, unless there has been too much of it."""
        self._received += len(data)
        if self._received > self.allowed.request:
            self.transport.abort()
            return
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._received = 0
        self._expect()
        super().on_response_complete()

    def _expect(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(self.allowed.seconds, self._is_late)

    def _is_late(self) -> None:
        left = self.transport.get_write_buffer_size()
        takes_it = left > 0 and left != self._left
        if self._streams or takes_it or (self._busy and not left):
            self._left = left
            self._expect()
        else:  # it has asked for nothing, or has taken nothing since the last look
            self.transport.abort()


class Server(uvicorn.Server):
    """Says at most once a minute what asyncio would log each second, such as a lack of files."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until it is told to end."""
        seldom = Seldom()

        def report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            if seldom():
                loop.default_exception_handler(context)

        asyncio.get_running_loop().set_exception_handler(report)
        await super().serve(sockets)
