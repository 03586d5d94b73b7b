"""The sweeper of `Sessions`: lazy, one for all, gone when nothing is live; and parts in between."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from floodline import Sessions, telemetry
from floodline.errors import ReentrantUse
from floodline.sessions._drivers import sessions_base as base
from floodline.stores import MemoryStore
from worker_threads import PATIENCE, Faulty, StillClock, assert_balanced, until


def test_the_daemon_sees_out_what_is_due_and_ends() -> None:
    gone = threading.Event()
    sessions = Sessions(dict, idle="20 ms", on_leave=lambda *_: gone.set())
    with sessions.use("a"):
        pass
    assert gone.wait(PATIENCE)
    until(lambda: not sessions._ticking)
    gone.clear()
    with sessions.use("b"):  # it starts again by itself
        assert sessions._ticking
    assert gone.wait(PATIENCE)
    sessions.shutdown()


def test_a_tick_says_when_it_wants_the_next_one() -> None:
    clock, store = StillClock(), Faulty()
    with Sessions(dict, idle=30, clock=clock, store=store, sweep_every=60) as sessions:
        assert sessions._tick() is None
        with sessions.use("a"):
            pass
        assert sessions._tick() == 30
        store.fail("save")
        with pytest.raises(Exception, match="could not be saved"), sessions.use("a") as state:
            state["n"] = 1
        assert sessions._tick() == 1  # tried, and soon again
        clock.advance(1)
        assert sessions._tick() == 2
        store.recover()
        clock.advance(2)
        sessions._tick()
        assert sessions.stats().unsaved == 0


def test_lingering_wants_a_tick_of_its_own() -> None:
    gone = threading.Event()
    with Sessions(dict, linger="10 ms", on_leave=lambda *_: gone.set()) as sessions:
        with sessions.use("a"):
            pass
        sessions.complete("a")
        assert gone.wait(PATIENCE)


def test_a_guest_is_put_off_or_refused_and_may_look() -> None:
    """[E2]: what a finalizer may do that strikes inside a critical section."""
    with Sessions(dict, store=MemoryStore()) as sessions:
        hold = sessions.use("a")
        hold.__enter__()
        seen: list[Any] = []

        def strike() -> None:
            seen.append(sessions.touch("a"))
            seen.append(len(sessions))
            seen.append(sessions.ids())
            seen.append(sessions.close("b"))
            sessions.park("a")
            with pytest.raises(ReentrantUse, match="interrupted"):
                sessions.use("b").__enter__()
            with pytest.raises(ReentrantUse, match="interrupted"):
                sessions._core.locked(len, "x")
            hold.__exit__(None, None, None)

        sessions._core.locked(strike)
        assert seen == [True, 1, ["a"], True]
        until(lambda: "a" not in sessions)  # the sweeper may be the one who parks it
        assert_balanced(sessions)


def test_a_hold_let_go_inside_a_section_is_released_after_it() -> None:
    with Sessions(dict) as sessions:
        hold = sessions.use("a")
        hold.__enter__()
        sessions._core.locked(hold.__exit__, None, None, None)
        assert sessions.stats().held == 0
        assert_balanced(sessions)


def test_what_was_put_off_runs_also_if_the_section_raises() -> None:
    with Sessions(dict) as sessions:
        hold = sessions.use("a")
        hold.__enter__()

        def strike_and_raise() -> None:
            hold.__exit__(None, None, None)
            raise LookupError

        with pytest.raises(LookupError):
            sessions._core.locked(strike_and_raise)
        assert sessions.stats().held == 0


def test_what_strikes_inside_the_store_is_done_after_it() -> None:
    """[E2]: a finalizer that runs in the middle of a call of the store."""
    store = Faulty()
    inside = [False]
    store.store.is_writer_thread = lambda: inside[0]
    with Sessions(dict, store=store) as sessions:
        other = sessions.use("other")
        other.__enter__()["n"] = 1

        def strike(method: str) -> None:
            if method == "acquire":
                store.entering = lambda method: None
                inside[0] = True
                other.__exit__(None, None, None)
                sessions.park("other")
                assert len(sessions) == 1
                inside[0] = False

        store.entering = strike
        with sessions.use("a"):
            pass
        assert store.count("sessions") == 2
        assert sessions.ids() == ["a"]
        assert_balanced(sessions)


def test_a_failed_save_of_a_hold_that_nobody_waits_for_is_told() -> None:
    store = Faulty()
    with Sessions(dict, store=store, name="told") as sessions:
        hold = sessions.use("a")
        hold.__enter__()["n"] = 1
        store.fail("save")
        sessions._core.locked(hold.__exit__, None, None, None)
        assert sessions.stats().unsaved == 1
        assert [e.kind for e in telemetry.recent() if e.source == "told"] == ["save_failed"]
        store.recover()


def test_at_exit_one_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()

    def refuse(*_: Any) -> None:
        raise SystemExit

    bad = Sessions(dict, on_leave=refuse)
    good = Sessions(dict, store=store, durability="park")
    for sessions in (bad, good):
        with sessions.use("a"):
            pass
    monkeypatch.setattr(telemetry, "holders", lambda: [bad, good])
    base._shut_all_down()
    assert store.count("sessions") == 1


def test_a_budget_may_shed_what_is_unused() -> None:
    class Budget:
        holder: Any = None

        def attach(self, holder: Any) -> None:
            self.holder = holder

    budget = Budget()
    with Sessions(dict, pressure=budget) as sessions:
        for one in "abc":
            with sessions.use(one):
                pass
        assert budget.holder.shed(2) == 2
        assert sessions.ids() == ["c"]
        assert sessions.stats().left == {"pressure": 2}
        assert budget.holder.shed(2) == 1
        assert budget.holder.shed(2) == 0
