"""Cancellation at any await leaves pins balanced, and loses nothing that was acknowledged.

Each scenario is run once to count the turns of the loop that it takes, and then once for each of
them with a cancel at that turn.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from event_loops import assert_balanced, gather_all, run_clean, settle, turns, until
from floodline import AsyncSessions, Reason
from floodline.errors import SaveFailed, SessionError, StoreUnavailable
from floodline.stores import MemoryStore


class SteppedStore:
    """An async store that takes a turn before and one after each call; `fails` counts down."""

    def __init__(self) -> None:
        self.inner = MemoryStore()
        self.fails: dict[str, list[str]] = {}

    def __getattr__(self, method: str) -> Any:
        if method == "aio":
            raise AttributeError(method)

        async def call(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0)
            faults = self.fails.get(method)
            fault = faults.pop() if faults else ""
            if fault == "before":
                raise StoreUnavailable(method)
            answer = getattr(self.inner, method)(*args, **kwargs)
            await asyncio.sleep(0)
            if fault == "after":
                raise StoreUnavailable(method)
            return answer

        return call

    async def acquire(self, *args: Any, **kwargs: Any) -> Any:
        return await self.__getattr__("acquire")(*args, **kwargs)


@dataclass
class World:
    """The sessions under test, what was done to them, and what others do meanwhile."""

    sessions: AsyncSessions[dict[str, int]]
    store: SteppedStore
    entered: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    closing: set[str] = field(default_factory=set)
    others: list[asyncio.Task[Any]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def add(self, key: str = "a", **how: Any) -> None:
        async with self.sessions.use(key, **how) as state:
            self.entered[key] = self.entered.get(key, 0) + 1
            state["n"] = state.get("n", 0) + 1
            await asyncio.sleep(0)
        self.acknowledged[key] = self.acknowledged.get(key, 0) + 1

    async def hold(self, key: str = "a") -> None:
        """Let another task hold a session until the gate opens."""

        async def other() -> None:
            async with self.sessions.use(key):
                await self.gate.wait()

        self.others.append(asyncio.create_task(other()))
        await until(lambda: self.sessions.stats().held)


def make_world(**arguments: Any) -> World:
    async def make() -> dict[str, int]:
        await asyncio.sleep(0)
        return {}

    async def on_open(key: str, state: Any) -> None:
        await asyncio.sleep(0)

    async def on_leave(key: str, state: Any, reason: Reason) -> None:
        await asyncio.sleep(0)

    store = SteppedStore()
    return World(
        AsyncSessions(make, on_open=on_open, on_leave=on_leave, store=store, **arguments), store
    )


async def nothing(world: World) -> None:
    pass


async def parked(world: World) -> None:
    await world.add()
    await world.sessions.park("a")


async def live(world: World) -> None:
    await world.add()


async def written_elsewhere(world: World) -> None:
    await world.add()
    async with AsyncSessions(dict, store=world.store) as other, other.use("a") as state:
        state["m"] = 1


async def held(world: World) -> None:
    await world.add()
    await world.hold()


async def other_held(world: World) -> None:
    await world.hold("b")


async def other_idle(world: World) -> None:
    await world.add("b")


async def unsaved(world: World) -> None:
    world.store.fails["save"] = ["before"]
    with pytest.raises(SaveFailed):
        await world.add()


async def use(world: World) -> None:
    await world.add()


async def use_when_free(world: World) -> None:
    asyncio.get_running_loop().call_later(0.002, world.gate.set)
    await world.add()


async def share(world: World) -> None:
    async with world.sessions.use("a", shared=True):
        await asyncio.sleep(0)


async def checkpoint(world: World) -> None:
    async with (hold := world.sessions.use("a")) as state:
        world.entered["a"] = world.entered.get("a", 0) + 1
        state["n"] = state.get("n", 0) + 1
        await hold.save()
        await asyncio.sleep(0)


async def discard(world: World) -> None:
    async with (hold := world.sessions.use("a")) as state:
        state["n"] = -1
        hold.discard()


async def close(world: World) -> None:
    world.closing.add("a")
    world.entered.clear()
    world.acknowledged.clear()
    await world.sessions.close("a")


async def park(world: World) -> None:
    await world.sessions.park("a")


async def complete_inside(world: World) -> None:
    async with world.sessions.use("a") as state:
        world.entered["a"] = world.entered.get("a", 0) + 1
        state["n"] = state.get("n", 0) + 1
        await world.sessions.complete("a")


async def sweep(world: World) -> None:
    world.sessions._core.table.max_idle = 0.0
    try:
        await world.sessions.sweep()
    finally:
        world.sessions._core.table.max_idle = float("inf")


async def shed(world: World) -> None:
    await world.sessions.shed(10)


async def missing(world: World) -> None:
    with contextlib.suppress(SessionError):
        await world.add(create=False)


Step = Callable[[World], Coroutine[Any, Any, None]]
SCENARIOS: dict[str, tuple[dict[str, Any], Step, Step]] = {
    "make": ({}, nothing, use),
    "make, but not found": ({}, nothing, missing),
    "load": ({}, parked, use),
    "load shared": ({}, parked, share),
    "use what is live": ({}, live, use),
    "reload what is stale": ({}, written_elsewhere, use),
    "wait for a holder": ({}, held, use_when_free),
    "wait for room": ({"max_sessions": 1}, other_held, use_when_free),
    "evict": ({"max_sessions": 1}, other_idle, use),
    "evict what must be saved": ({"max_sessions": 1, "durability": "park"}, other_idle, use),
    "use what is unsaved": ({}, unsaved, use),
    "checkpoint": ({}, live, checkpoint),
    "discard": ({}, live, discard),
    "close what is live": ({}, live, close),
    "close what is parked": ({}, parked, close),
    "park": ({"durability": "park"}, live, park),
    "complete inside the hold": ({}, live, complete_inside),
    "sweep": ({"durability": "park", "idle": None}, live, sweep),
    "shed": ({"durability": "park"}, live, shed),
}


async def at_turn(turn: int, act: Callable[[], object]) -> None:
    for _ in range(turn):
        await asyncio.sleep(0)
    act()


async def cancelled(victim: Awaitable[None], turn: int) -> None:
    task = asyncio.ensure_future(victim)
    await at_turn(turn, task.cancel)
    await gather_all(task)


async def cancelled_twice(victim: Awaitable[None], turn: int) -> None:
    task = asyncio.ensure_future(victim)
    await at_turn(turn, task.cancel)
    await at_turn(1, task.cancel)
    await gather_all(task)


async def timed_out(victim: Awaitable[None], turn: int) -> None:
    loop, scope = asyncio.get_running_loop(), asyncio.timeout(None)

    async def limited() -> None:
        async with scope:
            await victim

    task = asyncio.ensure_future(limited())
    await asyncio.sleep(0)
    await at_turn(turn, lambda: task.done() or scope.reschedule(loop.time()))
    assert all(isinstance(a, TimeoutError | None) for a in await gather_all(task))


async def grouped(victim: Coroutine[Any, Any, None], turn: int) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(victim)
            tasks.create_task(at_turn(turn, fail))

    (answer,) = await gather_all(group())
    assert isinstance(answer, ExceptionGroup)


async def torn_down(victim: Awaitable[None], turn: int) -> None:
    """Cancel every task, those of the sessions too, as the end of `asyncio.run` does."""
    task = asyncio.ensure_future(victim)
    me = asyncio.current_task()
    await at_turn(turn, lambda: [one.cancel() for one in asyncio.all_tasks() if one is not me])
    await gather_all(task)


async def count_turns(scenario: str) -> int:
    arguments, before, victim = SCENARIOS[scenario]
    world = make_world(**arguments)
    await before(world)
    task = asyncio.ensure_future(victim(world))
    count = 0
    while not task.done():
        await asyncio.sleep(0)
        count += 1
    await task
    await world.sessions.shutdown()
    return count


async def check(world: World, *, torn: bool = False) -> None:
    """Nothing is left of anybody, and everything that was saved is there at once."""
    sessions, store = world.sessions, world.store
    world.gate.set()
    await gather_all(*world.others)
    await settle(sessions)
    assert_balanced(sessions)
    if torn:
        await sessions.sweep()  # what was cut off is done again by the next tick
        await settle(sessions)
    if not torn:  # else an answer of the store was lost, and with it the fence
        assert store.inner.stats().leases == len(sessions._core.table.leased)
    assert store.inner.stats().conflicts == 0
    for key in ("a", "b"):
        async with asyncio.timeout(5), sessions.use(key) as state:
            found = state.get("n", 0)
            assert found == world.entered.get(key, 0) or (torn and key in world.closing)
    assert await sessions.shutdown() == 0
    assert store.inner.stats().leases == 0 or torn
    for key, count in world.entered.items():
        assert count >= world.acknowledged.get(key, 0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("how", [cancelled, cancelled_twice, timed_out, grouped, torn_down])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_cancel_at_any_turn_leaves_everything_balanced(scenario: str, how: Any) -> None:
    arguments, before, victim = SCENARIOS[scenario]

    async def main() -> None:
        most = await count_turns(scenario)
        assert most > 1
        every = 1 if how in (cancelled, torn_down) else 3
        for turn in range(0, min(most, 60) + 2, every):
            world = make_world(**arguments)
            await before(world)
            await how(victim(world), turn)
            await check(world, torn=how is torn_down)

    run_clean(main)


def test_a_cancel_during_the_save_leaves_at_once_and_the_save_lets_the_session_go() -> None:
    async def main() -> None:
        world = make_world()
        sessions, gate = world.sessions, asyncio.Event()
        save = world.store.inner.save

        class Slow(SteppedStore):
            async def save(self, *args: Any, **kwargs: Any) -> int:
                await gate.wait()
                return save(*args, **kwargs)

        slow = Slow()
        slow.inner = world.store.inner
        sessions._driver._awaited = slow

        async def work() -> str:
            task = asyncio.current_task()
            assert task is not None
            try:
                await world.add()
            except asyncio.CancelledError:
                task.uncancel()
            again = asyncio.get_running_loop().call_later(0.01, gate.set)
            await world.add()  # the same task simply waits for its own save
            again.cancel()
            return "done"

        task = asyncio.create_task(work())
        await turns(30)
        assert not task.done()
        task.cancel()
        await turns(3)
        assert sessions.stats().waiting == 1
        assert await task == "done"
        await check(world)

    run_clean(main)


def test_a_task_cancelled_in_the_moment_it_is_served_passes_the_session_on() -> None:
    async def main() -> None:
        world = make_world()
        await world.hold()
        first, second = (asyncio.create_task(world.add()) for _ in range(2))
        await turns(20)
        world.gate.set()
        while world.sessions._core.table.entries["a"].waiters != []:
            await asyncio.sleep(0)
            waiters = world.sessions._core.table.entries["a"].waiters
            if waiters is not None and len(waiters) < 2:
                break
        first.cancel()
        await gather_all(first)
        async with asyncio.timeout(5):
            await second
        await check(world)

    run_clean(main)


OPERATIONS: dict[str, Step] = {
    "use": use,
    "share": share,
    "checkpoint": checkpoint,
    "park": park,
    "complete inside": complete_inside,
    "discard": discard,
    "shed": shed,
    "use b": lambda world: world.add("b"),
}


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    program=st.lists(
        st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 8), st.integers(0, 40)),
        min_size=2,
        max_size=10,
    ),
    faults=st.lists(
        st.tuples(
            st.sampled_from(["save", "acquire", "release", "written"]),
            st.sampled_from(["before", "after"]),
        ),
        max_size=4,
    ),
    durability=st.sampled_from(["use", "park"]),
)
def test_many_tasks_cancelled_at_random_turns_leave_everything_balanced(
    program: list[tuple[str, int, int]], faults: list[tuple[str, str]], durability: str
) -> None:
    async def main() -> None:
        world = make_world(max_sessions=1, durability=durability, lease=0.2)
        for method, when in faults:
            world.store.fails.setdefault(method, []).append(when)

        async def run_one(name: str, start: int, turn: int) -> None:
            await turns(start)
            await cancelled(OPERATIONS[name](world), turn)

        await gather_all(*(run_one(*step) for step in program))
        world.store.fails.clear()
        await settle(world.sessions)
        await world.sessions.shutdown()
        assert_balanced(world.sessions)
        assert world.store.inner.stats().conflicts == 0
        if durability == "park":  # nothing is acknowledged before it leaves memory
            world.acknowledged.clear()
        async with AsyncSessions(dict, store=world.store) as fresh:
            for key, count in world.acknowledged.items():
                async with fresh.use(key) as state:
                    assert state["n"] >= count
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_clean(main)
