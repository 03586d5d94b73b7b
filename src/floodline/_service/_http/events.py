"""What happened lately: a bounded list, and a stream for a bounded number of readers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from floodline import telemetry
from floodline._service._refusals import overloaded

MAX_READERS = 16
MAX_WAITING = 100  # events for one slow reader; the oldest are dropped, and it is told how many
HEARTBEAT = 15.0


def _plain(event: telemetry.Event) -> dict[str, Any]:
    fields = {name: str(value)[:500] for name, value in event.fields.items()}
    return {"kind": event.kind, "source": event.source, "at": event.at, "fields": fields}


def recent(limit: int) -> list[dict[str, Any]]:
    """Return the newest events, newest first."""
    return [_plain(event) for event in telemetry.recent()[::-1][:limit]]


class Streams:
    """The open streams, which end when the service drains."""

    def __init__(self) -> None:
        self._readers: set[_Reader] = set()
        self.ended = False

    def __len__(self) -> int:
        return len(self._readers)

    def open(self) -> AsyncIterator[bytes]:
        """Return a new stream, or raise a `Refusal` if there are too many."""
        if len(self._readers) >= MAX_READERS or self.ended:
            raise overloaded(
                f"{MAX_READERS} streams are open, which is the limit.", "overloaded", 10
            )
        return self._lines()

    async def _lines(self) -> AsyncIterator[bytes]:
        # not before the first line is asked for: a stream that never begins never ends either
        reader = _Reader(asyncio.get_running_loop())
        self._readers.add(reader)
        end = telemetry.subscribe(reader.take)
        try:
            yield b": floodline\n\n"
            while not self.ended:
                async for line in reader.lines():
                    yield line
        finally:
            end()
            self._readers.discard(reader)

    def end(self) -> None:
        """End all streams."""
        self.ended = True
        for reader in list(self._readers):
            reader.wake()


class _Reader:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._ready = loop, asyncio.Event()
        self._waiting: deque[telemetry.Event] = deque(maxlen=MAX_WAITING)
        self._dropped = 0

    def take(self, event: telemetry.Event) -> None:
        """Note an event, from any thread."""
        if len(self._waiting) == MAX_WAITING:
            self._dropped += 1
        self._waiting.append(event)
        self._call(self._ready.set)

    def wake(self) -> None:
        self._call(self._ready.set)

    def _call(self, function: Callable[[], object]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield what is waiting, or a sign of life."""
        try:
            await asyncio.wait_for(self._ready.wait(), HEARTBEAT)
        except TimeoutError:
            yield b": still here\n\n"
            return
        self._ready.clear()
        if self._dropped:
            yield b"event: dropped\ndata: %d\n\n" % self._dropped
            self._dropped = 0
        while self._waiting:
            event = self._waiting.popleft()
            yield b"event: %s\ndata: %s\n\n" % (
                event.kind.encode(),
                msgspec.json.encode(_plain(event)),
            )
