"""`Sessions` for threads on a store: the rules [T1] to [T5] and [T7] of SEMANTICS."""

# ruff: noqa: PT012, SIM117 - a use is a block, and what it raises comes from the whole of it

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from floodline import Reason, Sessions, SessionScope
from floodline.errors import (
    CodecError,
    SaveFailed,
    SessionBusy,
    SessionConflict,
    SessionNotFound,
    StoreUnavailable,
    UnreadableRecord,
)
from floodline.stores import MemoryStore, SQLiteStore, new_owner
from worker_threads import (
    PATIENCE,
    Faulty,
    StillClock,
    Worker,
    assert_balanced,
    events_of,
    holding,
    until,
)


class Wall:
    """Both clocks of a store."""

    def __init__(self) -> None:
        self.now = 10_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, wall: Wall) -> Iterator[Any]:
    store: Any
    if request.param == "memory":
        store = MemoryStore(clock=wall, wall=wall)
    else:
        store = SQLiteStore(tmp_path / "s.db", clock=wall, wall=wall)
    yield store
    store.close()


def use_once(sessions: Sessions[Any], id: str, **change: Any) -> dict[str, Any]:
    with sessions.use(id) as state:
        state.update(change)
        return dict(state)


def overwrite(store: Any, id: str, sessions: Sessions[Any]) -> None:
    """Take the lease away and write, as another owner would after a long pause of ours."""
    with Sessions(dict, store=store, name=sessions.name) as other:
        use_once(other, id, theirs=True)


# ---- [T1] leases and stale copies


def test_t1_a_lease_covers_the_hold_and_not_the_residence(store: Any) -> None:
    with Sessions(dict, store=store) as sessions:
        with sessions.use("a"):
            assert store.stats().leases == 1
        assert store.stats().leases == 0
        assert "a" in sessions


def test_t1_with_durability_park_the_lease_stays_while_live(store: Any) -> None:
    with Sessions(dict, store=store, durability="park") as sessions:
        use_once(sessions, "a", n=1)
        assert store.stats().leases == 1
        assert store.count("sessions") == 0
        sessions.park("a")
        assert store.stats().leases == 0
        assert store.count("sessions") == 1


def test_t1_a_stale_copy_leaves_and_is_reloaded_before_the_body_runs(store: Any) -> None:
    left: list[Any] = []
    scope = SessionScope()
    notes = scope.map("notes")
    with (
        Sessions(
            dict, store=store, scope=scope, on_leave=lambda i, s, r: left.append((i, s, r))
        ) as one,
        Sessions(dict, store=store) as other,
    ):
        use_once(one, "a", n=1)
        notes["a"] = "old"
        use_once(other, "a", n=2)
        assert left == []
        assert use_once(one, "a") == {"n": 2}
        assert left == [("a", {"n": 1}, Reason.stale)]
        assert "a" not in notes
        assert one.stats().left == {"stale": 1}
        assert_balanced(one)


def test_t1_two_owners_count_together(store: Any) -> None:
    with Sessions(dict, store=store) as one, Sessions(dict, store=store) as other:

        def count(sessions: Sessions[Any]) -> None:
            for _ in range(20):
                with sessions.use("a") as state:
                    state["n"] = state.get("n", 0) + 1

        workers = [Worker(count, sessions) for sessions in (one, other, one, other)]
        for worker in workers:
            worker.result()
        assert use_once(one, "a") == use_once(other, "a") == {"n": 80}


def test_t1_a_stale_copy_with_a_pin_is_finalized_once_when_the_pin_goes(store: Any) -> None:
    left: list[Any] = []
    scope = SessionScope()
    notes = scope.map("notes")
    with (
        Sessions(
            dict, store=store, scope=scope, on_leave=lambda i, s, r: left.append(str(r))
        ) as one,
        Sessions(dict, store=store) as other,
    ):
        use_once(one, "a", n=1)
        with holding(one, "a", shared=True) as reader:
            use_once(other, "a", n=2)
            assert use_once(one, "a") == {"n": 2}
            notes["a"] = "new"
            assert reader.state == {"n": 1}
            assert left == []
        assert left == ["stale"]
        assert notes["a"] == "new"  # it belongs to the session that is live
        assert_balanced(one)


def test_t1_bound_owners_follow_a_reload(store: Any) -> None:
    class Owner:
        pass

    owner = Owner()
    with Sessions(dict, store=store) as one, Sessions(dict, store=store) as other:
        use_once(one, "a", n=1)
        one.bind("a", owner)
        use_once(other, "a", n=2)
        use_once(one, "a")
        del owner
        one.sweep()
        assert one.stats().left == {"stale": 1, "owner_gone": 1}


def test_t1_a_session_deleted_elsewhere_starts_anew_or_is_not_found(store: Any) -> None:
    with Sessions(dict, store=store) as one, Sessions(dict, store=store) as other:
        use_once(one, "a", n=1)
        other.close("a")
        with pytest.raises(SessionNotFound):
            one.use("a", create=False).__enter__()
        assert_balanced(one)
        assert use_once(one, "a") == {}


def test_t1_busy_elsewhere_is_waited_for_like_a_local_holder(store: Any) -> None:
    with Sessions(dict, store=store) as one, Sessions(dict, store=store) as other:
        with holding(one, "a") as holder:
            with pytest.raises(SessionBusy, match="another owner"):
                other.use("a", wait=0).__enter__()
            assert_balanced(other)
            waiter = Worker(lambda: use_once(other, "a"))
            until(lambda: other.stats().leases == 0 and "a" in other._core.table.entries)
            holder.state["n"] = 1
        assert waiter.result() == {"n": 1}


def test_t1_the_lease_of_a_dead_owner_is_taken_over_at_once(store: Any) -> None:
    dead = new_owner("dead").rsplit(":", 2)[0] + ":1:00"  # our pid, but born at another time
    store.acquire("sessions", "a", dead, lease=3600.0)
    with Sessions(dict, store=store, busy_wait=0) as sessions:
        use_once(sessions, "a", n=1)
        assert sessions.stats().saved == 1


def test_t1_leases_are_renewed_during_long_bodies(store: Any, wall: Wall) -> None:
    with Sessions(dict, store=store, lease=15) as sessions:
        with sessions.use("a") as state:
            for _ in range(5):
                wall.now += 10
                assert sessions._renew_tick() == 5
            state["n"] = 1
        assert store.load("sessions", "a").version == 1
        assert sessions._renew_tick() == 5
        sessions.park("a")
        assert sessions._renew_tick() is None


def test_t1_a_lost_lease_refuses_the_save_and_keeps_the_bytes(store: Any, wall: Wall) -> None:
    """[T1], [T3]"""
    left: list[Any] = []
    with Sessions(
        dict, store=store, on_leave=lambda i, s, r: left.append((s, str(r))), name="lost"
    ) as sessions:
        use_once(sessions, "a", n=1)
        with pytest.raises(SessionConflict):
            with sessions.use("a") as state:
                state["n"] = 2
                wall.now += 20
                overwrite(store, "a", sessions)
        assert left == [({"n": 2}, "discarded")]
        (kept,) = store.conflicts("lost")
        assert b"n\x02" in kept.envelope
        assert sessions.stats().conflicts == 1
        assert use_once(sessions, "a") == {"n": 1, "theirs": True}
        assert_balanced(sessions)


def test_t1_a_lease_found_lost_is_reported_and_taken_anew(store: Any, wall: Wall) -> None:
    with Sessions(dict, store=store, durability="park", name="parked") as sessions:
        use_once(sessions, "a", n=1)
        wall.now += 20
        overwrite(store, "a", sessions)
        sessions._renew_tick()
        assert sessions.stats().leases_lost == 1
        assert events_of("lease_lost", "parked")[-1].fields["id"] == "a"
        assert use_once(sessions, "a") == {"theirs": True}
        assert len(store.conflicts("parked")) == 1
        assert sessions.stats().left == {"stale": 1}


def test_t1_a_renewal_that_fails_is_counted() -> None:
    store = Faulty()
    with Sessions(dict, store=store) as sessions, sessions.use("a"):
        store.fail("renew")
        assert sessions._renew_tick() == 5
        assert sessions.stats().hook_errors == 1
        store.recover()


# ---- [T2] names


def test_t2_sessions_of_different_names_do_not_mix(store: Any) -> None:
    with Sessions(dict, store=store, name="x") as x, Sessions(dict, store=store, name="y") as y:
        use_once(x, "a", n=1)
        assert use_once(y, "a") == {}
        x.close("a")
        assert store.count("y") == 1


# ---- [T3] conflicts, retention


def test_t3_a_checkpoint_that_conflicts_discards_the_object(store: Any, wall: Wall) -> None:
    with Sessions(dict, store=store) as sessions:
        with pytest.raises(SessionConflict):
            with (hold := sessions.use("a")) as state:
                state["n"] = 1
                wall.now += 20
                overwrite(store, "a", sessions)
                hold.save()
        assert "a" not in sessions
        assert use_once(sessions, "a") == {"theirs": True}
        assert_balanced(sessions)


def test_t3_a_conflict_on_the_way_out_keeps_the_bytes(store: Any, wall: Wall) -> None:
    left: list[str] = []
    with Sessions(
        dict, store=store, durability="park", on_leave=lambda i, s, r: left.append(str(r))
    ) as sessions:
        use_once(sessions, "a", n=1)
        wall.now += 20
        overwrite(store, "a", sessions)
        sessions.park("a")
        assert left == ["discarded"]
        assert len(store.conflicts("sessions")) == 1
        assert use_once(sessions, "a") == {"theirs": True}


def test_t3_a_retry_that_conflicts_keeps_the_bytes_once(wall: Wall) -> None:
    store = Faulty(MemoryStore(clock=wall, wall=wall))
    with Sessions(dict, store=store) as sessions:
        store.fail("save")
        with pytest.raises(SaveFailed):
            use_once(sessions, "a", n=1)
        store.recover()
        wall.now += 20
        overwrite(store.store, "a", sessions)
        for _ in range(3):
            sessions.sweep()
        assert len(store.store.conflicts("sessions")) == 1
        assert sessions.stats().unsaved == 0
        assert use_once(sessions, "a") == {"theirs": True}
        assert_balanced(sessions)


def test_t3_rows_unused_for_long_are_purged(store: Any, wall: Wall) -> None:
    with Sessions(dict, store=store, retain="1 h") as sessions:
        use_once(sessions, "old")
        sessions.park("old")
        wall.now += 3000
        use_once(sessions, "new")
        sessions.park("new")
        wall.now += 700
        sessions.sweep()
        assert store.ids("sessions") == ["new"]
        assert sessions.stats().purged == 1


def test_t3_a_purge_that_fails_is_counted() -> None:
    store = Faulty()
    with Sessions(dict, store=store, retain="1 h") as sessions:
        store.fail("purge")
        sessions.sweep()
        assert sessions.stats().hook_errors == 1


# ---- [T4] types


@dataclass
class Plan:
    goal: str = ""
    steps: list[str] = field(default_factory=list)


def test_t4_the_type_is_that_of_the_factory(store: Any) -> None:
    def make(id: str) -> Plan:
        return Plan(id)

    with Sessions(make, store=store) as sessions:
        with sessions.use("a") as plan:
            plan.steps.append("think")
        sessions.park("a")
        with sessions.use("a") as plan:
            assert plan == Plan("a", ["think"])


def test_t4_a_first_save_that_comes_back_different_says_where(store: Any) -> None:
    with Sessions(dict, store=store) as sessions:
        with pytest.raises(CodecError, match=r"\$\.x: Reason came back as str"):
            use_once(sessions, "a", x=Reason.idle)
        assert sessions.stats().unsaved == 1
        assert store.count("sessions") == 0
        assert use_once(sessions, "a", x=[1, 2]) == {"x": [1, 2]}
        assert sessions.stats().unsaved == 0


def test_t4_what_cannot_be_encoded_says_where_and_stays(store: Any) -> None:
    with Sessions(dict, store=store, durability="park") as sessions:
        use_once(sessions, "a", lock=threading.Lock())
        sessions.park("a")
        assert "a" in sessions
        assert sessions.stats().unsaved == 1
        with sessions.use("a") as state:
            del state["lock"]
        sessions.park("a")
        assert "a" not in sessions


def test_an_unreadable_record_is_quarantined_and_raises_every_time(store: Any) -> None:
    grant = store.acquire("sessions", "a", "me", lease=10)
    store.save(
        "sessions", "a", b"rubbish", fence=grant.fence, version=0, write_id="w", release=True
    )
    with Sessions(dict, store=store) as sessions:
        for _ in range(2):
            for shared in (False, True):
                with pytest.raises(UnreadableRecord):
                    sessions.use("a", shared=shared).__enter__()
        assert store.load("sessions", "a").envelope == b"rubbish"
        (kept,) = store.quarantined("sessions")
        assert kept.envelope == b"rubbish"
        assert sessions.stats().quarantined == 4
        assert store.stats().leases == 0
        assert_balanced(sessions)
        assert sessions.close("a")  # closing needs no reading
        assert use_once(sessions, "a") == {}


def test_an_unreadable_record_raises_also_if_the_quarantine_is_down() -> None:
    store = Faulty()
    grant = store.acquire("sessions", "a", "me", lease=10)
    store.save(
        "sessions", "a", b"rubbish", fence=grant.fence, version=0, write_id="w", release=True
    )
    with Sessions(dict, store=store) as sessions:
        store.fail("quarantine", "release")
        with pytest.raises(UnreadableRecord):
            use_once(sessions, "a")
        assert sessions.stats().hook_errors == 2


# ---- [T5] weight


def test_t5_a_session_weighs_its_last_envelope(store: Any) -> None:
    with Sessions(dict, store=store, max_bytes=5000) as sessions:
        use_once(sessions, "a", text="x" * 1000)
        weight = sessions.stats().bytes
        assert weight == len(store.load("sessions", "a").envelope)
        use_once(sessions, "b", text="x" * 3000)
        use_once(sessions, "c", text="x" * 2000)
        assert sessions.ids() == ["c"]
        assert sessions.stats().left == {"bytes": 2}
        use_once(sessions, "a")
        assert sessions.stats().bytes == 2 * weight + 1000


# ---- [T7] lost answers


def test_t7_a_save_that_was_done_but_raised_is_found_out() -> None:
    store = Faulty()
    with Sessions(dict, store=store) as sessions:
        store.after["save"] = TimeoutError("no answer")
        assert use_once(sessions, "a", n=1) == {"n": 1}
        assert sessions.stats().save_errors == 0
        assert store.load("sessions", "a").version == 1
        store.recover()
        use_once(sessions, "a", n=2)
        assert store.load("sessions", "a").version == 2


@pytest.mark.parametrize("change", [{}, {"n": 2}, {"n": 0}])
@pytest.mark.parametrize("durability", ["use", "park"])
def test_t7_a_save_of_which_nothing_is_heard_is_found_out_later(
    change: dict[str, int], durability: Any
) -> None:
    """Neither the write nor the question after it is answered, though the write was done."""
    store = Faulty()
    with Sessions(dict, store=store, durability=durability) as sessions:
        use_once(sessions, "a", n=0)
        if durability == "park":
            sessions.park("a")
            use_once(sessions, "a", n=1)
        store.after["save"] = TimeoutError("no answer")
        store.before["written"] = TimeoutError("no answer")
        if durability == "park":
            sessions.park("a")
        else:
            with pytest.raises(SaveFailed):
                use_once(sessions, "a", n=1)
        assert sessions.stats().unsaved == 1
        store.recover()
        if change:
            use_once(sessions, "a", **change)
        sessions.sweep()
        assert sessions.stats().unsaved == 0
        sessions.park("a")
        assert use_once(sessions, "a") == ({"n": 1} | change)
        assert store.stats().conflicts == 0
        assert sessions.stats().conflicts == 0


def test_t7_a_lost_write_that_others_have_overwritten_is_a_conflict(wall: Wall) -> None:
    store = Faulty(MemoryStore(clock=wall, wall=wall))
    with Sessions(dict, store=store) as sessions:
        store.before = {"save": OSError("down"), "written": OSError("down")}
        with pytest.raises(SaveFailed):
            use_once(sessions, "a", n=1)
        store.recover()
        wall.now += 20
        overwrite(store.store, "a", sessions)
        sessions.sweep()
        assert use_once(sessions, "a") == {"theirs": True}
        assert len(store.store.conflicts("sessions")) == 1
        assert_balanced(sessions)


# ---- sweeping


def test_the_sweeper_tells_what_is_parked(store: Any) -> None:
    clock = StillClock()
    with Sessions(dict, store=store, clock=clock) as sessions:
        use_once(sessions, "a")
        sessions.park("a")
        use_once(sessions, "b")
        sessions.sweep()
        assert sessions.stats().parked == 1
        assert sessions.stats().store_rows == 2


def test_the_daemon_retries_what_the_store_refused() -> None:
    store, saved = Faulty(), threading.Event()
    with Sessions(dict, store=store, sweep_every="10 ms") as sessions:
        store.fail("save")
        with pytest.raises(SaveFailed):
            use_once(sessions, "a", n=1)
        store.recover()
        store.entering = lambda method: method == "save" and saved.set()
        assert saved.wait(PATIENCE)
        until(lambda: sessions.stats().unsaved == 0)


def test_t1_after_a_save_of_which_nothing_was_heard_the_lease_is_asked_for_again() -> None:
    inner = MemoryStore()

    class Lossy(MemoryStore):
        """Does all it is asked on the inner store, and loses two answers."""

        lost = 0

        def acquire(self, *args: Any, **kwargs: Any) -> Any:
            return inner.acquire(*args, **kwargs)

        def save(self, *args: Any, **kwargs: Any) -> int:
            version = inner.save(*args, **kwargs)
            if self.lost == 0:
                self.lost = 1
                raise StoreUnavailable("the answer was lost")
            return version

        def written(self, *args: Any, **kwargs: Any) -> int | None:
            if self.lost == 1:
                self.lost = 2
                raise StoreUnavailable("the answer was lost")
            return inner.written(*args, **kwargs)

        def release(self, *args: Any, **kwargs: Any) -> None:
            inner.release(*args, **kwargs)

    ours = Sessions(dict, store=Lossy(), sweep_every=3600)
    with Sessions(dict, store=inner) as theirs:
        with pytest.raises(SaveFailed), ours.use("a") as state:
            state["n"] = 1
        with theirs.use("a") as state:
            assert state == {"n": 1}
            state["n"] = 2
            with pytest.raises(SessionBusy), ours.use("a", wait=0):
                pass
        with ours.use("a") as state:
            assert state == {"n": 2}
        ours.shutdown()
