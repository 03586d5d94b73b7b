"""[S16] An exception that arrives while a use is entered or left wedges nothing.

Each scenario is run once for each place where CPython delivers one (see `interrupts`); here for
some of them, with ATTACK_EVERYWHERE=1 (`nox -s attack`) for all. The exception is kept, with its
traceback, so that garbage collection repairs nothing.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import pytest

import event_loops
from floodline import AsyncSessions, Sessions
from floodline.errors import SessionBusy
from floodline.sessions._drivers.async_sessions import AsyncUse
from floodline.sessions._drivers.threads import Use
from floodline.stores import MemoryStore
from interrupts import Interrupt, Interrupter, SoftInterrupt, in_methods
from worker_threads import Worker, until

ALL = bool(os.environ.get("ATTACK_EVERYWHERE"))
IN_USE = in_methods(Use.__enter__.__code__, Use.__exit__.__code__)
PATIENCE = 0.03


def in_sessions(frame: Any) -> bool:
    return "/floodline/sessions/" in frame.f_code.co_filename


class World:
    """A table that is about to be interrupted, and what it has promised to keep."""

    def __init__(
        self, kind: Any, *, stored: bool = False, max_sessions: int = 2, **options: Any
    ) -> None:
        self.store = MemoryStore() if stored else None
        self.kind = kind
        self.sessions = kind(
            dict, store=self.store, max_sessions=max_sessions, lease="5 s", **options
        )
        self.kept: dict[str, int] = {}
        self.over = threading.Event()
        self.other: Worker | None = None  # who holds what the use must wait for
        self.other_task: asyncio.Task[None] | None = None

    def finish(self) -> None:
        """Let the other one go, if it has not been waited for."""
        self.over.set()
        if self.other is not None:
            self.other.result()

    def expire(self, id: str) -> None:
        table = self.sessions._core.table
        table.entries[id].used_at -= 1e6
        table.next_check = -1e9

    def elsewhere(self) -> Any:
        return self.kind(dict, store=self.store, lease="5 s")

    def leaks(self) -> dict[str, int]:
        table = self.sessions._core.table
        figures = {
            "live": table.live,
            "bytes": table.bytes,
            "taken": table.seats.taken,
            "parking": table.seats.parking,
            "waiting": len(table.waiting),
            "room": len(table.seats.room),
            "leased": len(table.leased),
            "shared": len(table.shared),
            "idle": len(table.idle),
            "entries": len(table.entries),
        }
        return {name: number for name, number in figures.items() if number}


def put(world: World, id: str, n: int) -> None:
    with world.sessions.use(id) as state:
        state["n"] = n
    world.kept[id] = n


# ---- what is interrupted: how the table is before, and the use


def live(**options: Any) -> Callable[[], World]:
    def make() -> World:
        world = World(Sessions, **options)
        put(world, "x", 1)
        return world

    return make


def absent(**options: Any) -> Callable[[], World]:
    return lambda: World(Sessions, **options)


def parked() -> World:
    world = live(stored=True)()
    world.sessions.park("x")
    return world


def full(**options: Any) -> Callable[[], World]:
    def make() -> World:
        world = World(Sessions, max_sessions=1, **options)
        put(world, "y", 5)
        if world.store is None:
            world.kept.clear()  # without a store, to leave is to be lost
        return world

    return make


def expired(id: str, **options: Any) -> Callable[[], World]:
    def make() -> World:
        world = World(Sessions, **options)
        put(world, "x", 1)
        put(world, "y", 5)
        world.expire(id)
        if world.store is None:
            del world.kept[id]
        return world

    return make


def held(id: str, **options: Any) -> Callable[[], World]:
    """Another thread holds a session until somebody waits for it, or for its place."""

    def make() -> World:
        world = World(Sessions, **options)
        put(world, id, 1)
        if world.store is None and id != "x":
            world.kept.clear()
        table, inside = world.sessions._core.table, threading.Event()

        def hold() -> None:
            with world.sessions.use(id):
                inside.set()
                until(lambda: len(table.waiting) or table.seats.room or world.over.is_set())

        world.other = Worker(hold)
        assert inside.wait(100)
        return world

    return make


def count(world: World, _trace: Interrupter) -> None:
    with world.sessions.use("x") as state:
        state["n"] = state.get("n", 0) + 1


def read(world: World, _trace: Interrupter) -> None:
    with world.sessions.use("x", shared=True):
        pass


def close(world: World, trace: Interrupter) -> None:
    with world.sessions.use("x"):
        world.kept.pop("x", None)
        with trace.paused():
            world.sessions.close("x")


def park(world: World, trace: Interrupter) -> None:
    with world.sessions.use("x") as state:
        state["n"] = state.get("n", 0) + 1
        with trace.paused():
            world.sessions.park("x")
            if world.store is None:
                world.kept.pop("x", None)


def discard(world: World, _trace: Interrupter) -> None:
    with (hold := world.sessions.use("x")) as state:
        state["n"] = 99
        hold.discard()


SCENARIOS: dict[str, tuple[Callable[[], World], Callable[[World, Interrupter], None]]] = {
    "live": (live(), count),
    "read": (live(), read),
    "opening": (absent(), count),
    "opening, stored": (absent(stored=True), count),
    "loading": (parked, count),
    "loading to read": (parked, read),
    "saving": (live(stored=True), count),
    "saving when parked": (live(stored=True, durability="park"), count),
    "weighing": (live(weigh=len, max_bytes=1000), count),
    "evicting": (full(), count),
    "evicting, stored": (full(stored=True), count),
    "expired": (expired("x"), count),
    "expired, stored": (expired("x", stored=True), count),
    "another is due": (expired("y"), count),
    "another is due, stored": (expired("y", stored=True), count),
    "closing": (live(), close),
    "closing, stored": (live(stored=True), close),
    "parking": (live(), park),
    "parking, stored": (live(stored=True), park),
    "discarding": (live(stored=True), discard),
    "waiting for a holder": (held("x"), count),
    "waiting for a holder, stored": (held("x", stored=True), count),
    "waiting for room": (held("y", max_sessions=1), count),
    "waiting for room, stored": (held("y", max_sessions=1, stored=True), count),
}


def play(name: str, *places: int, error: type[BaseException] = Interrupt) -> Interrupter:
    """Run a scenario with exceptions at these places, and see that nothing is stuck."""
    make, act = SCENARIOS[name]
    world, trace = make(), Interrupter(IN_USE, *places, error=error)
    accepted = Exception if error is SoftInterrupt else Interrupt  # it may cause another one
    kept: BaseException | None = None
    try:
        with trace:
            act(world, trace)
    except accepted as arrived:
        kept = arrived
    world.finish()
    found = list(problems(world, wrote=kept is None and act in (count, park)))
    assert not found, (name, places, trace.raised, found)
    del kept
    return trace


def problems(world: World, *, wrote: bool) -> Iterator[str]:
    sessions, core = world.sessions, world.sessions._core

    def use(among: Any, id: str) -> dict[str, int]:
        with among.use(id, wait=PATIENCE) as state:
            return dict(state)

    def use_all_seats() -> None:
        with sessions.use("p", wait=PATIENCE):
            if core.policy.max_sessions > 1:
                with sessions.use("q", wait=PATIENCE):
                    pass

    def attempt(work: Callable[..., Any], *args: Any) -> Any:
        """Try at once, for the next caller may repair; else a sweep must have done so."""
        first = Worker(work, *args).wait()
        if first.error is None:
            return first.result()
        Worker(sessions.sweep).wait()
        return Worker(work, *args).result()

    try:
        if world.store is not None and core.policy.durability == "use":
            with world.elsewhere() as other:
                for key in ("x", "y"):
                    attempt(use, other, key)
        for key in ("x", "y"):
            got, least = attempt(use, sessions, key).get("n", 0), world.kept.get(key)
            if least is not None:
                least += wrote and key == "x"
                if got not in ((least,) if wrote else (least, least + 1)):
                    yield f"{key} is {got}, not {least}"
        attempt(use_all_seats)
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
    if left := Worker(lambda: sessions.shutdown(grace=PATIENCE)).result():
        yield f"shutdown left {left}"
    if leaks := world.leaks():
        yield f"{leaks}"


def some(number: int, step: int, seed: str) -> list[int]:
    """Return all places, or every `step`-th from a random one on."""
    if ALL:
        return list(range(1, number + 1))
    return list(range(random.Random(seed).randint(1, step), number + 1, step))


@pytest.mark.parametrize("name", SCENARIOS)
def test_s16_an_exception_at_any_place_leaves_nothing_stuck(name: str) -> None:
    play(name)  # the first time it may start threads
    raised = [place for place in some(play(name).count, 9, name) if play(name, place).raised]
    assert raised


@pytest.mark.parametrize("name", SCENARIOS)
def test_s16_nor_does_a_second_one_during_the_repair(name: str) -> None:
    dice = random.Random(name)
    for place in some(play(name).count, 23, name):
        for after in (1, 2, dice.randint(3, 12), dice.randint(5, 40)) if ALL else (1, 5):
            play(name, place, place + after)


@pytest.mark.parametrize("name", SCENARIOS)
def test_s16_nor_does_an_ordinary_exception(name: str) -> None:
    for place in some(play(name).count, 31, name):
        play(name, place, error=SoftInterrupt)


# ---- the same on an event loop


async def async_put(world: World, id: str, n: int) -> None:
    async with world.sessions.use(id) as state:
        state["n"] = n
    world.kept[id] = n


async def async_live(**options: Any) -> World:
    world = World(AsyncSessions, **options)
    await async_put(world, "x", 1)
    return world


async def async_parked() -> World:
    world = await async_live(stored=True)
    await world.sessions.park("x")
    return world


async def async_absent(**options: Any) -> World:
    return World(AsyncSessions, **options)


async def async_full(**options: Any) -> World:
    world = World(AsyncSessions, max_sessions=1, **options)
    await async_put(world, "y", 5)
    if world.store is None:
        world.kept.clear()
    return world


async def async_held(id: str, **options: Any) -> World:
    """Another task holds a session until somebody waits for it, or for its place."""
    world = await async_live(**options) if id == "x" else await async_full(**options)
    table, inside = world.sessions._core.table, asyncio.Event()

    async def hold() -> None:
        async with world.sessions.use(id):
            inside.set()
            await event_loops.until(
                lambda: len(table.waiting) or table.seats.room or world.over.is_set()
            )

    world.other_task = asyncio.create_task(hold())
    await inside.wait()
    return world


async def async_count(world: World) -> None:
    async with world.sessions.use("x") as state:
        state["n"] = state.get("n", 0) + 1


async def async_read(world: World) -> None:
    async with world.sessions.use("x", shared=True):
        pass


async def async_close(world: World) -> None:
    async with world.sessions.use("x"):
        world.kept.pop("x", None)
        await world.sessions.close("x")


async def async_discard(world: World) -> None:
    async with (hold := world.sessions.use("x")) as state:
        hold.discard()
        state["n"] = 99  # only if that did not fail


ASYNC_SCENARIOS: dict[str, tuple[Callable[[], Any], Callable[[World], Any]]] = {
    "live": (async_live, async_count),
    "read": (async_live, async_read),
    "opening": (async_absent, async_count),
    "opening, stored": (lambda: async_absent(stored=True), async_count),
    "loading": (async_parked, async_count),
    "loading to read": (async_parked, async_read),
    "saving": (lambda: async_live(stored=True), async_count),
    "evicting": (async_full, async_count),
    "evicting, stored": (lambda: async_full(stored=True), async_count),
    "closing": (async_live, async_close),
    "closing, stored": (lambda: async_live(stored=True), async_close),
    "discarding": (lambda: async_live(stored=True), async_discard),
    "waiting for a holder": (lambda: async_held("x"), async_count),
    "waiting for room": (lambda: async_held("y"), async_count),
}


async def async_play(
    name: str, *places: int, error: type[BaseException] = Interrupt
) -> Interrupter:
    make, act = ASYNC_SCENARIOS[name]
    world = await make()
    trace = Interrupter(in_sessions, *places, error=error)
    with trace:
        task = asyncio.ensure_future(act(world))
        await asyncio.wait([task], timeout=20 if world.other_task is None else 0.2)
    world.over.set()
    if not task.done():  # whoever holds what it waits for, or whoever was to wake it, was hit
        await world.sessions.sweep()
        await asyncio.wait([task], timeout=20)
    if world.other_task is not None:
        await asyncio.wait([world.other_task], timeout=20)
        world.other_task.exception()  # what arrived there is that task's
    kept = task.exception()
    wrote = kept is None and act is async_count
    found = [problem async for problem in async_problems(world, wrote=wrote)]
    assert not found, (name, places, trace.raised, found)
    del kept
    return trace


async def async_problems(world: World, *, wrote: bool) -> Any:
    sessions = world.sessions

    async def use(among: Any, id: str) -> dict[str, int]:
        async with among.use(id, wait=PATIENCE) as state:
            return dict(state)

    async def use_all_seats() -> None:
        async with sessions.use("p", wait=PATIENCE):
            if sessions._core.policy.max_sessions > 1:
                async with sessions.use("q", wait=PATIENCE):
                    pass

    async def attempt(work: Callable[..., Any], *args: Any) -> Any:
        try:
            return await work(*args)
        except Exception:
            await sessions.sweep()
            return await work(*args)

    try:
        if world.store is not None:
            async with world.elsewhere() as other:
                for key in ("x", "y"):
                    await attempt(use, other, key)
        for key in ("x", "y"):
            got, least = (await attempt(use, sessions, key)).get("n", 0), world.kept.get(key)
            if least is not None:
                least += wrote and key == "x"
                if got not in ((least,) if wrote else (least, least + 1)):
                    yield f"{key} is {got}, not {least}"
        await attempt(use_all_seats)
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
    if left := await sessions.shutdown(grace=PATIENCE):
        yield f"shutdown left {left}"
    if leaks := world.leaks():
        yield f"{leaks}"


def run_async(name: str, *places: int, error: type[BaseException] = Interrupt) -> Interrupter:
    with asyncio.Runner() as runner:
        # what arrives in a callback of the loop goes to its handler, as the loop's own affair
        runner.get_loop().set_exception_handler(lambda *_: None)
        return runner.run(async_play(name, *places, error=error))


on_a_loop = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine"
)


@on_a_loop
@pytest.mark.parametrize("name", ASYNC_SCENARIOS)
def test_s16_the_same_on_an_event_loop(name: str) -> None:
    for place in some(run_async(name).count, 29, name):
        run_async(name, place)


@on_a_loop
@pytest.mark.parametrize("name", ASYNC_SCENARIOS)
def test_s16_a_second_one_during_the_repair_on_an_event_loop(name: str) -> None:
    dice = random.Random(name)
    for place in some(run_async(name).count, 67, name):
        for after in (1, dice.randint(2, 12), dice.randint(5, 40)) if ALL else (3,):
            run_async(name, place, place + after)


@on_a_loop
@pytest.mark.parametrize("name", ASYNC_SCENARIOS)
def test_s16_an_ordinary_exception_on_an_event_loop(name: str) -> None:
    for place in some(run_async(name).count, 67, name):
        run_async(name, place, error=SoftInterrupt)


# ---- real signals


class TimeIsUp(Exception):
    """What the handler raises, as a soft time limit does."""


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    def handler(*_: object) -> None:
        raise TimeIsUp

    before, tracer = signal.signal(signal.SIGALRM, handler), sys.gettrace()
    sys.settrace(None)  # a signal inside coverage would leave its lock behind
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.settrace(tracer)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need the main thread"
)
@pytest.mark.parametrize("stored", [False, True])
def test_s16_real_signals_at_random_moments(stored: bool, alarm: Callable[[float], None]) -> None:
    dice, kept = random.Random(7), []
    for turn in range(2000 if ALL else 60):
        world = live(stored=stored)() if turn % 2 else full(stored=stored)()
        wrote = False
        try:
            alarm(dice.uniform(1e-6, 150e-6 if stored else 30e-6))
            count(world, Interrupter(IN_USE))
            wrote = True
            alarm(0)
        except Exception as error:  # itself, or a SaveFailed that it caused
            kept.append(error)
            wrote = False
        alarm(0)
        assert list(problems(world, wrote=wrote)) == []


def test_s16_a_loop_whose_body_goes_on_for_others_frees_those_it_left() -> None:
    """The statement is entered anew for another id, while the first one was left behind."""
    sessions: Sessions[Any] = Sessions(dict)
    inside, go_on = threading.Event(), threading.Event()

    def work() -> None:
        for key in ("a", "b"):
            trace = Interrupter(IN_USE)
            try:
                with sessions.use(key):
                    if key == "a":
                        trace.raise_at_exit()
                    else:
                        inside.set()
                        go_on.wait(100)
            except Interrupt:
                pass
            finally:
                trace.__exit__()

    worker = Worker(work)
    assert inside.wait(100)
    sessions.sweep()
    with sessions.use("a", wait=0):
        pass
    assert sessions._core.table.entries["b"].holder is not None  # never taken
    go_on.set()
    worker.result()
    sessions.shutdown()


def test_s16_a_body_that_runs_is_never_taken() -> None:
    sessions: Sessions[Any] = Sessions(dict)

    def generator() -> Iterator[None]:
        with sessions.use("a"):
            try:
                yield
            finally:
                yield

    suspended = generator()
    for _ in range(2):
        next(suspended)
        sessions.sweep()
        assert sessions._core.table.entries["a"].holder is not None
    suspended.close()
    by_hand = sessions.use("a")
    by_hand.__enter__()
    sessions.sweep()
    assert sessions._core.table.entries["a"].holder is by_hand
    by_hand.__exit__(None, None, None)
    sessions.shutdown()


def test_s16_a_use_that_an_exit_stack_has_dropped_is_free() -> None:
    sessions: Sessions[Any] = Sessions(dict)
    trace = Interrupter(IN_USE)

    def work() -> None:
        with ExitStack() as stack:
            stack.enter_context(sessions.use("a"))["n"] = 1
            trace.raise_at_exit()

    with pytest.raises(Interrupt) as kept:
        work()
    trace.__exit__()
    with sessions.use("a", wait=0) as state:
        assert state == {"n": 1}
    del kept
    assert sessions.shutdown(grace=0) == 0


def test_s16_a_use_that_an_exit_stack_still_has_is_never_taken() -> None:
    sessions: Sessions[Any] = Sessions(dict)
    entered, calling, go_on = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        with ExitStack() as stack:
            held = stack.enter_context(sessions.use("a"))
            kept = stack.pop_all()  # as a constructor that succeeds does
        entered.set()
        go_on.wait(100)
        kept.callback(calling.set)
        kept.close()
        held["n"] = 1

    worker = Worker(work)
    assert entered.wait(100)
    sessions.sweep()
    with pytest.raises(SessionBusy), sessions.use("a", wait=0):
        pass
    go_on.set()
    worker.result()
    with sessions.use("a", wait=0):
        pass
    sessions.shutdown()


def test_s16_the_same_of_an_async_exit_stack() -> None:
    trace = Interrupter(in_methods(AsyncUse.__aexit__.__code__))

    async def work(sessions: AsyncSessions[Any]) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(sessions.use("a"))
            await sessions.sweep()
            with pytest.raises(SessionBusy):  # never taken
                await asyncio.create_task(enter_now(sessions, "a"))
            trace.raise_at_exit()

    async def main() -> None:
        sessions: AsyncSessions[Any] = AsyncSessions(dict)
        with pytest.raises(Interrupt) as kept:
            await work(sessions)
        trace.__exit__()
        await sessions.sweep()
        await enter_now(sessions, "a")
        del kept
        assert await sessions.shutdown(grace=0) == 0

    asyncio.run(main())


async def enter_now(sessions: AsyncSessions[Any], id: str) -> None:
    async with sessions.use(id, wait=0):
        pass


def test_s16_a_use_left_by_hand_can_be_left_again() -> None:
    sessions: Sessions[Any] = Sessions(dict)
    use, trace = sessions.use("a"), Interrupter(IN_USE)
    use.__enter__()
    trace.raise_at_exit()
    with pytest.raises(Interrupt) as kept:
        use.__exit__(None, None, None)
    trace.__exit__()
    use.__exit__(None, None, None)  # until it returns
    with sessions.use("a", wait=0):
        pass
    del kept
    sessions.shutdown()


def test_s16_a_lease_that_was_left_behind_is_not_renewed_for_long() -> None:
    store = MemoryStore()
    sessions: Sessions[Any] = Sessions(dict, store=store, lease="5 s")
    trace = Interrupter(IN_USE)
    with pytest.raises(Interrupt), sessions.use("a"):
        trace.raise_at_exit()
    trace.__exit__()
    assert sessions.stats().leases == 1
    sessions._renew_tick()  # it asks the sweeper to look
    until(lambda: sessions.stats().leases == 0)
    sessions.shutdown()
