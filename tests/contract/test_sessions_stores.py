"""Sessions on both drivers, on a store: the rules [T1] to [T7] of the semantics."""

# ruff: noqa: PT012, SIM117 - a use is a block, and what it raises comes from the whole of it

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from event_loops import StillClock, events_of
from floodline import Reason, SessionScope
from floodline.errors import (
    CodecError,
    SaveFailed,
    SessionBusy,
    SessionConflict,
    SessionNotFound,
    StoreUnavailable,
    UnreadableRecord,
)
from floodline.stores import MemoryStore, new_owner
from session_drivers import Driver, FaultyStore, Left, Owner, refused, use_once


async def use(sessions: Any, id: str, **change: Any) -> dict[str, Any]:
    """Use a session, and return a copy of its state as it was then."""
    async with sessions.use(id) as state:
        state.update(change)
        return dict(state)


async def add(sessions: Any, id: str = "a", by: int = 1) -> int:
    async with sessions.use(id) as state:
        state["n"] = state.get("n", 0) + by
        return int(state["n"])


async def overwrite(driver: Driver, store: Any, id: str, sessions: Any) -> None:
    """Take the lease away and write, as another owner would after a long pause of ours."""
    async with driver.sessions(dict, store=store, name=sessions.name) as other:
        await use(other, id, theirs=True)


# ---- every kind of store


async def test_t6_a_session_comes_back_from_every_kind_of_store(
    driver: Driver, anystore: tuple[Any, Any]
) -> None:
    given, real = anystore
    async with driver.sessions(dict, store=given, max_sessions=5) as sessions:
        for number in range(20):
            await add(sessions, f"{number}", number)
        await driver.settle(sessions)
        assert real.stats().leases == 0
        for number in range(20):
            assert await add(sessions, f"{number}", 1) == number + 1
    assert real.stats().rows == 20
    assert real.stats().leases == 0
    await driver.balanced(sessions)


async def test_t2_many_callers_lose_no_update(driver: Driver, anystore: tuple[Any, Any]) -> None:
    given, _ = anystore
    async with driver.sessions(dict, store=given, max_sessions=2) as sessions:
        jobs = [driver.spawn(add, sessions, f"{n % 4}") for n in range(40)]
        for job in jobs:
            await job.result()
        await driver.settle(sessions)
        assert [await add(sessions, f"{n}", 0) for n in range(4)] == [10] * 4
        await driver.balanced(sessions)


async def test_t1_two_owners_on_one_store_see_each_others_writes(
    driver: Driver, anystore: tuple[Any, Any]
) -> None:
    given, _ = anystore
    left = Left()
    async with (
        driver.sessions(dict, store=given, on_leave=left) as one,
        driver.sessions(dict, store=given) as two,
    ):
        assert [await add(one), await add(two), await add(one)] == [1, 2, 3]
        await driver.settle(one)
        assert left.reasons() == ["stale"]
        jobs = [driver.spawn(add, sessions) for sessions in (one, two) for _ in range(10)]
        assert sorted([await job.result() for job in jobs]) == list(range(4, 24))
        assert await add(one, by=0) == await add(two, by=0) == 23
        await driver.balanced(one)
        await driver.balanced(two)


# ---- [T1] leases and stale copies


async def test_t1_a_lease_covers_the_hold_and_not_the_residence(driver: Driver, store: Any) -> None:
    async with driver.sessions(dict, store=store) as sessions:
        async with sessions.use("a"):
            assert store.stats().leases == sessions.stats().leases == 1
        assert store.stats().leases == sessions.stats().leases == 0
        assert "a" in sessions


async def test_t1_with_durability_park_the_lease_stays_while_live(
    driver: Driver, store: Any
) -> None:
    async with driver.sessions(dict, store=store, durability="park") as sessions:
        await use(sessions, "a", n=1)
        assert store.stats().leases == 1
        assert store.count("sessions") == 0
        await sessions.park("a")
        assert store.stats().leases == 0
        assert store.count("sessions") == 1


async def test_t1_a_stale_copy_leaves_and_is_reloaded_before_the_body_runs(
    driver: Driver, store: Any
) -> None:
    left, scope = Left(), SessionScope()
    notes: Any = scope.map("notes")
    async with (
        driver.sessions(dict, store=store, scope=scope, on_leave=left) as one,
        driver.sessions(dict, store=store) as other,
    ):
        await use(one, "a", n=1)
        notes["a"] = "old"
        await use(other, "a", n=2)
        assert left == []
        assert await use(one, "a") == {"n": 2}
        await driver.settle(one)
        assert left == [("a", {"n": 1}, "stale")]
        assert "a" not in notes
        assert one.stats().left == {"stale": 1}
        await driver.balanced(one)


async def test_t1_a_stale_copy_with_a_pin_is_finalized_once_when_the_pin_goes(
    driver: Driver, store: Any
) -> None:
    left, scope = Left(), SessionScope()
    notes: Any = scope.map("notes")
    async with (
        driver.sessions(dict, store=store, scope=scope, on_leave=left) as one,
        driver.sessions(dict, store=store) as other,
    ):
        await use(one, "a", n=1)
        async with driver.holding(one, "a", shared=True) as reader:
            await use(other, "a", n=2)
            assert await use(one, "a") == {"n": 2}
            notes["a"] = "new"
            assert reader.state == {"n": 1}
            assert left == []
        assert left.reasons() == ["stale"]
        assert notes["a"] == "new"  # it belongs to the session that is live
        await driver.balanced(one)


async def test_t1_bound_owners_follow_a_reload(driver: Driver, store: Any) -> None:
    owner = Owner()
    async with (
        driver.sessions(dict, store=store) as one,
        driver.sessions(dict, store=store) as other,
    ):
        await use(one, "a", n=1)
        one.bind("a", owner)
        await use(other, "a", n=2)
        await use(one, "a")
        del owner
        await one.sweep()
        await driver.settle(one)
        assert one.stats().left == {"stale": 1, "owner_gone": 1}


async def test_t1_a_session_deleted_elsewhere_starts_anew_or_is_not_found(
    driver: Driver, store: Any
) -> None:
    async with (
        driver.sessions(dict, store=store) as one,
        driver.sessions(dict, store=store) as other,
    ):
        await use(one, "a", n=1)
        await other.close("a")
        await refused(one, "a", SessionNotFound, create=False)
        await driver.balanced(one)
        assert await use(one, "a") == {}


async def test_t1_busy_elsewhere_is_waited_for_like_a_local_holder(
    driver: Driver, store: Any
) -> None:
    async with (
        driver.sessions(dict, store=store) as one,
        driver.sessions(dict, store=store) as other,
    ):
        async with driver.holding(one, "a") as holder:
            await refused(other, "a", SessionBusy, match="another owner", wait=0)
            assert len(other) == 0
            await driver.balanced(other)
            waiter = driver.spawn(use, other, "a")
            await driver.until(lambda: "a" in other._core.table.entries)
            assert other.stats().leases == 0
            holder.state["n"] = 1
        assert await waiter.result() == {"n": 1}


async def test_t1_the_lease_of_a_dead_owner_is_taken_over_at_once(
    driver: Driver, store: Any
) -> None:
    dead = new_owner("dead").rsplit(":", 2)[0] + ":1:00"  # our pid, but born at another time
    store.acquire("sessions", "a", dead, lease=3600.0)
    async with driver.sessions(dict, store=store, busy_wait=0) as sessions:
        await use(sessions, "a", n=1)
        assert sessions.stats().saved == 1


async def test_t1_leases_are_renewed_during_long_bodies(
    driver: Driver, store: Any, wall: StillClock
) -> None:
    async with driver.sessions(dict, store=store, lease=15) as sessions:
        async with sessions.use("a") as state:
            for _ in range(5):
                wall.advance(10)  # less than a lease, but in all more than three
                await driver.renew(sessions)
            state["n"] = 1
        assert store.load("sessions", "a").version == 1
        assert sessions.stats().leases_lost == 0


async def test_t1_a_lost_lease_refuses_the_save_and_keeps_the_bytes(
    driver: Driver, store: Any, wall: StillClock
) -> None:
    """[T1], [T3]"""
    left, name = Left(), "lost"
    async with driver.sessions(dict, store=store, on_leave=left, name=name) as sessions:
        await use(sessions, "a", n=1)
        with pytest.raises(SessionConflict):
            async with sessions.use("a") as state:
                state["n"] = 2
                wall.advance(20)
                await overwrite(driver, store, "a", sessions)
        await driver.settle(sessions)
        assert left == [("a", {"n": 2}, "discarded")]
        (kept,) = store.conflicts("lost")
        assert b"n\x02" in kept.envelope
        assert sessions.stats().conflicts == 1
        assert await use(sessions, "a") == {"n": 1, "theirs": True}
        await driver.balanced(sessions)


async def test_t1_a_lease_found_lost_is_reported_and_taken_anew(
    driver: Driver, store: Any, wall: StillClock
) -> None:
    name = f"parked on {driver.kind}"
    async with driver.sessions(dict, store=store, durability="park", name=name) as sessions:
        await use(sessions, "a", n=1)
        wall.advance(20)
        await overwrite(driver, store, "a", sessions)
        await driver.renew(sessions)
        assert sessions.stats().leases_lost == 1
        assert events_of("lease_lost", name)[-1].fields["id"] == "a"
        assert await use(sessions, "a") == {"theirs": True}
        await driver.settle(sessions)
        assert len(store.conflicts(name)) == 1
        assert sessions.stats().left == {"stale": 1}


async def test_t1_a_renewal_that_fails_is_counted(driver: Driver, faulty: FaultyStore) -> None:
    async with driver.sessions(dict, store=faulty.given) as sessions:
        async with sessions.use("a"):
            faulty.fail("renew")
            await driver.renew(sessions)
            assert sessions.stats().hook_errors == 1
            faulty.recover()


async def test_t1_after_a_save_of_which_nothing_was_heard_the_lease_is_asked_for_again(
    driver: Driver, faulty: FaultyStore
) -> None:
    lost = StoreUnavailable("the answer was lost")
    ours = driver.sessions(dict, store=faulty.given, sweep_every=3600)
    async with driver.sessions(dict, store=faulty.store) as theirs:
        faulty.after["save"] = faulty.before["written"] = lost
        with pytest.raises(SaveFailed):
            await use(ours, "a", n=1)
        await driver.settle(ours)
        async with theirs.use("a") as state:
            assert state == {"n": 1}
            state["n"] = 2
            faulty.recover()
            await refused(ours, "a", SessionBusy, wait=0)
        assert await use(ours, "a") == {"n": 2}
        await ours.shutdown()


# ---- [T2] names


async def test_t2_sessions_of_different_names_do_not_mix(driver: Driver, store: Any) -> None:
    async with (
        driver.sessions(dict, store=store, name="x") as x,
        driver.sessions(dict, store=store, name="y") as y,
    ):
        await use(x, "a", n=1)
        assert await use(y, "a") == {}
        await x.close("a")
        assert store.count("y") == 1


# ---- [T3] conflicts, retention


async def test_t3_a_checkpoint_that_conflicts_discards_the_object(
    driver: Driver, store: Any, wall: StillClock
) -> None:
    async with driver.sessions(dict, store=store) as sessions:
        with pytest.raises(SessionConflict):
            async with (hold := sessions.use("a")) as state:
                state["n"] = 1
                wall.advance(20)
                await overwrite(driver, store, "a", sessions)
                await hold.save()
        await driver.settle(sessions)
        assert "a" not in sessions
        assert await use(sessions, "a") == {"theirs": True}
        await driver.balanced(sessions)


async def test_t3_a_conflict_on_the_way_out_keeps_the_bytes(
    driver: Driver, store: Any, wall: StillClock
) -> None:
    left = Left()
    async with driver.sessions(dict, store=store, durability="park", on_leave=left) as sessions:
        await use(sessions, "a", n=1)
        wall.advance(20)
        await overwrite(driver, store, "a", sessions)
        await sessions.park("a")
        assert left.reasons() == ["discarded"]
        assert len(store.conflicts("sessions")) == 1
        assert await use(sessions, "a") == {"theirs": True}


async def test_t3_a_retry_that_conflicts_keeps_the_bytes_once(
    driver: Driver, faulty: FaultyStore, wall: StillClock
) -> None:
    real = faulty.store = MemoryStore(clock=wall, wall=wall)
    async with driver.sessions(dict, store=faulty.given) as sessions:
        faulty.fail("save")
        with pytest.raises(SaveFailed):
            await use(sessions, "a", n=1)
        await driver.settle(sessions)
        faulty.recover()
        wall.advance(20)
        await overwrite(driver, real, "a", sessions)
        for _ in range(3):
            await sessions.sweep()
        await driver.settle(sessions)
        assert len(real.conflicts("sessions")) == 1
        assert sessions.stats().unsaved == 0
        assert await use(sessions, "a") == {"theirs": True}
        await driver.balanced(sessions)


async def test_t3_rows_unused_for_long_are_purged(
    driver: Driver, store: Any, wall: StillClock
) -> None:
    async with driver.sessions(dict, store=store, retain="1 h") as sessions:
        await use(sessions, "old")
        await sessions.park("old")
        wall.advance(3000)
        await use(sessions, "new")
        await sessions.park("new")
        wall.advance(700)
        await sessions.sweep()
        assert store.ids("sessions") == ["new"]
        assert sessions.stats().purged == 1


async def test_t3_a_purge_that_fails_is_counted(driver: Driver, faulty: FaultyStore) -> None:
    async with driver.sessions(dict, store=faulty.given, retain="1 h") as sessions:
        faulty.fail("purge")
        await sessions.sweep()
        assert sessions.stats().hook_errors == 1


# ---- [T4] types


@dataclass
class Plan:
    goal: str = ""
    steps: list[str] = field(default_factory=list)


async def test_t4_the_type_is_that_of_the_factory(driver: Driver, store: Any) -> None:
    def make(id: str) -> Plan:
        return Plan(id)

    async with driver.sessions(make, store=store) as sessions:
        async with sessions.use("a") as plan:
            plan.steps.append("think")
        await sessions.park("a")
        assert await use_once(sessions, "a") == Plan("a", ["think"])


async def test_t4_a_first_save_that_comes_back_different_says_where(
    driver: Driver, store: Any
) -> None:
    async with driver.sessions(dict, store=store) as sessions:
        with pytest.raises(CodecError, match=r"\$\.x: Reason came back as str"):
            await use(sessions, "a", x=Reason.idle)
        await driver.settle(sessions)
        assert sessions.stats().unsaved == 1
        assert store.count("sessions") == 0
        assert await use(sessions, "a", x=[1, 2]) == {"x": [1, 2]}
        assert sessions.stats().unsaved == 0


async def test_t4_what_cannot_be_encoded_says_where_and_stays(driver: Driver, store: Any) -> None:
    async with driver.sessions(dict, store=store, durability="park") as sessions:
        await use(sessions, "a", lock=threading.Lock())
        await sessions.park("a")
        assert "a" in sessions
        assert sessions.stats().unsaved == 1
        async with sessions.use("a") as state:
            del state["lock"]
        await sessions.park("a")
        assert "a" not in sessions


def write_rubbish(store: Any) -> None:
    grant = store.acquire("sessions", "a", "me", lease=10)
    store.save(
        "sessions", "a", b"rubbish", fence=grant.fence, version=0, write_id="w", release=True
    )


async def test_an_unreadable_record_is_quarantined_and_raises_every_time(
    driver: Driver, store: Any
) -> None:
    write_rubbish(store)
    async with driver.sessions(dict, store=store) as sessions:
        for _ in range(2):
            for shared in (False, True):
                await refused(sessions, "a", UnreadableRecord, shared=shared)
        assert store.load("sessions", "a").envelope == b"rubbish"
        (kept,) = store.quarantined("sessions")
        assert kept.envelope == b"rubbish"
        assert sessions.stats().quarantined == 4
        assert store.stats().leases == 0
        await driver.balanced(sessions)
        assert await sessions.close("a")  # closing needs no reading
        assert await use(sessions, "a") == {}


async def test_an_unreadable_record_raises_also_if_the_quarantine_is_down(
    driver: Driver, faulty: FaultyStore
) -> None:
    write_rubbish(faulty.store)
    async with driver.sessions(dict, store=faulty.given) as sessions:
        faulty.fail("quarantine", "release")
        await refused(sessions, "a", UnreadableRecord)
        assert sessions.stats().hook_errors == 2
        faulty.recover()


# ---- [T5] weight


async def test_t5_a_session_weighs_its_last_envelope(driver: Driver, store: Any) -> None:
    async with driver.sessions(dict, store=store, max_bytes=5000) as sessions:
        await use(sessions, "a", text="x" * 1000)
        weight = sessions.stats().bytes
        assert weight == len(store.load("sessions", "a").envelope)
        await use(sessions, "b", text="x" * 3000)
        await use(sessions, "c", text="x" * 2000)
        await driver.settle(sessions)
        assert sessions.ids() == ["c"]
        assert sessions.stats().left == {"bytes": 2}
        await use(sessions, "a")
        assert sessions.stats().bytes == 2 * weight + 1000


# ---- [T7] lost answers


async def test_t7_a_save_that_was_done_but_raised_is_found_out(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with driver.sessions(dict, store=faulty.given) as sessions:
        faulty.after["save"] = TimeoutError("no answer")
        assert await use(sessions, "a", n=1) == {"n": 1}
        assert sessions.stats().save_errors == 0
        assert faulty.store.load("sessions", "a").version == 1
        faulty.recover()
        await use(sessions, "a", n=2)
        assert faulty.store.load("sessions", "a").version == 2
    assert faulty.store.stats().conflicts == 0


@pytest.mark.parametrize("change", [{}, {"n": 2}, {"n": 0}])
@pytest.mark.parametrize("durability", ["use", "park"])
async def test_t7_a_save_of_which_nothing_is_heard_is_found_out_later(
    driver: Driver, faulty: FaultyStore, change: dict[str, int], durability: Any
) -> None:
    """Neither the write nor the question after it is answered, though the write was done."""
    async with driver.sessions(dict, store=faulty.given, durability=durability) as sessions:
        await use(sessions, "a", n=0)
        if durability == "park":
            await sessions.park("a")
            await use(sessions, "a", n=1)
        faulty.after["save"] = TimeoutError("no answer")
        faulty.before["written"] = TimeoutError("no answer")
        if durability == "park":
            await sessions.park("a")
        else:
            with pytest.raises(SaveFailed):
                await use(sessions, "a", n=1)
        await driver.settle(sessions)
        assert sessions.stats().unsaved == 1
        faulty.recover()
        if change:
            await use(sessions, "a", **change)
        await sessions.sweep()
        await driver.settle(sessions)
        assert sessions.stats().unsaved == 0
        await sessions.park("a")
        assert await use(sessions, "a") == ({"n": 1} | change)
        assert faulty.store.stats().conflicts == 0
        assert sessions.stats().conflicts == 0


async def test_t7_a_lost_write_that_others_have_overwritten_is_a_conflict(
    driver: Driver, faulty: FaultyStore, wall: StillClock
) -> None:
    real = faulty.store = MemoryStore(clock=wall, wall=wall)
    async with driver.sessions(dict, store=faulty.given) as sessions:
        faulty.before = {"save": OSError("down"), "written": OSError("down")}
        with pytest.raises(SaveFailed):
            await use(sessions, "a", n=1)
        await driver.settle(sessions)
        faulty.recover()
        wall.advance(20)
        await overwrite(driver, real, "a", sessions)
        await sessions.sweep()
        await driver.settle(sessions)
        assert await use(sessions, "a") == {"theirs": True}
        assert len(real.conflicts("sessions")) == 1
        await driver.balanced(sessions)


@pytest.mark.parametrize("method", ["acquire", "release"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_s9_an_open_that_the_store_fails_leaves_nothing_behind(
    driver: Driver, faulty: FaultyStore, method: str, when: str
) -> None:
    async with driver.sessions(dict, store=faulty.given) as sessions:
        getattr(faulty, when)[method] = StoreUnavailable("down")
        with pytest.raises((StoreUnavailable, SessionNotFound)):
            async with sessions.use("a", create=False):
                raise AssertionError
        faulty.recover()
        await driver.balanced(sessions)
        assert await add(sessions) == 1


# ---- sweeping


async def test_the_sweeper_tells_what_is_parked(driver: Driver, store: Any) -> None:
    async with driver.sessions(dict, store=store, clock=StillClock()) as sessions:
        await use(sessions, "a")
        await sessions.park("a")
        await use(sessions, "b")
        await sessions.sweep()
        assert sessions.stats().parked == 1
        assert sessions.stats().store_rows == 2


async def test_s9_the_ticker_tries_again_what_the_store_refused(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with driver.sessions(dict, store=faulty.given, sweep_every="10 ms") as sessions:
        faulty.fail("save")
        with pytest.raises(SaveFailed):
            await use(sessions, "a", n=1)
        faulty.recover()
        await driver.until(lambda: faulty.store.load("sessions", "a"))
        await driver.settle(sessions)
        assert sessions.stats().unsaved == 0
