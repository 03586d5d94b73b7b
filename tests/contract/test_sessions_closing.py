"""Sessions on both drivers: closing, parking, tombstones, time and owners, [S11] to [S14]."""

# ruff: noqa: PT012 - a use is a block, and what it raises comes from the whole of it

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from event_loops import StillClock, events_of
from floodline.errors import SessionBusy, SessionClosed, SessionNotFound
from floodline.stores import MemoryStore
from session_drivers import Driver, FaultyStore, Left, Owner, refused, use_once

WAYS = {"park": "parked", "complete": "completed", "close": "closed"}

# ---- [S11] close, park, complete beside holders


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stored", [False, True])
async def test_s11_inside_ones_own_hold_they_mark_and_act_at_the_release(
    driver: Driver, way: str, stored: bool
) -> None:
    left, store = Left(), MemoryStore()
    async with driver.sessions(dict, store=store if stored else None, on_leave=left) as sessions:
        async with sessions.use("a") as state:
            await getattr(sessions, way)("a")
            state["n"] = 1
            assert left == []
        await driver.settle(sessions)
        assert left.reasons() == [WAYS[way]]
        assert "a" not in sessions
        assert store.count("sessions") == (stored and way != "close")
        assert store.stats().leases == 0
        await driver.balanced(sessions)


@pytest.mark.parametrize("way", WAYS)
async def test_s11_they_do_not_wait_for_another_holder(driver: Driver, way: str) -> None:
    async with driver.sessions(dict) as sessions:
        async with driver.holding(sessions, "a") as holder:
            await getattr(sessions, way)("a")
            assert sessions.peek("a") is (None if way == "close" else holder.state)
            if way == "close":  # nothing of it is kept, so its holder is told
                assert isinstance(await holder.error(), SessionClosed)
        await driver.settle(sessions)
        assert "a" not in sessions


async def test_s11_a_close_acts_also_when_the_body_raises_or_discards(
    driver: Driver, store: Any
) -> None:
    left = Left()
    async with driver.sessions(dict, store=store, on_error="discard", on_leave=left) as sessions:
        await use_once(sessions, "a", n=1)
        with pytest.raises(ZeroDivisionError):
            async with sessions.use("a"):
                await sessions.close("a")
                raise ZeroDivisionError
        await driver.settle(sessions)
        assert store.count("sessions") == 0
        await use_once(sessions, "a", n=1)
        async with (hold := sessions.use("a")):
            hold.discard()
            await sessions.close("a")
        await driver.settle(sessions)
        assert store.count("sessions") == 0
        assert left.reasons() == ["closed", "closed"]


async def test_s11_a_close_while_an_open_fails_deletes_the_row_all_the_same(
    driver: Driver,
) -> None:
    store, gate, fails = MemoryStore(), driver.gate(), [False]

    async def check(id: str, state: Any) -> None:
        if fails[0]:
            await gate.passed()
            raise PermissionError(id)

    async with driver.sessions(dict, store=store, on_open=driver.hook(check)) as sessions:
        await use_once(sessions, "a", n=1)
        await sessions.park("a")
        fails[0] = True
        opener = driver.spawn(use_once, sessions, "a")
        await driver.until(lambda: gate.reached)
        assert await sessions.close("a")
        gate.open()
        assert isinstance(await opener.error(), PermissionError)
        await driver.settle(sessions)
        assert store.count("sessions") == 0
        assert store.stats().leases == 0
        await driver.balanced(sessions)


async def test_s11_a_hold_from_before_a_close_cannot_write(driver: Driver, store: Any) -> None:
    async with driver.sessions(dict, store=store) as sessions:
        await use_once(sessions, "a", n=1)
        async with (hold := sessions.use("a")) as state:
            await sessions.close("a")
            state["n"] = 2
            with pytest.raises(SessionClosed, match="cannot write"):
                await hold.save()
        await driver.settle(sessions)
        assert store.count("sessions") == 0
        assert await use_once(sessions, "a") == {}


async def test_s11_a_close_wakes_waiters_and_later_ones_start_anew(driver: Driver) -> None:
    async with driver.sessions(dict) as sessions:
        async with sessions.use("a") as state:
            state["old"] = True
            waiters = [driver.spawn(use_once, sessions, "a") for _ in range(3)]
            await driver.waiting(sessions, 3)
            await sessions.close("a")
            assert [type(await waiter.error()) for waiter in waiters] == [SessionClosed] * 3
            late = driver.spawn(use_once, sessions, "a")
            await driver.waiting(sessions, 1)
        assert await late.result() == {}
        await driver.balanced(sessions)


async def test_s11_waiters_count_as_holds_for_park(driver: Driver) -> None:
    left = Left()
    async with driver.sessions(dict, on_leave=left) as sessions:
        async with sessions.use("a") as state:
            waiter = driver.spawn(use_once, sessions, "a")
            await driver.waiting(sessions, 1)
            await sessions.park("a")
        assert await waiter.result() is state
        await driver.settle(sessions)
        assert left.reasons() == ["parked"]


async def test_s11_close_is_idempotent_and_deletes_a_parked_row_without_loading_it(
    driver: Driver, store: Any
) -> None:
    left = Left()
    async with driver.sessions(dict, store=store, on_leave=left) as sessions:
        assert await sessions.close("a") is False
        await use_once(sessions, "a", n=1)
        assert await sessions.close("a") is True
        assert await sessions.close("a") is False
        await use_once(sessions, "a", n=1)
        await sessions.park("a")
        left.clear()
        assert await sessions.close("a") is True
        assert await sessions.close("a") is False
        assert sessions.stats().loaded == 0
        assert left == []
        assert store.count("sessions") == 0


async def test_s11_close_of_an_id_held_elsewhere_waits_like_a_use(
    driver: Driver, store: Any
) -> None:
    async with (
        driver.sessions(dict, store=store) as one,
        driver.sessions(dict, store=store, busy_wait=0) as other,
    ):
        async with one.use("a"):
            with pytest.raises(SessionBusy, match="another owner"):
                await other.close("a")
            assert len(other) == 0
        assert await other.close("a")
        await driver.balanced(other)


async def test_s11_a_close_that_the_store_refuses_is_raised_and_done_later(
    driver: Driver, faulty: FaultyStore
) -> None:
    left = Left()
    async with driver.sessions(dict, store=faulty.given, on_leave=left, busy_wait=0) as sessions:
        await use_once(sessions, "a", n=1)
        faulty.fail("delete")
        with pytest.raises(OSError, match="out of order"):
            await sessions.close("a")
        assert "a" not in sessions
        await refused(sessions, "a", SessionBusy)
        faulty.recover()
        await sessions.sweep()
        await driver.settle(sessions)
        assert left.reasons() == ["closed"]
        assert faulty.store.count("sessions") == 0


async def test_s11_what_could_not_be_closed_is_not_parked_because_its_owner_dies(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with driver.sessions(dict, store=faulty.given) as sessions:
        owner = Owner()
        async with sessions.use("a"):
            sessions.bind("a", owner)
        faulty.fail("delete")
        with pytest.raises(OSError, match="out of order"):
            await sessions.close("a")
        del owner
        await sessions.sweep()
        faulty.recover()
        await sessions.sweep()
        await driver.settle(sessions)
        assert faulty.store.count("sessions") == 0


async def test_s11_a_close_during_a_park_deletes_the_row_too(driver: Driver, store: Any) -> None:
    gate, left = driver.gate(), Left()

    async def finalizer(id: str, state: Any, reason: Any) -> None:
        left(id, state, reason)
        await gate.passed()

    async with driver.sessions(dict, store=store, on_leave=driver.hook(finalizer)) as sessions:
        await use_once(sessions, "a", n=1)
        parker = driver.spawn(sessions.park, "a")
        await driver.until(lambda: gate.reached)
        assert await sessions.close("a")
        gate.open()
        await parker.result()
        await driver.settle(sessions)
        assert left.reasons() == ["parked"]
        assert store.count("sessions") == store.stats().leases == 0
        await driver.balanced(sessions)


@pytest.mark.parametrize("shared", [False, True])
async def test_s11_any_use_cancels_linger(driver: Driver, shared: bool) -> None:
    clock, left = StillClock(), Left()
    async with driver.sessions(dict, linger=5, clock=clock, on_leave=left) as sessions:
        first = await use_once(sessions, "a")
        await sessions.complete("a")
        clock.advance(4)
        assert await use_once(sessions, "a", {"shared": shared}) is first
        clock.advance(5)
        assert await sessions.sweep() == 0
        await sessions.complete("a")
        clock.advance(5)
        assert await sessions.sweep() == 1
        assert left.reasons() == ["completed"]


@pytest.mark.parametrize("shared", [False, True])
async def test_s11_new_work_beside_the_hold_that_completed_cancels_it_too(
    driver: Driver, shared: bool
) -> None:
    left = Left()
    async with driver.sessions(dict, on_leave=left) as sessions:
        async with sessions.use("a"):
            await sessions.complete("a")
            job = driver.spawn(use_once, sessions, "a", {"shared": shared})
            await driver.until(lambda: sessions.stats().waiting or job.done())
        await job.result()
        await driver.settle(sessions)
        assert left == []


# ---- [S12] tombstones


async def test_s12_a_tombstone_refuses_a_closed_id_for_a_time(driver: Driver, store: Any) -> None:
    clock = StillClock()
    async with driver.sessions(dict, store=store, tombstone="10 min", clock=clock) as sessions:
        await use_once(sessions, "a")
        await sessions.close("a")
        await sessions.close("never lived")
        for one in ("a", "never lived"):
            await refused(sessions, one, SessionClosed, match="tombstone")
        assert sessions.stats().tombstones == 2
        clock.advance(600)
        assert await use_once(sessions, "a") == {}
        await sessions.sweep()
        assert sessions.stats().tombstones == 0


async def test_s12_without_tombstones_the_id_starts_anew(driver: Driver, store: Any) -> None:
    async with driver.sessions(dict, store=store) as sessions:
        await use_once(sessions, "a", n=1)
        await sessions.close("a")
        assert await use_once(sessions, "a") == {}


async def test_s12_tombstones_are_bounded(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodline.sessions._table.tombstones.MAX_TOMBS", 3)
    async with driver.sessions(dict, tombstone=60) as sessions:
        for n in range(5):
            await sessions.close(f"id{n}")
        assert sessions.stats().tombstones == 3
        await use_once(sessions, "id0")  # the oldest are forgotten


# ---- [S13] time, and owners


async def test_s13_idle_counts_from_the_end_of_the_last_use(driver: Driver) -> None:
    clock = StillClock()
    async with driver.sessions(dict, idle=10, clock=clock) as sessions:
        async with sessions.use("a") as state:
            clock.advance(100)
            assert await sessions.sweep() == 0
            assert sessions.peek("a") is state
        clock.advance(9)
        assert sessions.touch("a")
        clock.advance(9)
        assert await sessions.sweep() == 0
        assert "a" in sessions
        clock.advance(1)
        assert "a" not in sessions
        assert not sessions.touch("a")
        assert sessions.peek("a") is None
        assert len(sessions) == 0
        assert sessions.ids() == []
        assert await sessions.sweep() == 1


async def test_s13_max_age_ends_residence_and_not_the_session(driver: Driver, store: Any) -> None:
    clock, left = StillClock(), Left()
    async with driver.sessions(
        dict, store=store, max_age=10, clock=clock, on_leave=left
    ) as sessions:
        async with sessions.use("a") as state:
            clock.advance(50)
            await sessions.sweep()
            state["n"] = 1
            assert left == []
        await driver.settle(sessions)
        assert left.reasons() == ["age"]
        assert await use_once(sessions, "a") == {"n": 1}
        clock.advance(10)
        assert await use_once(sessions, "a") == {"n": 1}  # without any sweep
        await driver.settle(sessions)
        assert left.reasons() == ["age", "age"]


async def test_s13_max_age_counts_from_the_opening_however_recent_the_last_use(
    driver: Driver,
) -> None:
    clock, left = StillClock(), Left()
    async with driver.sessions(dict, idle=60, max_age=100, clock=clock, on_leave=left) as sessions:
        await use_once(sessions, "a")
        clock.advance(59)
        sessions.touch("a")
        clock.advance(40)
        assert await sessions.sweep() == 0
        clock.advance(1)
        assert await sessions.sweep() == 1
        assert left.reasons() == ["age"]


async def test_s13_bounds_hold_without_any_sweeper(driver: Driver) -> None:
    clock, left = StillClock(), Left()
    async with driver.sessions(
        dict, idle=10, clock=clock, sweep_every=None, on_leave=left
    ) as sessions:
        await use_once(sessions, "a", n=1)
        await use_once(sessions, "b")
        clock.advance(10)
        assert await use_once(sessions, "a") == {}
        await driver.settle(sessions)
        assert sorted((one, why) for one, _, why in left) == [("a", "idle"), ("b", "idle")]
        await driver.balanced(sessions)


async def test_e3_a_clock_that_jumps_changes_no_order(driver: Driver) -> None:
    """[E3]"""
    clock = StillClock()
    async with driver.sessions(dict, max_sessions=3, clock=clock) as sessions:
        for one, jump in (("a", -500), ("b", 300), ("c", -900)):
            clock.advance(jump)
            await use_once(sessions, one)
        await use_once(sessions, "d")
        await driver.settle(sessions)
        assert sessions.ids() == ["b", "c", "d"]


async def test_bind_parks_when_the_last_owner_has_died(driver: Driver, store: Any) -> None:
    left = Left()
    async with driver.sessions(dict, store=store, on_leave=left) as sessions:
        first, second = Owner(), Owner()
        async with sessions.use("a"):
            for owner in (first, second, second):
                sessions.bind("a", owner)
        del first, owner
        await sessions.sweep()
        assert left == []
        del second
        await use_once(sessions, "b")  # any use sees to it
        await driver.until(lambda: left)
        assert left.reasons() == ["owner_gone"]
        assert "a" not in sessions


async def test_bind_tells_equal_owners_apart_and_asks_them_nothing(driver: Driver) -> None:
    class Equal:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return True

    left = Left()
    async with driver.sessions(dict, on_leave=left) as sessions:
        first, second = Equal(), Equal()
        await use_once(sessions, "a")
        sessions.bind("a", first)
        sessions.bind("a", second)
        del first
        await sessions.sweep()
        assert left == []
        del second
        await sessions.sweep()
        assert left.reasons() == ["owner_gone"]


async def test_bind_waits_for_holders_and_needs_a_live_session(driver: Driver) -> None:
    left = Left()
    async with driver.sessions(dict, on_leave=left) as sessions:
        with pytest.raises(SessionNotFound, match="not live"):
            sessions.bind("a", Owner())
        async with sessions.use("a"):
            sessions.bind("a", Owner())
            await sessions.sweep()
            assert left == []
        await driver.settle(sessions)
        assert left.reasons() == ["owner_gone"]


# ---- [S14] gone means gone


class Service:
    """A state that can be referred to weakly."""


async def test_s14_a_retained_state_is_reported_after_a_collection_and_a_grace(
    driver: Driver,
) -> None:
    clock, name = StillClock(), f"retaining on {driver.kind}"
    async with driver.sessions(Service, clock=clock, name=name) as sessions:
        service = await use_once(sessions, "a")
        await use_once(sessions, "b")
        await sessions.close("a")
        await sessions.close("b")
        await sessions.sweep()
        clock.advance(31)
        await sessions.sweep()
        assert sessions.stats().retained == 0  # no full collection since
        gc.collect()
        await sessions.sweep()
        assert sessions.stats().retained == 1
        await sessions.sweep()
        assert sessions.stats().retained == 1
        assert [e.fields["label"] for e in events_of("retained", name)] == ["session a"]
        del service


async def test_s14_a_freed_state_is_not_reported_and_others_are_unchecked(driver: Driver) -> None:
    clock = StillClock()
    async with driver.sessions(Service, clock=clock) as sessions:
        gone = weakref.ref(await use_once(sessions, "a"))
        await sessions.close("a")
        await driver.settle(sessions)
        await driver.until(lambda: gone() is None)  # nothing of the hold keeps it
        clock.advance(31)
        gc.collect()
        await sessions.sweep()
        assert (sessions.stats().retained, sessions.stats().unchecked) == (0, 0)
    async with driver.sessions(dict) as plain:
        await use_once(plain, "a")
        await plain.close("a")
        assert plain.stats().unchecked == 1
