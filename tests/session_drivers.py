"""Both drivers of sessions behind one face, so that a promise is tested once for the two.

A scenario is a coroutine that gets a driver and waits through it only. On asyncio it runs as it
is. On threads nothing in it ever suspends: what it awaits blocks, and what it spawns is a thread.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

import event_loops
import worker_threads
from event_loops import assert_balanced
from floodline import AsyncSessions, Reason, Sessions
from floodline._callables import takes_key
from worker_threads import PATIENCE, Faulty, Worker

Scenario = Coroutine[Any, Any, Any]


class Gate:
    """Closed until somebody opens it; user code of any kind can wait for that."""

    def __init__(self, until: Callable[[Callable[[], object]], Awaitable[None]]) -> None:
        self._until = until
        self._event = threading.Event()
        self.reached = False

    def open(self) -> None:
        self._event.set()

    def is_open(self) -> bool:
        return self._event.is_set()

    async def passed(self) -> None:
        """Wait inside a scenario, or a hook of one."""
        self.reached = True
        await self._until(self.is_open)

    def block(self) -> None:
        """Wait in a thread that no event loop runs on."""
        self.reached = True
        assert self._event.wait(PATIENCE)


class Holder:
    """Somebody else who holds a session; its state is known while it does."""

    state: Any = None
    _job: Any = None

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._held, self._stop = driver.gate(), driver.gate()

    async def hold(self, sessions: Any, id: str, **how: Any) -> None:
        async with sessions.use(id, **how) as self.state:
            self._held.open()
            await self._stop.passed()
            self.state = None

    async def take(self, sessions: Any, id: str, **how: Any) -> None:
        self._job = self._driver.spawn(functools.partial(self.hold, sessions, id, **how))
        await self._driver.until(lambda: self._held.is_open() or self._job.done())
        if not self._held.is_open():
            await self._job.result()

    async def release(self) -> None:
        """Have it let go, and raise what it was told."""
        if self._job is not None:
            self._stop.open()
            job, self._job = self._job, None
            await job.result()

    async def error(self) -> BaseException | None:
        """Have it let go, and return what it was told."""
        self._stop.open()
        job, self._job = self._job, None
        told: BaseException | None = await job.error()
        return told


class Driver:
    """What a scenario needs beside its sessions; see `Threads` and `Asyncio`."""

    kind: str
    place: str  # of the frame that takes a hold, as a stack shows it

    def run(self, scenario: Scenario) -> Any:
        """Run a scenario to its end."""
        raise NotImplementedError

    def sessions(self, factory: Any = None, **options: Any) -> Any:
        """Make sessions whose calls are awaited."""
        raise NotImplementedError

    def spawn(self, work: Callable[..., Scenario], *args: Any) -> Any:
        """Have something done at the same time; see `Job`."""
        raise NotImplementedError

    async def until(self, condition: Callable[[], object]) -> None:
        """Let others run until `condition` holds."""
        raise NotImplementedError

    async def settle(self, sessions: Any) -> None:
        """Wait until nothing of the sessions is under way."""
        raise NotImplementedError

    async def renew(self, sessions: Any) -> None:
        """Renew the leases, as the driver does at each third of one."""
        raise NotImplementedError

    def hook(self, function: Callable[..., Scenario]) -> Any:
        """Make a factory, hook or finalizer of the driver's own kind from a coroutine function."""
        raise NotImplementedError

    def gate(self) -> Gate:
        return Gate(self.until)

    async def waiting(self, sessions: Any, number: int) -> None:
        """Let others run until so many wait."""
        await self.until(lambda: sessions.stats().waiting == number)

    async def balanced(self, sessions: Any) -> None:
        """Nothing is under way, and every figure agrees with the entries."""
        await self.settle(sessions)
        assert_balanced(sessions)

    @asynccontextmanager
    async def holding(self, sessions: Any, id: str, **how: Any) -> AsyncIterator[Holder]:
        """Have somebody else hold a session during the block."""
        holder = Holder(self)
        await holder.take(sessions, id, **how)
        try:
            yield holder
        finally:
            await holder.release()
            await self.settle(sessions)


# ---- threads


def finish(scenario: Scenario) -> Any:
    """Run a coroutine that never suspends."""
    try:
        scenario.send(None)
    except StopIteration as end:
        return end.value
    scenario.close()
    raise AssertionError("a scenario waits through its driver only")


class ThreadJob:
    """A thread under way."""

    def __init__(self, work: Callable[..., Scenario], *args: Any) -> None:
        self._worker = Worker(lambda: finish(work(*args)))

    def done(self) -> bool:
        return not self._worker.running()

    async def result(self) -> Any:
        return self._worker.result()

    async def error(self) -> BaseException | None:
        return self._worker.wait().error


class BlockingUse:
    """A `Use` that is entered with `async with`."""

    def __init__(self, use: Any) -> None:
        self.__dict__["_use"] = use

    def __getattr__(self, name: str) -> Any:
        return getattr(self._use, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._use, name, value)

    async def __aenter__(self) -> Any:
        return self._use.__enter__()

    async def __aexit__(self, *error: Any) -> Any:
        return self._use.__exit__(*error)

    async def save(self) -> None:
        self._use.save()


class BlockingSessions:
    """`Sessions` whose calls are awaited; they block."""

    def __init__(self, sessions: Sessions[Any]) -> None:
        self.blocking = sessions

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.blocking, name)
        if name not in ("close", "complete", "park", "shed", "shutdown", "sweep"):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            return found(*args, **kwargs)

        return call

    def use(self, *args: Any, **kwargs: Any) -> BlockingUse:
        return BlockingUse(self.blocking.use(*args, **kwargs))

    def __len__(self) -> int:
        return len(self.blocking)

    def __contains__(self, id: object) -> bool:
        return id in self.blocking

    def __repr__(self) -> str:
        return repr(self.blocking)

    async def __aenter__(self) -> BlockingSessions:
        return self

    async def __aexit__(self, *error: Any) -> None:
        self.blocking.__exit__(*error)


class Threads(Driver):
    kind = "threads"
    place = "in __aenter__\n"  # of `BlockingUse`

    def run(self, scenario: Scenario) -> Any:
        return finish(scenario)

    def sessions(self, factory: Any = None, **options: Any) -> Any:
        return BlockingSessions(Sessions(factory, **options))

    def spawn(self, work: Callable[..., Scenario], *args: Any) -> ThreadJob:
        return ThreadJob(work, *args)

    async def until(self, condition: Callable[[], object]) -> None:
        worker_threads.until(condition)

    async def settle(self, sessions: Any) -> None:
        """Whoever calls does the work, so nothing is under way behind it."""

    async def renew(self, sessions: Any) -> None:
        sessions._renew_tick()

    def hook(self, function: Callable[..., Scenario]) -> Any:
        def with_an_id(id: str) -> Any:  # sessions look whether a factory asks for it
            return finish(function(id))

        def with_any(*args: Any) -> Any:
            return finish(function(*args))

        alone = len(inspect.signature(function).parameters) == 1
        return with_an_id if alone and takes_key(function) else with_any


# ---- asyncio


class TaskJob:
    """A task under way."""

    def __init__(self, work: Callable[..., Scenario], *args: Any) -> None:
        self._task = asyncio.create_task(work(*args))

    def done(self) -> bool:
        return self._task.done()

    async def result(self) -> Any:
        return await self._task

    async def error(self) -> BaseException | None:
        (answer,) = await event_loops.gather_all(self._task)
        return answer if isinstance(answer, BaseException) else None


class Asyncio(Driver):
    kind = "asyncio"
    place = "in hold\n"  # of `Holder`

    def run(self, scenario: Scenario) -> Any:
        async def main() -> Any:
            return await scenario

        return event_loops.run_clean(main)

    def sessions(self, factory: Any = None, **options: Any) -> Any:
        return AsyncSessions(factory, **options)

    def spawn(self, work: Callable[..., Scenario], *args: Any) -> TaskJob:
        return TaskJob(work, *args)

    async def until(self, condition: Callable[[], object]) -> None:
        await event_loops.until(condition)

    async def settle(self, sessions: Any) -> None:
        await event_loops.settle(sessions)

    async def renew(self, sessions: Any) -> None:
        sessions._driver._renew()
        await event_loops.settle(sessions)

    def hook(self, function: Callable[..., Scenario]) -> Any:
        return function


DRIVERS: dict[str, Callable[[], Driver]] = {"threads": Threads, "asyncio": Asyncio}


# ---- stores


class FaultyStore(Faulty):
    """A store that fails and waits on demand; `given` is what the sessions get of it."""

    aio: Any = None

    def __init__(self, store: Any = None, kind: str = "blocking") -> None:
        super().__init__(store)
        self.gates: dict[str, Gate] = {}
        self.entering = self._block
        self.threads: set[int] = set()
        self.given: Any = AwaitedStore(self) if kind == "awaited" else self
        if kind == "twin":  # both kinds of calls, as ours have
            self.aio = AwaitedStore(self)

    def _block(self, method: str) -> None:
        self.threads.add(threading.get_ident())
        if method in self.gates:
            self.gates[method].block()


class AwaitedStore:
    """A user's own `AsyncStore`: every call is a coroutine, and there is no other."""

    def __init__(self, faulty: FaultyStore) -> None:
        self._faulty = faulty

    def __getattr__(self, method: str) -> Any:
        if method in ("aio", "is_writer_thread"):
            raise AttributeError(method)

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0)
            if method in self._faulty.gates:
                await self._faulty.gates[method].passed()
            answer = getattr(self._faulty, method)(*args, **kwargs)
            await asyncio.sleep(0)
            return answer

        return awaited

    async def acquire(self, *args: Any, **kwargs: Any) -> Any:
        return await self.__getattr__("acquire")(*args, **kwargs)


# ---- what scenarios share


class Left(list[tuple[str, Any, str]]):
    """An `on_leave` that remembers."""

    def __call__(self, id: str, state: Any, reason: Reason) -> None:
        self.append((id, state, str(reason)))

    def reasons(self) -> list[str]:
        return [reason for _, _, reason in self]


class Owner:
    """Something that can die."""


async def use_once(sessions: Any, id: str, how: dict[str, Any] | None = None, **change: Any) -> Any:
    """Use a session, change it, and return its state."""
    async with sessions.use(id, **(how or {})) as state:
        if change:
            state.update(change)
        return state


async def refused(
    sessions: Any, id: str, kind: type[Exception], *, match: str | None = None, **how: Any
) -> Any:
    """Use a session and be refused; return the error."""
    with pytest.raises(kind, match=match) as caught:
        async with sessions.use(id, **how):
            raise AssertionError("it was let in")
    return caught.value
