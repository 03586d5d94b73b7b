"""What an adapter asks of a store, written once and run blocking or awaited.

A flow is a generator that yields `ask(method, …)` and is sent the answer. The store is called in
any thread and on any event loop, because a flow keeps nothing of either.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, NamedTuple, TypeVar

from floodline.errors import ConfigError
from floodline.stores import MemoryStore, RowStore, open_store

T = TypeVar("T")


class Ask(NamedTuple):
    """One call of the store."""

    method: str
    args: tuple[Any, ...]
    options: dict[str, Any]


class Pause(NamedTuple):
    """A wait before the next call, for what another worker holds."""

    seconds: float


class Give(NamedTuple):
    """A result among several, handed to the caller at once."""

    value: Any


Flow = Generator[Ask | Pause, Any, T]
Stream = Generator[Ask | Pause | Give, Any, None]


def ask(method: str, *args: Any, **options: Any) -> Flow[Any]:
    """Call the store: `answer = yield from ask("load", name, id)`."""
    answer = yield Ask(method, args, options)
    return answer


def pause(seconds: float) -> Flow[None]:
    """Wait: `yield from pause(0.01)`."""
    yield Pause(seconds)


class FlowStore:
    """A store that flows run on; one that was given as a URL is closed with it."""

    def __init__(self, store: RowStore | str | None) -> None:
        self.owned = store is None or isinstance(store, str)
        opened = MemoryStore() if store is None else store
        self._running: set[asyncio.Future[Any]] = set()
        self._store: Any = open_store(opened) if isinstance(opened, str) else opened
        if not isinstance(self._store, RowStore):
            raise ConfigError(
                f"store={store!r} has no row log; give a URL, or a store of floodline.stores"
            )

    def run(self, flow: Flow[T]) -> T:
        """Run a flow and wait for each answer."""
        pump = _Pump(flow)
        while (step := pump.next()) is not None:
            try:
                pump.answer = self._call(step)
            except Exception as error:
                pump.error = error
        result: T = pump.result
        return result

    async def arun(self, flow: Flow[T]) -> T:
        """Run a flow without blocking the event loop."""
        pump = _Pump(flow)
        while (step := pump.next()) is not None:
            try:
                pump.answer = await self._acall(step)
            except Exception as error:
                pump.error = error
        result: T = pump.result
        return result

    async def finish(self, flow: Flow[T]) -> T:
        """Run a flow to its end, also if the caller is cancelled: no lease is left behind."""
        return await asyncio.shield(self._keep(asyncio.ensure_future(self.arun(flow))))

    def stream(self, flow: Stream) -> Iterator[Any]:
        """Run a flow that gives several results."""
        pump = _Pump(flow)
        while (step := pump.next()) is not None:
            if isinstance(step, Give):
                yield step.value
            else:
                pump.answer = self._call(step)

    async def astream(self, flow: Stream) -> AsyncIterator[Any]:
        """Run a flow that gives several results, without blocking the event loop."""
        pump = _Pump(flow)
        while (step := pump.next()) is not None:
            if isinstance(step, Give):
                yield step.value
            else:
                pump.answer = await self._acall(step)

    def close(self) -> None:
        """Close the store if it was given as a URL, or not at all."""
        if self.owned:
            self._store.close()

    def _keep(self, task: asyncio.Future[T]) -> asyncio.Future[T]:
        self._running.add(task)  # the event loop holds tasks weakly
        task.add_done_callback(self._running.discard)
        return task

    def _call(self, step: Ask | Pause) -> Any:
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        return getattr(self._store, step.method)(*step.args, **step.options)

    async def _acall(self, step: Ask | Pause) -> Any:
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        return await getattr(self._store.aio, step.method)(*step.args, **step.options)


class _Pump:
    """A flow and what it is to be sent next: an answer, or the error of the call."""

    def __init__(self, flow: Generator[Any, Any, Any]) -> None:
        self._flow = flow
        self.answer: Any = None
        self.error: Exception | None = None
        self.result: Any = None

    def next(self) -> Any:
        """Return the next step, None at the end."""
        answer, error = self.answer, self.error
        self.answer = self.error = None
        try:
            return self._flow.send(answer) if error is None else self._flow.throw(error)
        except StopIteration as end:
            self.result = end.value
            return None
