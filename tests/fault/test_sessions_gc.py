"""[E2]: the garbage collector and signals strike inside our critical sections; nothing hangs."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import floodline
from floodline import Sessions, SessionScope
from floodline.errors import FloodlineError, SessionClosed
from floodline.stores import MemoryStore, SQLiteStore
from worker_threads import Worker, assert_balanced, until

STRIKES = 6
OURS = str(Path(floodline.__file__).parent)
CRITICAL = tuple(f"{OURS}/{part}" for part in ("sessions", "_interruptible_lock", "stores/_memory"))


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    faulthandler.dump_traceback_later(880, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


class Meddler:
    """Garbage in a cycle, whose finalizer does everything that a finalizer may do."""

    def __init__(self, sessions: Sessions[Any], number: int) -> None:
        self.sessions, self.number, self.me = sessions, number, self

    def __del__(self) -> None:
        sessions, one = self.sessions, f"id{self.number % 3}"
        calls = [
            lambda: sessions.park(one),
            lambda: sessions.complete(one),
            lambda: sessions.close(one),
            lambda: sessions.touch(one),
            sessions.stats,
            lambda: len(sessions),
            sessions.ids,
            lambda: one in sessions,
            lambda: sessions.peek(one),
        ]
        calls[self.number % len(calls)]()


class Owner:
    def __init__(self) -> None:
        self.me = self


def suspended(sessions: Sessions[Any], id: str, shared: bool) -> Iterator[None]:
    with sessions.use(id, shared=shared, wait=0):
        yield


def in_cycle(thing: Any) -> list[Any]:
    cycle = [thing]
    cycle.append(cycle)
    return cycle


def make_garbage(sessions: Sessions[Any], number: int) -> list[Any]:
    """Return a cycle with a meddler, or with a bound owner, or with a generator that holds."""
    one = f"id{number % 3}"
    if number % 3 == 0:
        return in_cycle(Meddler(sessions, number // 3))
    if number % 3 == 1:
        owner = Owner()
        with contextlib.suppress(FloodlineError):  # it is not live, or we are inside a section
            sessions.bind(one, owner)
        return in_cycle(owner)
    generator = suspended(sessions, f"gen{number % 2}", number % 5 == 0)
    with contextlib.suppress(FloodlineError):  # still held by the last one
        next(generator)
    return in_cycle(generator)


class StrikeAtEveryLine:
    """A trace function that strikes at each line of our critical sections."""

    def __init__(self) -> None:
        self.number, self.inside = 0, False
        self.struck: Counter[tuple[str, int]] = Counter()

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self.line if frame.f_code.co_filename.startswith(CRITICAL) else None

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        place = (frame.f_code.co_filename, frame.f_lineno)
        # what a finalizer wants done has lines too: without a limit it would never end
        if event == "line" and not self.inside and self.struck[place] < STRIKES:
            self.struck[place] += 1
            self.inside = True
            try:
                self.number += 1
                self.strike()
            finally:
                self.inside = False
        return self.line

    def strike(self) -> None:
        raise NotImplementedError


class CollectAtEveryLine(StrikeAtEveryLine):
    def __init__(self, sessions: Sessions[Any]) -> None:
        super().__init__()
        self.sessions = sessions
        self.garbage: list[Any] = []

    def strike(self) -> None:
        if len(self.garbage) < 5 and not self.sessions._core.guard.is_guest():
            self.garbage.append(make_garbage(self.sessions, self.number))
        Meddler(self.sessions, self.number)
        if self.garbage:
            self.garbage.pop(0)
        gc.collect()


class SignalAtEveryLine(StrikeAtEveryLine):
    def strike(self) -> None:
        signal.raise_signal(signal.SIGUSR1)


def work(sessions: Sessions[Any], rounds: int) -> None:
    for n in range(rounds):
        one = f"id{n % 3}"
        closed = contextlib.suppress(SessionClosed)  # by another, while this one waited
        with closed, sessions.use(one, shared=n % 4 == 3) as state:
            if n % 4 != 3:
                state["n"] = n
        if n % 3 == 0:
            sessions.park(one)
        if n % 5 == 0:
            sessions.close(one)
        if n % 7 == 0:
            sessions.sweep()


def is_at_rest(sessions: Sessions[Any]) -> bool:
    core = sessions._core
    return not (core.guard.late or core.after_store or core.acting or core.table.seats.parking)


def check_end(sessions: Sessions[Any]) -> None:
    gc.collect()
    until(lambda: not gc.collect() and not sessions.stats().held)
    sessions.sweep()
    until(lambda: is_at_rest(sessions))  # the sweeper may be doing what a handler asked for
    assert_balanced(sessions)
    assert sessions.shutdown() == 0
    assert_balanced(sessions)


def stores(tmp_path: Path) -> dict[str, Any]:
    return {"none": None, "memory": MemoryStore(), "sqlite": SQLiteStore(tmp_path / "s.db")}


@pytest.mark.parametrize("kind", ["none", "memory", "sqlite"])
def test_collections_at_every_line_of_our_sections_never_hang(kind: str, tmp_path: Path) -> None:
    store = stores(tmp_path)[kind]
    sessions = Sessions(dict, store=store, max_sessions=4, scope=SessionScope(), when_full="grow")
    was, tracer = sys.gettrace(), CollectAtEveryLine(sessions)
    gc.collect()
    gc.freeze()  # the collections are many and shall be short
    sys.settrace(tracer)
    try:
        work(sessions, 12 if kind == "none" else 8)
    finally:
        sys.settrace(was)
        gc.unfreeze()
    assert tracer.number > 200
    check_end(sessions)
    if store is not None:
        store.close()


@pytest.mark.parametrize("kind", ["none", "memory", "sqlite"])
def test_threads_with_a_collection_at_every_allocation_never_hang(
    kind: str, tmp_path: Path
) -> None:
    store = stores(tmp_path)[kind]
    sessions = Sessions(dict, store=store, max_sessions=4, when_full="grow")
    threshold = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(1, 1000, 1000)
    try:

        def meddle() -> None:
            for n in range(30):
                make_garbage(sessions, n)
                work(sessions, 1)

        workers = [Worker(meddle) for _ in range(3)]
        for worker in workers:
            worker.result()
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()
    check_end(sessions)
    if store is not None:
        store.close()


def test_a_collected_generator_lets_go_and_saves() -> None:
    store = MemoryStore()
    with Sessions(dict, store=store) as sessions:

        def body() -> Iterator[None]:
            with sessions.use("a") as state:
                state["n"] = 1
                yield

        generator = body()
        next(generator)
        assert sessions.stats().held == 1
        del generator
        assert sessions.stats().held == 0
        assert_balanced(sessions)
        assert store.count("sessions") == 1


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="there are no such signals here")
@pytest.mark.parametrize("kind", ["none", "memory", "sqlite"])
def test_signal_handlers_may_close_and_park_at_any_moment(kind: str, tmp_path: Path) -> None:
    store = stores(tmp_path)[kind]
    sessions = Sessions(dict, store=store, max_sessions=3)
    struck: Counter[bool] = Counter()

    def handler(*_: Any) -> None:
        struck[sessions._core.guard.is_guest()] += 1
        number = struck.total()
        one = f"id{number % 3}"
        (sessions.close, sessions.park, sessions.complete, sessions.touch)[number % 4](one)

    was, tracer = sys.gettrace(), SignalAtEveryLine()
    was_handled = signal.signal(signal.SIGUSR1, handler)
    sys.settrace(tracer)
    try:
        work(sessions, 20)
    finally:
        sys.settrace(was)
        signal.signal(signal.SIGUSR1, was_handled)
    assert struck[True] > 100
    assert struck[False] > 100
    check_end(sessions)
    if store is not None:
        store.close()


def test_a_put_off_close_that_fails_harms_nobody() -> None:
    """The thread that was interrupted runs it, and must not hear of its error."""

    class Broken(MemoryStore):
        def delete(self, name: str, id: str, *, fence: int) -> bool:
            raise OSError("broken")

    with Sessions(dict, store=Broken()) as sessions:
        with sessions.use("a"):
            pass
        sessions._core.locked(sessions.close, "a")  # as if a finalizer had struck inside
        with sessions.use("b"):
            pass
        assert sessions.stats().hook_errors == 1
        del Broken.delete
        sessions.sweep()
        assert_balanced(sessions)
