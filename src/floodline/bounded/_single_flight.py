"""One creation for all concurrent requests of a key, across threads and event loops."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from threading import Lock, get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from floodline._callables import takes_key
from floodline._error_copies import twin_of
from floodline.errors import CreationCycle

if TYPE_CHECKING:
    import asyncio

V = TypeVar("V")


class Creation:
    """Marks, in a factory's context, what it is creating; it holds no value."""

    __slots__ = ("waits_for",)

    def __init__(self) -> None:
        self.waits_for: Creation | None = None


_creating: ContextVar[tuple[Creation, ...]] = ContextVar("floodline_creating", default=())


class Flight(Generic[V]):
    """A creation under way. Each waiter leaves a waker, which is called once.

    Lock-free: a waiter leaves its waker first and then looks at `done`; the outcome is written
    first and then the wakers are called.
    """

    __slots__ = (
        "_traceback",
        "_wakers",
        "abandoned",
        "cancel",
        "creation",
        "done",
        "error",
        "led_by",
        "value",
        "waiters",
    )

    def __init__(self) -> None:
        self.creation = Creation()
        self.led_by = get_ident()
        self.done = self.abandoned = False
        self.error: Exception | None = None
        self._traceback: TracebackType | None = None
        self.value: V | None = None
        self.waiters = 0
        self.cancel: Callable[[], object] | None = None  # set if a task creates it
        self._wakers: deque[Callable[[], object]] = deque()

    def land(self, value: V) -> None:
        """Give the value to all waiters."""
        self.value = value
        self._finish()

    def fail(self, error: Exception | None) -> None:
        """Give the error to all waiters; None lets one of them try next."""
        self.error = error
        self._traceback = None if error is None else error.__traceback__
        self.abandoned = error is None
        self._finish()

    def wake(self, waker: Callable[[], object]) -> None:
        """Call `waker` when the outcome is there, possibly at once."""
        self._wakers.append(waker)
        if self.done:
            self._call_wakers()

    def wait(self) -> None:
        """Block until the outcome is there."""
        with self.no_ring(get_ident()):
            gate = Lock()
            gate.acquire()
            self.wake(gate.release)
            gate.acquire()

    async def wait_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait in a coroutine; the last one to be cancelled cancels the creation."""
        future: asyncio.Future[None] = loop.create_future()
        with self.no_ring(get_ident() if self.cancel is None else None):
            self.wake(partial(_resolve_in, loop, future))
            try:
                await future
            except BaseException:
                self.waiters -= 1
                if self.waiters == 0 and self.cancel is not None:
                    self.cancel()
                raise

    @contextmanager
    def no_ring(self, thread: int | None) -> Iterator[None]:
        """Raise rather than wait forever for ourselves, directly or through other waiters."""
        mine = _creating.get()
        if mine:
            mine[-1].waits_for = self.creation
        try:
            other: Creation | None = self.creation
            while other is not None and other not in mine:
                other = other.waits_for
            if other is not None or thread == self.led_by:
                raise CreationCycle(
                    "the factory for this key waits for the same key, or this call would block the "
                    "event loop that creates it; ask for other keys only, or await aget_or_create"
                )
            yield
        finally:
            if mine:
                mine[-1].waits_for = None

    def outcome(self) -> V:
        """Return the value, or raise an error like the creator's."""
        if self.error is not None:
            try:
                raise twin_of(self.error, self._traceback)
            finally:
                del self  # the traceback holds this frame: no cycle
        return self.value  # type: ignore[return-value]  # set by `land`; None may be a value

    def _finish(self) -> None:
        self.done = True
        self._call_wakers()

    def _call_wakers(self) -> None:
        while self._wakers:
            try:
                waker = self._wakers.popleft()
            except IndexError:  # another thread was faster
                return
            waker()


class Home(Protocol[V]):
    """The map that wants the value."""

    def _recover(self, key: Any) -> V: ...

    def __setitem__(self, key: Any, value: V) -> None: ...


class Flights(Generic[V]):
    """The creations under way of one map."""

    __slots__ = ("_flying", "_missing")

    def __init__(self, missing: object) -> None:
        self._missing = missing
        self.reset()

    def reset(self) -> None:
        """Forget what was under way, in a forked child."""
        self._flying: dict[Any, Flight[V]] = {}

    def __len__(self) -> int:
        return len(self._flying)

    def fetch(self, home: Home[V], key: Any, factory: Callable[..., V]) -> V:
        """Create the value, or wait for the caller that is creating it."""
        while True:
            mine: Flight[V] = Flight()
            flight = self._flying.setdefault(key, mine)
            try:
                if flight is mine:
                    return self._lead(home, key, mine, factory)
                flight.waiters += 1
                flight.wait()
                if not flight.abandoned:
                    return flight.outcome()
            finally:
                del mine, flight  # an error's traceback holds this frame: no cycle

    def _lead(self, home: Home[V], key: Any, flight: Flight[V], factory: Callable[..., V]) -> V:
        context = _creating.set((*_creating.get(), flight.creation))
        try:
            value = home._recover(key)
            if value is self._missing:
                value = factory(key) if takes_key(factory) else factory()
                home[key] = value
        except BaseException as error:
            self._fail(key, flight, error)
            raise
        else:
            self._flying.pop(key, None)
            flight.land(value)
            return value
        finally:
            _creating.reset(context)
            del flight

    async def afetch(self, home: Home[V], key: Any, factory: Callable[..., V | Awaitable[V]]) -> V:
        """Like `fetch`, for coroutines: a separate task creates the value."""
        from asyncio import get_running_loop  # only callers with a loop pay for the import

        loop = get_running_loop()
        while True:
            mine: Flight[V] = Flight()
            flight = self._flying.setdefault(key, mine)
            try:
                if flight is mine:
                    task = loop.create_task(self._alead(home, key, mine, factory))
                    mine.cancel = partial(loop.call_soon_threadsafe, task.cancel)
                flight.waiters += 1
                await flight.wait_in(loop)
                if not flight.abandoned:
                    return flight.outcome()
            finally:
                del mine, flight

    async def _alead(
        self, home: Home[V], key: Any, flight: Flight[V], factory: Callable[..., V | Awaitable[V]]
    ) -> None:
        _creating.set((*_creating.get(), flight.creation))
        try:
            value = home._recover(key)
            if value is self._missing:
                made = factory(key) if takes_key(factory) else factory()
                value = await made if inspect.isawaitable(made) else made
                home[key] = value
        except BaseException as error:
            self._fail(key, flight, error)
            if not isinstance(error, Exception):
                raise
        else:
            self._flying.pop(key, None)
            flight.land(value)
        finally:
            del flight

    def _fail(self, key: Any, flight: Flight[V], error: BaseException) -> None:
        self._flying.pop(key, None)
        flight.fail(error if isinstance(error, Exception) else None)


def _resolve_in(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    with suppress(RuntimeError):  # that waiter's loop is closed
        loop.call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
