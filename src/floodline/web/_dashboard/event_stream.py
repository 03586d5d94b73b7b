"""The state as a stream of server-sent events, for a bounded number of readers."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Protocol

from floodline.recorder._snapshot import Points, Snapshot
from floodline.web._words.advice import advice

LOOK = 1.0  # longest wait for a newer state, in seconds
QUIET = 15.0  # seconds without news before a reader gets a keep-alive
MOST_POINTS = 60  # of each process in the stream
HELD = 60.0  # seconds after which a reader gives its place to one that finds none
STALLED = 30.0  # seconds after which a reader that accepts nothing is dropped

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Source(Protocol):
    """What can be watched: a recorder, or anything with its interface."""

    @property
    def version(self) -> int:
        """A number that rises with each new state."""
        ...

    def state(self) -> Snapshot:
        """Return the newest state; safe from any thread."""
        ...

    def wait(self, version: int, timeout: float) -> int:
        """Block until there is a newer state than `version`, or for `timeout` seconds."""
        ...


class Live:
    """Encodes each state once for all readers; a slow reader skips to the newest.

    Nothing is queued: a reader holds at most the event it is receiving, and without readers
    nothing is encoded. At `limit` readers the next is refused, unless the oldest has been there for
    a minute: nobody can keep all places for good, and a page that is dropped reconnects.
    """

    def __init__(
        self,
        source: Source,
        *,
        limit: int = 16,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self.limit = limit
        self._clock = clock
        self._places: dict[asyncio.Future[None], float] = {}  # since when, oldest first
        self.closed = False
        self._version = -1
        self._event = b""
        self._news = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def _stopped(self) -> bool:
        """Return True if nothing more will come: the source raised, and readers must reconnect."""
        return self._pump is None or self._pump.done()

    @property
    def readers(self) -> int:
        """How many have a place."""
        return len(self._places)

    def make_room(self) -> bool:
        """Return True if there is a place for another reader, if need be that of the oldest."""
        if self.readers < self.limit:
            return True
        oldest, since = next(iter(self._places.items()), (None, 0.0))
        if oldest is None or self._clock() - since < HELD:
            return False
        del self._places[oldest]
        oldest.cancel()  # treated as a reader that has left
        return True

    def close(self) -> None:
        """End all streams after the newest state; safe from any thread, and repeatedly."""
        if self._loop is None:
            self.closed = True
            return
        with suppress(RuntimeError):  # the loop has ended, and so have the streams
            self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        self.closed = True
        self._publish(self.source.version)

    async def stream(self, receive: Receive, send: Send) -> None:
        """Send events until the reader leaves or stalls, or the stream is closed."""
        gone = asyncio.ensure_future(_gone(receive))
        self._places[gone] = self._clock()
        self._start_pump()
        try:
            sent, more = -1, True
            while more:
                sent, event = await self._next(sent, gone)
                more = not (self.closed or gone.done() or self._stopped)
                part = {"type": "http.response.body", "body": event, "more_body": more}
                await asyncio.wait_for(send(part), STALLED)
        except (TimeoutError, OSError):
            pass  # it stalled, or left while we were sending
        finally:
            gone.cancel()
            self._places.pop(gone, None)

    async def _next(self, sent: int, gone: asyncio.Future[None]) -> tuple[int, bytes]:
        if (self._version == sent or not self._event) and not (self.closed or self._stopped):
            waiting: asyncio.Future[Any] = asyncio.ensure_future(self._news.wait())
            try:
                await asyncio.wait(
                    {waiting, gone}, timeout=QUIET, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                waiting.cancel()
        if self._version == sent or not self._event:
            return sent, b": nothing new\n\n"
        return self._version, self._event

    def _start_pump(self) -> None:
        if self._stopped:
            self._event = b""  # from earlier readers: stale by now
            self._loop = asyncio.get_running_loop()
            self._pump = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        """Follow the source while there are readers; in a thread, because its wait blocks."""
        self._publish(self.source.version)
        try:
            while self.readers and not self.closed:
                version = await asyncio.to_thread(self.source.wait, self._version, LOOK)
                if version != self._version:
                    self._publish(version)
        finally:
            self._announce()

    def _publish(self, version: int) -> None:
        self._event = (
            b"event: state\ndata: " + encode(served(thinned(self.source.state()))) + b"\n\n"
        )
        self._version = version
        self._announce()

    def _announce(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def served(state: Snapshot) -> dict[str, Any]:
    """Return the state with what to do next, as the report says it."""
    said: dict[str, Any] = {**state}
    with suppress(LookupError):  # a source of another kind, which lacks what advice needs
        said["next"] = [{"says": step.says, "code": step.code} for step in advice(state)]
    return said


def thinned(state: Snapshot) -> Snapshot:
    """Return the state with fewer points of each process: hundreds of workers have many."""
    return {
        **state,
        "processes": [{**each, "points": _spread(each["points"])} for each in state["processes"]],
    }


def _spread(points: Points) -> Points:
    """Keep the newest and as many others as fit, evenly."""
    step = -(-len(points) // MOST_POINTS) or 1
    return list(points[::-1][::step][::-1])


def encode(state: Mapping[str, Any]) -> bytes:
    """Return the state as JSON in one line; a number that JSON lacks becomes null."""
    try:
        text = json.dumps(state, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(state), allow_nan=False, separators=(",", ":"))
    return text.encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
