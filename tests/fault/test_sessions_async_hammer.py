"""200 tasks and 16 threads hammer 50 sessions on one SQLite store that fails at random."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from event_loops import PATIENCE, assert_balanced, gather_all, own_tasks
from floodline import AsyncSessions, Reason, Sessions
from floodline.errors import (
    SaveFailed,
    SessionBusy,
    SessionClosed,
    SessionConflict,
    SessionsFull,
    StoreUnavailable,
)
from floodline.stores import SQLiteStore

TASKS, THREADS, SECONDS, SEATS = 200, 16, 2.5, 20
ENOUGH = 500  # updates; until then it goes on, however slow the machine is
KEPT = [f"kept-{n}" for n in range(40)]  # never closed, so no update may be missing
CLOSED = [f"closed-{n}" for n in range(10)]
EXPECTED = (
    SaveFailed,
    SessionBusy,
    SessionClosed,
    SessionConflict,
    SessionsFull,
    StoreUnavailable,
    ZeroDivisionError,
)


class Moody:
    """A store that raises before or after a call, now and then; `aio` is as moody."""

    def __init__(self, inner: Any, chance: random.Random, *, awaited: bool = False) -> None:
        self._inner, self._chance, self._awaited = inner, chance, awaited
        self.calm = False
        if not awaited:
            self.aio = Moody(inner.aio, chance, awaited=True)

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._inner, method)
        if method == "is_writer_thread":
            return call

        def mood() -> float:
            return 1.0 if self.calm else self._chance.random()

        def blocking(*args: Any, **kwargs: Any) -> Any:
            if mood() < 0.01:
                raise StoreUnavailable(f"{method}: nothing was done")
            answer = call(*args, **kwargs)
            if mood() < 0.01:
                raise StoreUnavailable(f"{method}: the answer was lost")
            return answer

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            if mood() < 0.01:
                raise StoreUnavailable(f"{method}: nothing was done")
            answer = await call(*args, **kwargs)
            if mood() < 0.01:
                raise StoreUnavailable(f"{method}: the answer was lost")
            return answer

        return awaited if self._awaited else blocking


class Unhurried:
    """A clock for leases that a stall of the machine does not move: a lease lasts for its work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now, self._seen = 1000.0, time.monotonic()

    def __call__(self) -> float:
        with self._lock:
            real = time.monotonic()
            self._now += min(real - self._seen, 0.02)
            self._seen = real
            return self._now


class Ledger:
    """What was acknowledged, who is inside, and what went wrong; for tasks and threads alike."""

    def __init__(self, seconds: float) -> None:
        self._lock = threading.Lock()
        self._end = time.monotonic() + seconds
        self._inside: dict[str, str] = {}
        self._live: Counter[tuple[str, str]] = Counter()
        self._tokens = 0
        self.acknowledged: dict[str, list[int]] = {}
        self.wrong: list[str] = []
        self.together = 0
        self.errors: Counter[str] = Counter()

    def is_over(self) -> bool:
        return time.monotonic() >= self._end and self.updates() > ENOUGH

    def updates(self) -> int:
        with self._lock:
            return sum(map(len, self.acknowledged.values()))

    def come(self, key: str, me: str) -> None:
        with self._lock:
            if key in self._inside:  # a lease may end with an answer that was lost; a fence cannot
                self.together += 1
            self._inside[key] = me

    def go(self, key: str) -> None:
        with self._lock:
            self._inside.pop(key, None)

    def token(self) -> int:
        with self._lock:
            self._tokens += 1
            return self._tokens

    def acknowledge(self, key: str, token: int) -> None:
        with self._lock:
            self.acknowledged.setdefault(key, []).append(token)

    def live(self, owner: str, key: str, step: int) -> None:
        with self._lock:
            self._live[owner, key] += step
            if not 0 <= self._live[owner, key] <= 1:
                self.wrong.append(f"{self._live[owner, key]} live objects of {key} at {owner}")

    def all_gone(self) -> bool:
        return not any(self._live.values())

    def check_bounds(self, sessions: Any) -> None:
        live = sessions.stats().items
        if live > SEATS:
            self.wrong.append(f"{live} of {SEATS} sessions are live")

    def failed(self, error: BaseException) -> None:
        with self._lock:
            self.errors[type(error).__name__] += 1
            if not isinstance(error, EXPECTED):
                self.wrong.append(repr(error))


def hooks(ledger: Ledger, owner: str, chance: random.Random) -> dict[str, Any]:
    def on_leave(key: str, state: Any, reason: Reason) -> None:
        ledger.live(owner, key, -1)
        if chance.random() < 0.1:
            raise ZeroDivisionError("on_leave")

    def on_open(key: str, state: Any) -> None:
        if chance.random() < 0.02:
            raise ZeroDivisionError("on_open")
        ledger.live(owner, key, +1)

    return {"on_open": on_open, "on_leave": on_leave}


def awaited(hook: Callable[..., None]) -> Callable[..., Any]:
    async def call(*args: Any) -> None:
        await asyncio.sleep(0)
        hook(*args)

    return call


def arguments(store: Any) -> dict[str, Any]:
    return {
        "store": store,
        "name": "hammered",
        "max_sessions": SEATS,
        "wait": 5,
        "busy_wait": 5,
        "lease": 3,
        "sweep_every": 0.1,
    }


async def work_as_task(sessions: AsyncSessions[Any], ledger: Ledger, chance: random.Random) -> None:
    while not ledger.is_over():
        key = chance.choice(KEPT if chance.random() < 0.8 else CLOSED)
        what = chance.random()
        try:
            async with asyncio.timeout(chance.random() / 50 if chance.random() < 0.2 else None):
                if what < 0.8:
                    await use_as_task(sessions, ledger, chance, key)
                elif what < 0.87:
                    await sessions.park(key)
                elif what < 0.94:
                    await sessions.complete(key)
                elif key in CLOSED:
                    await sessions.close(key)
                else:
                    await sessions.sweep()
        except TimeoutError as error:
            if isinstance(error, SessionBusy | SessionsFull):
                ledger.failed(error)
        except Exception as error:  # judged by the ledger
            ledger.failed(error)
        await asyncio.sleep(0)


async def use_as_task(
    sessions: AsyncSessions[Any], ledger: Ledger, chance: random.Random, key: str
) -> None:
    token, what = ledger.token(), chance.random()
    async with (hold := sessions.use(key)) as state:
        ledger.come(key, "a task")
        try:
            ledger.check_bounds(sessions)
            state.append(token)
            await asyncio.sleep(0)
            if what < 0.05:
                raise ZeroDivisionError
            if what < 0.1:
                await hold.save()
            elif what < 0.15:
                hold.discard()
        finally:
            ledger.go(key)
    if not 0.1 <= what < 0.15:
        ledger.acknowledge(key, token)


def work_as_thread(sessions: Sessions[Any], ledger: Ledger, chance: random.Random) -> None:
    while not ledger.is_over():
        key = chance.choice(KEPT if chance.random() < 0.8 else CLOSED)
        what = chance.random()
        try:
            if what < 0.8:
                use_as_thread(sessions, ledger, chance, key)
            elif what < 0.87:
                sessions.park(key)
            elif what < 0.94:
                sessions.complete(key)
            elif key in CLOSED:
                sessions.close(key)
            else:
                sessions.sweep()
        except Exception as error:  # judged by the ledger
            ledger.failed(error)


def use_as_thread(sessions: Sessions[Any], ledger: Ledger, chance: random.Random, key: str) -> None:
    token, what = ledger.token(), chance.random()
    with (hold := sessions.use(key)) as state:
        ledger.come(key, "a thread")
        try:
            ledger.check_bounds(sessions)
            state.append(token)
            if what < 0.05:
                raise ZeroDivisionError
            if what < 0.1:
                hold.save()
            elif what < 0.15:
                hold.discard()
        finally:
            ledger.go(key)
    if not 0.1 <= what < 0.15:
        ledger.acknowledge(key, token)


async def hammer_with_tasks(sessions: AsyncSessions[Any], ledger: Ledger, seed: int) -> None:
    loop, chance = asyncio.get_running_loop(), random.Random(seed)
    loop.set_exception_handler(lambda _, context: ledger.wrong.append(str(context)))

    async def restart() -> None:
        """Work, and be cancelled at random; whoever is cancelled begins again."""
        while not ledger.is_over():
            mine = random.Random(chance.random())
            task = asyncio.create_task(work_as_task(sessions, ledger, mine))
            await asyncio.wait([task], timeout=chance.random())
            task.cancel()
            await gather_all(task)

    await asyncio.gather(*(restart() for _ in range(TASKS)))
    sessions._store.calm = sessions._store.aio.calm = True
    if await sessions.shutdown(grace=PATIENCE):
        left = [(e.id, e.phase, e.holder, e.leave) for e in sessions._core.table.entries.values()]
        ledger.wrong.append(f"the tasks' sessions did not shut down: {left}")
    if own_tasks(sessions) or asyncio.all_tasks() != {asyncio.current_task()}:
        ledger.wrong.append(f"tasks are left: {asyncio.all_tasks()}")


def open_files() -> set[str]:
    found = set()
    for fd in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{fd.name} {fd.readlink()}")
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_tasks_and_threads_on_one_failing_store_lose_nothing_and_leave_nothing(
    tmp_path: Path,
) -> None:
    gc.collect()  # what earlier tests left is no file of ours
    threads_before, files_before = set(threading.enumerate()), open_files()
    ledger, chance = Ledger(SECONDS), random.Random(7)
    inner = SQLiteStore(tmp_path / "hammered.db", clock=Unhurried())
    store = Moody(inner, chance)
    for_tasks = {name: awaited(hook) for name, hook in hooks(ledger, "tasks", chance).items()}
    tasks: AsyncSessions[Any] = AsyncSessions(list, **for_tasks, **arguments(store))
    threads: Sessions[Any] = Sessions(list, **hooks(ledger, "threads", chance), **arguments(store))
    workers = [
        threading.Thread(target=work_as_thread, args=(threads, ledger, random.Random(100 + n)))
        for n in range(THREADS)
    ]
    for worker in workers:
        worker.start()
    asyncio.run(hammer_with_tasks(tasks, ledger, seed=1))
    for worker in workers:
        worker.join(PATIENCE)
        assert not worker.is_alive()
    assert threads.shutdown(grace=PATIENCE) == 0
    assert not ledger.wrong, ledger.wrong[:10]
    assert ledger.together <= 3
    assert_balanced(tasks)
    assert_balanced(threads)  # type: ignore[arg-type]  # the same table
    assert ledger.all_gone()
    with Sessions(list, store=inner, name="hammered", max_sessions=None) as fresh:
        for key in KEPT:
            with fresh.use(key, shared=True) as log:
                assert len(log) == len(set(log)), "an update was done twice"
                missing = set(ledger.acknowledged.get(key, ())) - set(log)
                assert not missing, f"{len(missing)} acknowledged updates of {key} are missing"
    inner.close()
    patience = time.monotonic() + PATIENCE
    while set(threading.enumerate()) - threads_before and time.monotonic() < patience:
        time.sleep(0.01)
    assert not set(threading.enumerate()) - threads_before
    assert not open_files() - files_before
