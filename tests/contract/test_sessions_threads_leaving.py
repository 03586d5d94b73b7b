"""`Sessions` for threads, out of memory: the rules [S8] to [S14] of SEMANTICS."""

# ruff: noqa: PT012, SIM117 - a use is a block, and what it raises comes from the whole of it

from __future__ import annotations

import gc
import json
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodline import Reason, Sessions, SessionScope
from floodline.errors import (
    SaveFailed,
    SessionBusy,
    SessionClosed,
    SessionNotFound,
    StoreUnavailable,
)
from floodline.stores import MemoryStore, SQLiteStore
from worker_threads import (
    PATIENCE,
    Faulty,
    StillClock,
    Worker,
    assert_balanced,
    events_of,
    holding,
    until,
    waiting,
)


class Left(list[tuple[str, Any, str]]):
    """An `on_leave` that remembers."""

    def __call__(self, id: str, state: Any, reason: Reason) -> None:
        self.append((id, state, str(reason)))

    def reasons(self) -> list[str]:
        return [reason for _, _, reason in self]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    store: Any = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "s.db")
    yield store
    store.close()


def use_once(sessions: Sessions[Any], id: str, **change: Any) -> Any:
    with sessions.use(id) as state:
        state.update(change)
        return state


# ---- [S8] a body that raises


def test_s8_a_body_that_raises_is_saved_like_any_other(store: Any) -> None:
    with Sessions(dict, store=store) as sessions:
        with pytest.raises(ZeroDivisionError), sessions.use("a") as state:
            state["n"] = 1
            raise ZeroDivisionError
        sessions.park("a")
        assert use_once(sessions, "a") == {"n": 1}


def test_s8_on_error_discard_goes_back_to_the_last_saved_version(store: Any) -> None:
    left = Left()
    with Sessions(dict, store=store, on_error="discard", on_leave=left) as sessions:
        use_once(sessions, "a", n=1)
        with pytest.raises(ZeroDivisionError), sessions.use("a") as state:
            state["n"] = 2
            raise ZeroDivisionError
        assert left == [("a", {"n": 2}, "discarded")]
        assert use_once(sessions, "a") == {"n": 1}
        assert_balanced(sessions)


def test_s8_who_waits_for_a_discarded_session_gets_the_last_saved_version(store: Any) -> None:
    with Sessions(dict, store=store, on_error="discard") as sessions:
        use_once(sessions, "a", n=1)
        with pytest.raises(ZeroDivisionError), sessions.use("a") as state:
            worker = Worker(lambda: dict(use_once(sessions, "a")))
            waiting(sessions, 1)
            state["n"] = 2
            raise ZeroDivisionError
        assert worker.result() == {"n": 1}


# ---- [S9] acknowledged


def test_s9_a_failed_save_raises_and_the_session_stays_until_it_is_saved() -> None:
    store, left = Faulty(), Left()
    with Sessions(dict, store=store, on_leave=left, max_sessions=1, wait=0) as sessions:
        store.fail("save")
        with pytest.raises(SaveFailed, match=r"'a' could not be saved .*out of order") as caught:
            use_once(sessions, "a", n=1)
        assert isinstance(caught.value.__cause__, OSError)
        assert sessions.peek("a") == {"n": 1}
        assert sessions.stats().unsaved == 1
        with pytest.raises(Exception, match="no room"):  # it cannot be evicted
            use_once(sessions, "b")
        sessions.sweep()
        assert sessions.stats().unsaved == 1
        assert left == []
        store.recover()
        sessions.sweep()
        assert sessions.stats().unsaved == 0
        assert store.load("sessions", "a").version == 1
        use_once(sessions, "b")
        assert use_once(sessions, "a") == {"n": 1}


def test_s9_an_unsaved_session_can_be_used_and_saved_again() -> None:
    store = Faulty()
    with Sessions(dict, store=store) as sessions:
        store.fail("save")
        for n in range(2):
            with pytest.raises(SaveFailed):
                use_once(sessions, "a", **{f"n{n}": n})
        store.recover()
        assert use_once(sessions, "a", n2=2) == {"n0": 0, "n1": 1, "n2": 2}
        assert sessions.stats().unsaved == 0
        sessions.park("a")
        assert use_once(sessions, "a") == {"n0": 0, "n1": 1, "n2": 2}


def test_s9_a_save_that_failed_once_is_not_tried_again_in_the_same_breath() -> None:
    store = Faulty()
    with Sessions(dict, store=store, sweep_every=None) as sessions:
        store.fail("save")
        with pytest.raises(SaveFailed):
            use_once(sessions, "a", n=1)
        assert store.calls.count("save") == 1
        store.recover()
        use_once(sessions, "b")  # any use that goes well tries again
        assert sessions.stats().unsaved == 0


def test_s9_the_own_error_of_a_body_goes_on_with_a_note() -> None:
    store = Faulty()
    with Sessions(dict, store=store) as sessions:
        store.fail("save")
        with pytest.raises(ZeroDivisionError) as caught, sessions.use("a"):
            raise ZeroDivisionError
        assert any("SaveFailed" in note for note in caught.value.__notes__)
        store.recover()


def test_s9_bytes_equal_to_the_last_saved_are_not_written(store: Any) -> None:
    with Sessions(dict, store=store) as sessions:
        for _ in range(3):
            use_once(sessions, "a", n=1)
        assert (sessions.stats().saved, sessions.stats().unchanged) == (1, 2)
        assert store.load("sessions", "a").version == 1
        assert store.stats().leases == 0


def test_s9_what_fails_on_its_way_out_comes_back_and_serves_who_waits() -> None:
    store, left = Faulty(), Left()
    with Sessions(dict, store=store, durability="park", on_leave=left) as sessions:
        use_once(sessions, "a", n=1)
        go, came = threading.Event(), threading.Event()

        def pause(method: str) -> None:
            if method == "save":
                came.set()
                assert go.wait(PATIENCE)

        store.entering = pause
        store.fail("save")
        parker = Worker(sessions.park, "a")
        assert came.wait(PATIENCE)
        worker = Worker(lambda: dict(use_once(sessions, "a")))
        waiting(sessions, 1)
        go.set()
        parker.result()
        assert worker.result() == {"n": 1}
        assert left == []
        store.recover()
        sessions.sweep()
    assert left.reasons() == ["shutdown"]


def test_s9_at_shutdown_a_store_that_recovers_within_the_grace_gets_all() -> None:
    store = Faulty()
    sessions = Sessions(dict, store=store, durability="park")
    use_once(sessions, "a", n=1)
    store.fail("save")
    tries = [0]

    def recover(method: str) -> None:
        tries[0] += method == "save"
        if tries[0] == 3:
            store.recover()

    store.entering = recover
    assert sessions.shutdown() == 0
    assert store.count("sessions") == 1


# ---- [S10] the way out


def test_s10_a_use_during_a_park_waits_for_save_finalizer_and_close(store: Any) -> None:
    steps, go = list[str](), threading.Event()

    class State(dict[str, Any]):
        def close(self) -> None:
            steps.append("close")

        def __floodline_dump__(self) -> dict[str, Any]:
            return dict(self)

        @classmethod
        def __floodline_load__(cls, data: dict[str, Any]) -> State:
            steps.append("load")
            return cls(data)

    def finalizer(*_: Any) -> None:
        steps.append("leave")
        assert go.wait(PATIENCE)

    with Sessions(State, store=store, on_leave=finalizer) as sessions:
        use_once(sessions, "a", n=1)
        steps.clear()
        parker = Worker(sessions.park, "a")
        until(lambda: steps)
        user = Worker(lambda: dict(use_once(sessions, "a")))
        waiting(sessions, 1)
        go.set()
        parker.result()
        assert user.result() == {"n": 1}
        assert steps[:3] == ["leave", "close", "load"]


def test_s10_a_finalizer_that_hangs_blocks_only_its_id_and_is_reported() -> None:
    clock, go, came = StillClock(), threading.Event(), threading.Event()

    def finalizer(id: str, *_: Any) -> None:
        if id == "a":
            came.set()
            assert go.wait(PATIENCE)

    with Sessions(
        dict, on_leave=finalizer, clock=clock, max_hold=10, name="hanging", max_sessions=2
    ) as sessions:
        use_once(sessions, "a")
        parker = Worker(sessions.park, "a")
        assert came.wait(PATIENCE)
        for one in "bcd":
            use_once(sessions, one)
        clock.advance(11)
        sessions.sweep()
        sessions.sweep()
        assert [e.fields["id"] for e in events_of("stuck_leaving", "hanging")] == ["a"]
        go.set()
        parker.result()
        use_once(sessions, "a")
        assert_balanced(sessions)


def test_s10_a_finalizer_and_a_close_that_raise_lose_nothing_and_stop_no_sweep() -> None:
    clock = StillClock()

    class Service:
        def close(self) -> None:
            raise OSError("close")

    def finalizer(*_: Any) -> None:
        raise ValueError("leave")

    with Sessions(Service, on_leave=finalizer, idle=10, clock=clock, name="raising") as sessions:
        for one in "abc":
            with sessions.use(one):
                pass
        clock.advance(10)
        assert sessions.sweep() == 3
        assert sessions.stats().hook_errors == 6
        assert {e.fields["hook"] for e in events_of("hook_error", "raising")} == {
            "on_leave",
            "close",
        }
        assert_balanced(sessions)


def test_s10_an_interrupt_inside_a_finalizer_leaves_nothing_half_done() -> None:
    class Interrupt(BaseException):
        pass

    def finalizer(*_: Any) -> None:
        raise Interrupt

    with Sessions(dict, store=MemoryStore(), on_leave=finalizer) as sessions:
        use_once(sessions, "a", n=1)
        with pytest.raises(Interrupt):
            sessions.park("a")
        assert_balanced(sessions)
        with pytest.raises(Interrupt), (hold := sessions.use("a")) as state:
            state["n"] = 2
            hold.discard()
        assert_balanced(sessions)
        sessions._core.hooks.on_leave = None
        assert use_once(sessions, "a") == {"n": 1}


def test_s10_a_finalizer_may_use_sessions_however_many_leave() -> None:
    clock = StillClock()

    def note(id: str, *_: Any) -> None:
        if id != "log":
            with sessions.use("log") as log:
                log[id] = True

    with Sessions(dict, on_leave=note, idle=10, clock=clock, max_sessions=None) as sessions:
        for n in range(500):
            use_once(sessions, f"id{n}")
        clock.advance(10)
        use_once(sessions, "log")
        sessions.sweep()
        assert sessions.stats().hook_errors == 0
        state = sessions.peek("log")
        assert state is not None
        assert len(state) == 500
        assert_balanced(sessions)


def test_s10_threads_see_out_a_bounded_number_a_call() -> None:
    clock = StillClock()
    with Sessions(dict, idle=10, clock=clock, max_sessions=None, sweep_every=None) as sessions:
        for n in range(100):
            use_once(sessions, f"id{n}")
        clock.advance(10)
        use_once(sessions, "new")
        assert 0 < sum(sessions.stats().left.values()) < 20
        assert sessions.ids() == ["new"]
        assert len(sessions) == 1
        assert sessions.sweep() > 0


# ---- one finalizer, every reason


class Service:
    """Not encodable, has a `close`: the shape of a plan service."""

    def __init__(self, id: str) -> None:
        self.id, self.closed = id, 0

    def close(self) -> None:
        self.closed += 1


def all_ways_out(clock: StillClock, sessions: Sessions[Service]) -> Iterator[str]:
    def make(id: str = "a") -> Service:
        with sessions.use(id) as service:
            return service

    make()
    clock.advance(10)
    sessions.sweep()
    yield "idle"
    with sessions.use("a"):
        clock.advance(30)
        assert sessions.sweep() == 0
    yield "age"
    make()
    for one in "bcd":
        make(one)
    yield "count"
    for one in "bcd":
        sessions.park(one)
    make()
    sessions.shed(1)
    yield "pressure"
    make()
    sessions.complete("a")
    yield "completed"
    make()
    sessions.close("a")
    yield "closed"
    make()
    sessions.park("a")
    yield "parked"
    owner = Owner()
    with sessions.use("a"):
        sessions.bind("a", owner)
    del owner
    sessions.sweep()
    yield "owner_gone"
    with (hold := sessions.use("a")):
        hold.discard()
    yield "discarded"
    make()
    sessions.shutdown()
    yield "shutdown"


class Owner:
    pass


def test_every_way_out_runs_the_same_finalizer_once_and_closes_the_state() -> None:
    clock, left = StillClock(), Left()
    scope = SessionScope()
    cleared: list[tuple[str, str]] = []
    notes = scope.map("notes", on_leave=lambda i, value, reason: cleared.append((i, reason)))
    sessions = Sessions(
        Service,
        idle=10,
        max_age=30,
        max_sessions=3,
        on_open=lambda i, state: notes.__setitem__(i, "x"),
        on_leave=left,
        scope=scope,
        clock=clock,
    )
    for reason in all_ways_out(clock, sessions):
        ours = [(one, state, why) for one, state, why in left if one == "a"]
        assert [why for _, _, why in ours] == [reason]
        assert ours[0][1].closed == 1
        assert [why for one, why in cleared if one == "a"] == [reason]
        left.clear()
        cleared.clear()
    assert len(notes) == 0
    assert_balanced(sessions)


def test_bytes_above_the_budget_go_in_idle_order() -> None:
    left = Left()
    with Sessions(dict, max_bytes=100, weigh=lambda s: s.get("w", 0), on_leave=left) as sessions:
        for one, weight in (("a", 40), ("b", 40)):
            use_once(sessions, one, w=weight)
        with holding(sessions, "a"):
            use_once(sessions, "c", w=50)
            assert [(one, why) for one, _, why in left] == [("b", "bytes")]
            assert sessions.stats().bytes == 90
        use_once(sessions, "a", w=60)
        assert sessions.ids() == ["a"]


def test_close_state_can_be_switched_off() -> None:
    with Sessions(Service, close_state=False) as sessions:
        with sessions.use("a") as service:
            pass
        sessions.close("a")
        assert service.closed == 0


def test_a_weigh_that_raises_is_counted() -> None:
    weights: list[Any] = [1, "heavy"]

    def weigh(state: Any) -> int:
        return len(weights.pop(0))

    weights[0] = "x"
    with Sessions(dict, weigh=weigh, max_bytes=10) as sessions:
        weights[1] = 3
        use_once(sessions, "a")
        assert sessions.stats().hook_errors == 1
        assert sessions.stats().bytes == 1


# ---- [S11] close, park, complete beside holders


def test_s11_close_park_and_complete_inside_the_own_hold_act_at_the_release(store: Any) -> None:
    left = Left()
    with Sessions(dict, store=store, on_leave=left) as sessions:
        for call, reason in (
            (sessions.park, "parked"),
            (sessions.complete, "completed"),
            (sessions.close, "closed"),
        ):
            with sessions.use("a") as state:
                state["n"] = 1
                call("a")
                assert left == []
            assert left.reasons() == [reason]
            assert "a" not in sessions
            left.clear()
        assert store.count("sessions") == 0


def test_s11_a_close_acts_also_when_the_body_raises_or_discards(store: Any) -> None:
    left = Left()
    with Sessions(dict, store=store, on_error="discard", on_leave=left) as sessions:
        use_once(sessions, "a", n=1)
        with pytest.raises(ZeroDivisionError), sessions.use("a"):
            sessions.close("a")
            raise ZeroDivisionError
        assert store.count("sessions") == 0
        use_once(sessions, "a", n=1)
        with (hold := sessions.use("a")):
            hold.discard()
            sessions.close("a")
        assert store.count("sessions") == 0
        assert left.reasons() == ["closed", "closed"]


def test_s11_a_close_while_an_open_fails_deletes_the_row_all_the_same() -> None:
    store, opening, go = MemoryStore(), threading.Event(), threading.Event()
    fails = [False]

    def check(id: str, state: Any) -> None:
        if fails[0]:
            opening.set()
            assert go.wait(PATIENCE)
            raise PermissionError(id)

    with Sessions(dict, store=store, on_open=check) as sessions:
        use_once(sessions, "a", n=1)
        sessions.park("a")
        fails[0] = True
        opener = Worker(use_once, sessions, "a")
        assert opening.wait(PATIENCE)
        assert sessions.close("a")
        go.set()
        assert isinstance(opener.wait().error, PermissionError)
        assert store.count("sessions") == 0
        assert store.stats().leases == 0
        assert_balanced(sessions)


def test_s11_a_hold_from_before_a_close_cannot_write(store: Any) -> None:
    with Sessions(dict, store=store) as sessions:
        use_once(sessions, "a", n=1)
        with (hold := sessions.use("a")) as state:
            sessions.close("a")
            state["n"] = 2
            with pytest.raises(SessionClosed, match="cannot write"):
                hold.save()
        assert store.count("sessions") == 0
        assert use_once(sessions, "a") == {}


def test_s11_a_close_wakes_waiters_and_later_ones_start_anew() -> None:
    with Sessions(dict) as sessions:
        with pytest.raises(SessionClosed), holding(sessions, "a") as holder:
            holder.state["old"] = True
            waiter = Worker(use_once, sessions, "a")
            waiting(sessions, 1)
            sessions.close("a")
            assert isinstance(waiter.wait().error, SessionClosed)
            late = Worker(lambda: dict(use_once(sessions, "a")))
            waiting(sessions, 1)
        assert late.result() == {}
        assert_balanced(sessions)


def test_s11_waiters_count_as_holds_for_park() -> None:
    left = Left()
    with Sessions(dict, on_leave=left) as sessions:
        with holding(sessions, "a") as holder:
            state = holder.state
            waiter = Worker(lambda: use_once(sessions, "a") is state)
            waiting(sessions, 1)
            sessions.park("a")
        assert waiter.result()
        assert left.reasons() == ["parked"]


def test_s11_close_is_idempotent_and_deletes_a_parked_row_without_loading_it(store: Any) -> None:
    left = Left()
    with Sessions(dict, store=store, on_leave=left) as sessions:
        use_once(sessions, "a", n=1)
        sessions.park("a")
        left.clear()
        assert sessions.close("a")
        assert not sessions.close("a")
        assert sessions.stats().loaded == 0
        assert left == []
        assert store.count("sessions") == 0


def test_s11_close_of_an_id_held_elsewhere_waits_like_a_use(store: Any) -> None:
    with Sessions(dict, store=store) as one, Sessions(dict, store=store, busy_wait=0) as other:
        with one.use("a"):
            with pytest.raises(SessionBusy, match="another owner"):
                other.close("a")
        assert other.close("a")
        assert_balanced(other)


def test_s11_a_close_that_the_store_refuses_is_raised_and_done_later() -> None:
    store, left = Faulty(), Left()
    with Sessions(dict, store=store, on_leave=left, busy_wait=0) as sessions:
        use_once(sessions, "a", n=1)
        store.fail("delete")
        with pytest.raises(OSError, match="out of order"):
            sessions.close("a")
        assert "a" not in sessions
        with pytest.raises(SessionBusy):
            use_once(sessions, "a")
        store.recover()
        sessions.sweep()
        assert left.reasons() == ["closed"]
        assert store.count("sessions") == 0


def test_s11_what_could_not_be_closed_is_not_parked_because_its_owner_dies() -> None:
    store = Faulty()
    with Sessions(dict, store=store) as sessions:
        owner = Owner()
        with sessions.use("a"):
            sessions.bind("a", owner)
        store.fail("delete")
        with pytest.raises(OSError, match="out of order"):
            sessions.close("a")
        del owner
        sessions.sweep()
        store.recover()
        sessions.sweep()
        assert store.count("sessions") == 0


def test_s11_a_close_during_a_park_deletes_the_row_too(store: Any) -> None:
    came, go, left = threading.Event(), threading.Event(), Left()

    def finalizer(*args: Any) -> None:
        left(*args)
        came.set()
        assert go.wait(PATIENCE)

    with Sessions(dict, store=store, on_leave=finalizer) as sessions:
        use_once(sessions, "a", n=1)
        parker = Worker(sessions.park, "a")
        assert came.wait(PATIENCE)
        assert sessions.close("a")
        go.set()
        parker.result()
        assert left.reasons() == ["parked"]
        assert store.count("sessions") == 0


@pytest.mark.parametrize("shared", [False, True])
def test_s11_any_use_cancels_linger(shared: bool) -> None:
    clock, left = StillClock(), Left()
    with Sessions(dict, linger=5, clock=clock, on_leave=left) as sessions:
        use_once(sessions, "a")
        sessions.complete("a")
        clock.advance(4)
        with sessions.use("a", shared=shared):
            pass
        clock.advance(5)
        assert sessions.sweep() == 0
        sessions.complete("a")
        clock.advance(5)
        assert sessions.sweep() == 1
        assert left.reasons() == ["completed"]


@pytest.mark.parametrize("shared", [False, True])
def test_s11_new_work_beside_the_hold_that_completed_cancels_it_too(shared: bool) -> None:
    left = Left()
    with Sessions(dict, on_leave=left) as sessions:
        with sessions.use("a"):
            sessions.complete("a")
            worker = Worker(enter_and_leave, sessions, shared)
            until(lambda: sessions.stats().waiting or not worker.running())
        worker.result()
        assert left == []


def enter_and_leave(sessions: Sessions[Any], shared: bool) -> None:
    with sessions.use("a", shared=shared):
        pass


# ---- [S12] tombstones


def test_s12_a_tombstone_refuses_a_closed_id_for_a_time(store: Any) -> None:
    clock = StillClock()
    with Sessions(dict, store=store, tombstone="10 min", clock=clock) as sessions:
        use_once(sessions, "a")
        sessions.close("a")
        sessions.close("never lived")
        for one in ("a", "never lived"):
            with pytest.raises(SessionClosed, match="tombstone"):
                use_once(sessions, one)
        assert sessions.stats().tombstones == 2
        clock.advance(600)
        use_once(sessions, "a")
        sessions.sweep()
        assert sessions.stats().tombstones == 0


def test_s12_without_tombstones_the_id_starts_anew(store: Any) -> None:
    with Sessions(dict, store=store) as sessions:
        use_once(sessions, "a", n=1)
        sessions.close("a")
        assert use_once(sessions, "a") == {}


def test_s12_tombstones_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodline.sessions._table.tombstones.MAX_TOMBS", 3)
    with Sessions(dict, tombstone=60) as sessions:
        for n in range(5):
            sessions.close(f"id{n}")
        assert sessions.stats().tombstones == 3
        use_once(sessions, "id0")  # the oldest are forgotten


# ---- time, idle order, bind


def test_idle_counts_from_the_end_of_the_last_use() -> None:
    clock = StillClock()
    with Sessions(dict, idle=10, clock=clock) as sessions:
        with sessions.use("a"):
            clock.advance(100)
            assert "a" in sessions
        clock.advance(9)
        assert sessions.touch("a")
        clock.advance(9)
        assert "a" in sessions
        clock.advance(1)
        assert "a" not in sessions
        assert not sessions.touch("a")
        assert sessions.peek("a") is None
        assert len(sessions) == 0
        assert sessions.ids() == []


def test_s13_max_age_ends_residence_and_not_the_session(store: Any) -> None:
    clock, left = StillClock(), Left()
    with Sessions(dict, store=store, max_age=10, clock=clock, on_leave=left) as sessions:
        with sessions.use("a") as state:
            clock.advance(50)
            sessions.sweep()
            state["n"] = 1
            assert left == []
        assert left.reasons() == ["age"]
        assert use_once(sessions, "a") == {"n": 1}
        clock.advance(10)
        assert use_once(sessions, "a") == {"n": 1}  # without any sweep
        assert left.reasons() == ["age", "age"]


def test_bounds_hold_without_any_sweeper() -> None:
    clock, left = StillClock(), Left()
    with Sessions(dict, idle=10, clock=clock, sweep_every=None, on_leave=left) as sessions:
        use_once(sessions, "a")
        clock.advance(10)
        use_once(sessions, "b")
        assert left.reasons() == ["idle"]


def test_a_clock_that_jumps_changes_no_order() -> None:
    """[E3]"""
    clock = StillClock()
    with Sessions(dict, max_sessions=3, clock=clock) as sessions:
        for one, jump in (("a", -500), ("b", 300), ("c", -900)):
            clock.advance(jump)
            use_once(sessions, one)
        use_once(sessions, "d")
        assert sessions.ids() == ["b", "c", "d"]


def test_bind_parks_when_the_last_owner_has_died(store: Any) -> None:
    left = Left()
    with Sessions(dict, store=store, on_leave=left) as sessions:
        first, second = Owner(), Owner()
        with sessions.use("a"):
            for owner in (first, second, second):
                sessions.bind("a", owner)
        del first, owner
        sessions.sweep()
        assert left == []
        del second
        use_once(sessions, "b")  # any use sees to it
        assert left.reasons() == ["owner_gone"]


def test_bind_tells_equal_owners_apart_and_asks_them_nothing() -> None:
    class Equal:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return True

    left = Left()
    with Sessions(dict, on_leave=left) as sessions:
        first, second = Equal(), Equal()
        use_once(sessions, "a")
        sessions.bind("a", first)
        sessions.bind("a", second)
        del first
        sessions.sweep()
        assert left == []
        del second
        sessions.sweep()
        assert left.reasons() == ["owner_gone"]


def test_bind_waits_for_holders_and_needs_a_live_session() -> None:
    left = Left()
    with Sessions(dict, on_leave=left) as sessions:
        with pytest.raises(SessionNotFound, match="not live"):
            sessions.bind("a", Owner())
        with sessions.use("a"):
            sessions.bind("a", Owner())
            sessions.sweep()
            assert left == []
        assert left.reasons() == ["owner_gone"]


# ---- [S14] gone means gone


def test_s14_a_retained_state_is_reported_after_a_collection_and_a_grace() -> None:
    clock = StillClock()
    with Sessions(Service, clock=clock, name="retaining") as sessions:
        with sessions.use("a") as service:
            pass
        sessions.close("a")
        sessions.sweep()
        clock.advance(31)
        sessions.sweep()
        assert sessions.stats().retained == 0  # no full collection since
        gc.collect()
        sessions.sweep()
        assert sessions.stats().retained == 1
        sessions.sweep()
        assert sessions.stats().retained == 1
        assert [e.fields["label"] for e in events_of("retained", "retaining")] == ["session a"]
        assert service.closed == 1


def test_s14_a_freed_state_is_not_reported_and_others_are_unchecked() -> None:
    clock = StillClock()
    with Sessions(Service, clock=clock) as sessions:
        with sessions.use("a") as service:
            pass
        gone = weakref.ref(service)
        del service
        sessions.close("a")
        assert gone() is None
        clock.advance(31)
        gc.collect()
        sessions.sweep()
        assert (sessions.stats().retained, sessions.stats().unchecked) == (0, 0)
    with Sessions(dict) as plain:
        use_once(plain, "a")
        plain.close("a")
        assert plain.stats().unchecked == 1


# ---- shutdown, stats


def test_shutdown_returns_what_is_held_and_that_leaves_later(store: Any) -> None:
    left = Left()
    sessions = Sessions(dict, store=store, on_leave=left)
    use_once(sessions, "free", n=1)
    with holding(sessions, "held") as holder:
        holder.state["n"] = 1
        assert sessions.shutdown(grace=0) == 1
        assert [one for one, _, _ in left] == ["free"]
    assert left.reasons() == ["shutdown", "shutdown"]
    assert store.count("sessions") == 2
    assert_balanced(sessions)


def test_shutdown_waits_for_holders_within_the_grace() -> None:
    sessions = Sessions(dict)
    with holding(sessions, "a") as holder:
        ending = Worker(sessions.shutdown)
        until(lambda: sessions._core.table.closing)
        holder.release()
        assert ending.result() == 0


def test_stats_are_ready_for_json(store: Any) -> None:
    with Sessions(dict, store=store, max_bytes="1 MiB") as sessions:
        use_once(sessions, "a")
        sessions.park("a")
        with sessions.use("b"):
            record = json.loads(json.dumps(sessions.stats().as_dict()))
        assert record["items"] == record["held"] == record["leases"] == 1
        assert record["left"] == {"parked": 1}
        assert record["max_items"] == 1000
        assert record["max_bytes"] == 2**20
        assert record["kind"] == "sessions"
        assert "1 live" in repr(sessions)


def test_a_plan_service_drops_in_without_a_store() -> None:
    """Services that nobody cleared leave by themselves; clearing stays idempotent."""
    made: list[Service] = []

    def make(id: str) -> Service:
        made.append(Service(id))
        return made[-1]

    clock = StillClock()
    with Sessions(make, idle="30 min", max_sessions=100, clock=clock) as sessions:
        for n in range(1000):
            with sessions.use(f"plan{n}", shared=True) as service:
                assert service.id == f"plan{n}"
        assert len(sessions) == 100
        assert sum(service.closed for service in made) == 900
        assert sessions.close("plan999")
        assert not sessions.close("plan999")
        clock.advance(1800)
        sessions.sweep()
        assert len(sessions) == 0
    assert all(service.closed == 1 for service in made)


def test_a_store_that_is_down_for_opening_fails_the_use_and_nothing_else() -> None:
    store = Faulty()
    with Sessions(dict, store=store) as sessions:
        store.before["acquire"] = StoreUnavailable("locked")
        with pytest.raises(StoreUnavailable):
            use_once(sessions, "a")
        assert_balanced(sessions)
        store.recover()
        use_once(sessions, "a")
