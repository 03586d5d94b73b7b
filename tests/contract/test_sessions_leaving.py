"""Sessions on both drivers, out of memory: the rules [S8] to [S10] of the semantics."""

# ruff: noqa: PT012 - a use is a block, and what it raises comes from the whole of it

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from event_loops import StillClock, events_of
from floodline import SessionScope
from floodline.errors import SaveFailed, SessionBusy, SessionClosed, StoreUnavailable
from floodline.stores import MemoryStore
from session_drivers import Driver, FaultyStore, Left, Owner, refused, use_once


async def fail_inside(sessions: Any, id: str, **change: Any) -> BaseException:
    """Use and change a session in a body that raises; return the error."""
    with pytest.raises(ZeroDivisionError) as caught:
        async with sessions.use(id) as state:
            state.update(change)
            raise ZeroDivisionError
    return caught.value


# ---- [S8] a body that raises


async def test_s8_a_body_that_raises_is_saved_like_any_other(driver: Driver, store: Any) -> None:
    async with driver.sessions(dict, store=store) as sessions:
        await fail_inside(sessions, "a", n=1)
        assert store.stats().leases == 0
        await sessions.park("a")
        assert await use_once(sessions, "a") == {"n": 1}


async def test_s8_on_error_discard_goes_back_to_the_last_saved_version(
    driver: Driver, store: Any
) -> None:
    left = Left()
    async with driver.sessions(dict, store=store, on_error="discard", on_leave=left) as sessions:
        await use_once(sessions, "a", n=1)
        await fail_inside(sessions, "a", n=2)
        await driver.settle(sessions)
        assert left == [("a", {"n": 2}, "discarded")]
        assert await use_once(sessions, "a") == {"n": 1}
        await driver.balanced(sessions)


async def test_s8_who_waits_for_a_discarded_session_gets_the_last_saved_version(
    driver: Driver, store: Any
) -> None:
    async with driver.sessions(dict, store=store, on_error="discard") as sessions:
        await use_once(sessions, "a", n=1)
        with pytest.raises(ZeroDivisionError):
            async with sessions.use("a") as state:
                waiter = driver.spawn(use_once, sessions, "a")
                await driver.waiting(sessions, 1)
                state["n"] = 2
                raise ZeroDivisionError
        assert await waiter.result() == {"n": 1}


# ---- [S9] acknowledged


async def test_s9_a_failed_save_raises_and_the_session_stays_until_it_is_saved(
    driver: Driver, faulty: FaultyStore
) -> None:
    clock, left = StillClock(), Left()
    options: dict[str, Any] = {"idle": 60, "max_sessions": 1, "wait": 0, "clock": clock}
    async with driver.sessions(dict, store=faulty.given, on_leave=left, **options) as sessions:
        faulty.fail("save")
        with pytest.raises(SaveFailed, match=r"'a' could not be saved .*out of order") as caught:
            await use_once(sessions, "a", n=1)
        assert isinstance(caught.value.__cause__, OSError)
        assert sessions.peek("a") == {"n": 1}
        assert sessions.stats().unsaved == 1
        await refused(sessions, "b", Exception, match="no room")  # it cannot be evicted
        clock.advance(600)
        await sessions.sweep()
        await driver.settle(sessions)
        assert sessions.stats().unsaved == 1
        assert sessions.peek("a") == {"n": 1}
        assert left == []
        faulty.recover()
        await sessions.sweep()
        await driver.settle(sessions)
        assert sessions.stats().unsaved == 0
        assert faulty.store.load("sessions", "a").version == 1
        assert faulty.store.stats().leases == 0
        await use_once(sessions, "b")
        await driver.settle(sessions)
        assert await use_once(sessions, "a") == {"n": 1}
        await driver.balanced(sessions)


async def test_s9_an_unsaved_session_can_be_used_and_saved_again(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with driver.sessions(dict, store=faulty.given) as sessions:
        faulty.fail("save")
        for n in range(2):
            with pytest.raises(SaveFailed):
                await use_once(sessions, "a", **{f"n{n}": n})
        faulty.recover()
        assert await use_once(sessions, "a", n2=2) == {"n0": 0, "n1": 1, "n2": 2}
        assert sessions.stats().unsaved == 0
        await sessions.park("a")
        assert await use_once(sessions, "a") == {"n0": 0, "n1": 1, "n2": 2}


async def test_s9_the_own_error_of_a_body_goes_on_with_a_note(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with driver.sessions(dict, store=faulty.given) as sessions:
        faulty.fail("save")
        error = await fail_inside(sessions, "a", n=1)
        assert any("SaveFailed" in note for note in error.__notes__)
        faulty.recover()
    assert faulty.store.stats().rows == 1


async def test_s9_bytes_equal_to_the_last_saved_are_not_written(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with driver.sessions(dict, store=faulty.given) as sessions:
        for _ in range(3):
            await use_once(sessions, "a", n=1)
        assert (sessions.stats().saved, sessions.stats().unchanged) == (1, 2)
        assert faulty.calls.count("save") == 1
        assert faulty.store.load("sessions", "a").version == 1
        assert faulty.store.stats().leases == 0


async def test_s9_what_fails_on_its_way_out_comes_back_and_serves_who_waits(
    driver: Driver, faulty: FaultyStore
) -> None:
    left = Left()
    async with driver.sessions(
        dict, store=faulty.given, durability="park", on_leave=left
    ) as sessions:
        await use_once(sessions, "a", n=1)
        gate = faulty.gates["save"] = driver.gate()
        faulty.fail("save")
        parker = driver.spawn(sessions.park, "a")
        await driver.until(lambda: gate.reached)
        waiter = driver.spawn(use_once, sessions, "a")
        await driver.waiting(sessions, 1)
        gate.open()
        await parker.result()
        assert await waiter.result() == {"n": 1}
        assert left == []
        faulty.recover()
        await sessions.sweep()
    assert left.reasons() == ["shutdown"]


async def test_s9_at_shutdown_a_store_that_recovers_within_the_grace_gets_all(
    driver: Driver, faulty: FaultyStore
) -> None:
    sessions = driver.sessions(dict, store=faulty.given, durability="park")
    await use_once(sessions, "a", n=1)
    faulty.fail("save")
    tries = [0]

    def recover(method: str) -> None:
        tries[0] += method == "save"
        if tries[0] == 3:
            faulty.recover()

    faulty.entering = recover
    assert await sessions.shutdown() == 0
    assert faulty.store.count("sessions") == 1


async def test_s9_a_store_that_is_down_for_opening_fails_the_use_and_nothing_else(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with driver.sessions(dict, store=faulty.given) as sessions:
        faulty.before["acquire"] = StoreUnavailable("locked")
        await refused(sessions, "a", StoreUnavailable)
        await driver.balanced(sessions)
        faulty.recover()
        await use_once(sessions, "a")


# ---- [S10] the way out


async def test_s10_a_use_during_a_park_waits_for_save_finalizer_and_close(
    driver: Driver, store: Any
) -> None:
    steps, gate = list[str](), driver.gate()

    class State(dict[str, Any]):
        def close(self) -> None:
            steps.append("close")

        def __floodline_dump__(self) -> dict[str, Any]:
            return dict(self)

        @classmethod
        def __floodline_load__(cls, data: dict[str, Any]) -> State:
            steps.append("load")
            return cls(data)

    async def finalizer(*_: Any) -> None:
        steps.append("leave")
        await gate.passed()

    async with driver.sessions(State, store=store, on_leave=driver.hook(finalizer)) as sessions:
        await use_once(sessions, "a", n=1)
        steps.clear()
        parker = driver.spawn(sessions.park, "a")
        await driver.until(lambda: steps)
        user = driver.spawn(use_once, sessions, "a")
        await driver.waiting(sessions, 1)
        gate.open()
        await parker.result()
        assert await user.result() == {"n": 1}
        assert steps[:3] == ["leave", "close", "load"]


@pytest.mark.parametrize("stored", [False, True])
async def test_s10_a_finalizer_that_hangs_blocks_only_its_id_and_is_reported(
    driver: Driver, stored: bool
) -> None:
    clock, gate = StillClock(), driver.gate()
    name = f"hanging on {driver.kind}, stored={stored}"

    async def finalizer(id: str, *_: Any) -> None:
        if id == "a":
            await gate.passed()

    async with driver.sessions(
        dict,
        on_leave=driver.hook(finalizer),
        clock=clock,
        max_hold=10,
        max_sessions=2,
        name=name,
        store=MemoryStore() if stored else None,
    ) as sessions:
        await use_once(sessions, "a")
        parker = driver.spawn(sessions.park, "a")
        await driver.until(lambda: gate.reached)
        for one in "bcdb":
            await use_once(sessions, one)
        await refused(sessions, "a", SessionBusy, match="finalized", wait=0)
        clock.advance(11)
        await sessions.sweep()
        await sessions.sweep()
        assert sessions.stats().stuck == 1
        assert [e.fields["id"] for e in events_of("stuck_leaving", name)] == ["a"]
        waiter = driver.spawn(use_once, sessions, "a")
        await driver.waiting(sessions, 1)
        assert not waiter.done()
        gate.open()
        await parker.result()
        await waiter.result()
        await driver.balanced(sessions)


async def test_s10_a_finalizer_and_a_close_that_raise_lose_nothing_and_stop_no_sweep(
    driver: Driver,
) -> None:
    clock, name, scope = StillClock(), f"raising on {driver.kind}", SessionScope()
    values: Any = scope.map("values")
    tried: list[str] = []

    class Bad:
        def close(self) -> None:
            tried.append("close")
            raise OSError("close")

    async def finalizer(*_: Any) -> None:
        raise ValueError("leave")

    async with driver.sessions(
        Bad, on_leave=driver.hook(finalizer), idle=10, clock=clock, name=name, scope=scope
    ) as sessions:
        for one in "abc":
            await use_once(sessions, one)
        values["a"] = 1
        clock.advance(10)
        assert await sessions.sweep() == 3
        assert len(sessions) == 0
        assert sessions.stats().hook_errors == 6
        assert tried == ["close"] * 3
        assert len(values) == 0
        assert {e.fields["hook"] for e in events_of("hook_error", name)} == {"on_leave", "close"}
        await driver.balanced(sessions)


async def test_s10_a_finalizer_may_use_sessions_however_many_leave(driver: Driver) -> None:
    clock = StillClock()

    async def note(id: str, *_: Any) -> None:
        if id != "log":
            async with sessions.use("log") as log:
                log[id] = True

    async with driver.sessions(
        dict, on_leave=driver.hook(note), idle=10, clock=clock, max_sessions=None
    ) as sessions:
        for n in range(500):
            await use_once(sessions, f"id{n}")
        clock.advance(10)
        await use_once(sessions, "log")
        await sessions.sweep()
        await driver.settle(sessions)
        assert sessions.stats().hook_errors == 0
        state = sessions.peek("log")
        assert state is not None
        assert len(state) == 500
        await driver.balanced(sessions)


# ---- one finalizer, every reason


class Service:
    """Not encodable, has a `close`: the shape of a plan service."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.closed: list[str] = []

    def close(self) -> None:
        self.closed.append("close")


class AwaitedService(Service):
    async def aclose(self) -> None:
        self.closed.append("aclose")


async def all_ways_out(clock: StillClock, sessions: Any) -> AsyncIterator[str]:
    await use_once(sessions, "a")
    clock.advance(10)
    assert await sessions.sweep() == 1
    yield "idle"
    async with sessions.use("a"):
        clock.advance(30)
        assert await sessions.sweep() == 0
    yield "age"
    for one in "abcd":
        await use_once(sessions, one)
    yield "count"
    for one in "bcd":
        await sessions.park(one)
    await use_once(sessions, "a")
    await sessions.shed(1)
    yield "pressure"
    await use_once(sessions, "a")
    await sessions.complete("a")
    yield "completed"
    await use_once(sessions, "a")
    await sessions.close("a")
    yield "closed"
    await use_once(sessions, "a")
    await sessions.park("a")
    yield "parked"
    owner = Owner()
    async with sessions.use("a"):
        sessions.bind("a", owner)
    del owner
    await sessions.sweep()
    yield "owner_gone"
    async with (hold := sessions.use("a")):
        hold.discard()
    yield "discarded"
    await use_once(sessions, "a")
    await sessions.shutdown()
    yield "shutdown"


@pytest.mark.parametrize("plain", [False, True])
async def test_every_way_out_runs_the_same_finalizer_once_and_then_closes_the_state(
    driver: Driver, plain: bool
) -> None:
    clock, left, scope = StillClock(), Left(), SessionScope()
    cleared: list[tuple[str, str]] = []
    notes: Any = scope.map("notes", on_leave=lambda i, _, reason: cleared.append((i, reason)))

    def leave(id: str, state: Service, reason: Any) -> None:
        assert state.closed == []
        left(id, state, reason)

    async def leave_slowly(id: str, state: Service, reason: Any) -> None:
        leave(id, state, reason)

    sessions = driver.sessions(
        Service if plain else AwaitedService,
        idle=10,
        max_age=30,
        max_sessions=3,
        on_open=lambda i, _: notes.__setitem__(i, "x"),
        on_leave=leave if plain else driver.hook(leave_slowly),
        scope=scope,
        clock=clock,
    )
    how = "aclose" if driver.kind == "asyncio" and not plain else "close"
    async for reason in all_ways_out(clock, sessions):
        await driver.settle(sessions)
        ours = [(one, state, why) for one, state, why in left if one == "a"]
        assert [why for _, _, why in ours] == [reason]
        assert ours[0][1].closed == [how]
        assert [why for one, why in cleared if one == "a"] == [reason]
        left.clear()
        cleared.clear()
    assert len(notes) == 0
    assert sessions.stats().hook_errors == 0
    await driver.balanced(sessions)


async def test_a_scope_is_cleared_also_with_what_a_store_keeps(driver: Driver) -> None:
    scope = SessionScope()
    locks: Any = scope.map("locks")
    async with driver.sessions(dict, scope=scope, store=MemoryStore()) as sessions:
        for way in (sessions.park, sessions.close, sessions.complete):
            async with sessions.use("a"):
                locks["a"] = object()
            await way("a")
            assert "a" not in locks
        async with (hold := sessions.use("a")):
            locks["a"] = object()
            hold.discard()
        await driver.settle(sessions)
        assert "a" not in locks


async def test_bytes_above_the_budget_go_in_idle_order(driver: Driver) -> None:
    left = Left()
    options: dict[str, Any] = {"max_bytes": 100, "max_sessions": None, "idle": None}
    async with driver.sessions(
        dict, weigh=lambda s: s.get("w", 0), on_leave=left, **options
    ) as sessions:
        for one, weight in (("a", 40), ("b", 40)):
            await use_once(sessions, one, w=weight)
        async with driver.holding(sessions, "a"):
            await use_once(sessions, "c", w=50)
            await driver.settle(sessions)
            assert [(one, why) for one, _, why in left] == [("b", "bytes")]
            assert sessions.stats().bytes == 90
        await use_once(sessions, "a", w=60)
        await driver.settle(sessions)
        assert sessions.ids() == ["a"]
        assert sessions.stats().left == {"bytes": 2}
        await driver.balanced(sessions)


async def test_close_state_can_be_switched_off(driver: Driver) -> None:
    async with driver.sessions(AwaitedService, close_state=False) as sessions:
        service = await use_once(sessions, "a")
        await sessions.close("a")
        assert service.closed == []


async def test_a_weigh_that_raises_is_counted(driver: Driver) -> None:
    weights: list[Any] = ["x", 3]

    def weigh(state: Any) -> int:
        return len(weights.pop(0))

    async with driver.sessions(dict, weigh=weigh, max_bytes=10) as sessions:
        await use_once(sessions, "a")
        assert sessions.stats().hook_errors == 1
        assert sessions.stats().bytes == 1


# ---- shedding, shutting down, figures


async def test_shedding_parks_the_longest_unused_first(driver: Driver) -> None:
    async with driver.sessions(dict) as sessions:
        for one in "abca":
            await use_once(sessions, one)
        assert await sessions.shed(2) == 2
        assert sessions.ids() == ["a"]
        assert sessions.stats().left == {"pressure": 2}


async def test_sweeping_inside_a_hold_waits_for_nobody_who_waits_for_that_hold(
    driver: Driver,
) -> None:
    clock = StillClock()
    async with driver.sessions(dict, max_sessions=2, idle=60, clock=clock) as sessions:
        await use_once(sessions, "old")
        clock.advance(60)
        async with sessions.use("a"), sessions.use("b"):
            waiter = driver.spawn(use_once, sessions, "c")
            await driver.waiting(sessions, 1)
            await sessions.sweep()
            assert not waiter.done()
        await waiter.result()


async def test_shutdown_parks_everything_and_refuses_new_uses(driver: Driver, store: Any) -> None:
    sessions = driver.sessions(dict, store=store, durability="park")
    for n in range(40):
        await use_once(sessions, f"{n}", n=n)
    assert await sessions.shutdown() == 0
    assert store.count("sessions") == 40
    assert store.stats().leases == 0
    await refused(sessions, "new", SessionClosed)
    await driver.balanced(sessions)


async def test_shutdown_returns_what_is_held_and_that_leaves_later(
    driver: Driver, store: Any
) -> None:
    left = Left()
    sessions = driver.sessions(dict, store=store, on_leave=left)
    await use_once(sessions, "free", n=1)
    async with driver.holding(sessions, "held") as holder:
        holder.state["n"] = 1
        assert await sessions.shutdown(grace=0) == 1
        assert [one for one, _, _ in left] == ["free"]
    assert left.reasons() == ["shutdown", "shutdown"]
    assert store.count("sessions") == 2
    await driver.balanced(sessions)


async def test_shutdown_waits_for_holders_within_the_grace(driver: Driver) -> None:
    sessions = driver.sessions(dict)
    async with driver.holding(sessions, "a") as holder:
        ending = driver.spawn(sessions.shutdown)
        await driver.until(lambda: sessions._core.table.closing)
        await holder.release()
        assert await ending.result() == 0


async def test_stats_are_ready_for_json(driver: Driver, store: Any) -> None:
    async with driver.sessions(dict, store=store, max_bytes="1 MiB") as sessions:
        await use_once(sessions, "a")
        await sessions.park("a")
        async with sessions.use("b"):
            record = json.loads(json.dumps(sessions.stats().as_dict()))
        assert record["items"] == record["held"] == record["leases"] == 1
        assert record["left"] == {"parked": 1}
        assert record["max_items"] == 1000
        assert record["max_bytes"] == 2**20
        assert record["kind"] == "sessions"
        assert "1 live" in repr(sessions)


async def test_a_plan_service_drops_in_without_a_store(driver: Driver) -> None:
    """Services that nobody cleared leave by themselves; clearing stays idempotent."""
    made: list[Service] = []

    def make(id: str) -> Service:
        made.append(Service(id))
        return made[-1]

    clock = StillClock()
    async with driver.sessions(make, idle="30 min", max_sessions=100, clock=clock) as sessions:
        for n in range(1000):
            service = await use_once(sessions, f"plan{n}", {"shared": True})
            assert service.id == f"plan{n}"
        await driver.settle(sessions)
        assert len(sessions) == 100
        assert sum(len(service.closed) for service in made) == 900
        assert await sessions.close("plan999")
        assert not await sessions.close("plan999")
        clock.advance(1800)
        await sessions.sweep()
        assert len(sessions) == 0
    assert all(service.closed == ["close"] for service in made)
