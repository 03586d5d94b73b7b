"""Corners of the session table that random callers seldom reach, one by one."""

from __future__ import annotations

import pytest

from floodline.errors import SessionClosed
from floodline.sessions._table import queries, wishes
from floodline.sessions._table.due import next_due
from floodline.sessions._table.entry import HELD, OPEN, WAIT, Entry, Hold
from floodline.sessions._table.policy import Policy
from floodline.sessions._table.table import Table
from floodline.sessions._table.unsaved import park_failed, take_refused
from floodline.telemetry import Reason


def opened(table: Table, id: str, now: float = 0.0) -> Hold:
    hold = Hold(id)
    hold.who = f"user of {id}"
    assert table.enter(hold, now) == OPEN
    table.seat(hold, now)
    assert hold.entry is not None
    assert hold.entry.seated
    table.opened(hold, now)
    return hold


def entry_of(hold: Hold) -> Entry:
    assert hold.entry is not None
    return hold.entry


def failed(table: Table, hold: Hold) -> Entry:
    """Release a hold whose save has failed."""
    entry = entry_of(hold)
    entry.dirty = entry.failed = True
    assert table.release(hold, 0.0) is None
    return entry


def test_one_that_lingers_unsaved_is_not_seen_out_while_it_is_saved_again() -> None:
    table = Table(Policy(stored=True, linger=5.0))
    entry = failed(table, opened(table, "a"))
    wishes.park(table, "a", Reason.completed, 0.0)
    retry = Hold("a")
    assert take_refused(table, retry) is None
    assert next_due(table, 100.0) is None
    entry.dirty = entry.failed = False
    assert table.release(retry, 100.0, False) is None
    assert next_due(table, 105.0) == (entry, Reason.completed)


def test_taking_what_is_not_unsaved_takes_nothing() -> None:
    table, hold = Table(Policy()), Hold("a")
    assert take_refused(table, hold) is None
    assert hold.entry is None


def test_leavers_that_come_back_make_room_for_those_who_wait_behind_the_crowd() -> None:
    table = Table(Policy(stored=True, max_sessions=None))
    table.seats.max_parking = 1
    hold = opened(table, "a")
    entry_of(hold).dirty = True
    wishes.park(table, "a", Reason.parked, 0.0)
    leaver = table.release(hold, 0.0)
    assert leaver is not None
    waiter = Hold("b")
    table.enter(waiter, 0.0)
    table.seat(waiter, 0.0)
    assert waiter.outcome == WAIT
    park_failed(table, leaver, 0.0)
    assert waiter.outcome == OPEN
    table.seat(waiter, 0.0)
    assert entry_of(waiter).seated


def test_one_that_aged_unsaved_leaves_when_it_is_saved() -> None:
    table = Table(Policy(stored=True, max_age=10.0))
    entry = failed(table, opened(table, "a"))
    assert table.next_leaver(20.0) is None
    assert queries.count_live(table, 20.0) == 1
    retry = Hold("a")
    take_refused(table, retry)
    entry.dirty = entry.failed = False
    assert table.release(retry, 20.0, False) is entry
    assert entry.leave is Reason.age


def test_an_owner_that_dies_while_the_session_is_reloaded_is_not_forgotten() -> None:
    table = Table(Policy(stored=True))
    hold = opened(table, "a")
    old = wishes.detach(table, hold, Reason.stale)
    assert old is not None
    table.abandon(entry_of(hold))
    assert table.next_leaver(0.0) is None
    table.opened(hold, 0.0)
    leaver = table.release(hold, 0.0)
    assert leaver is not None
    assert leaver.leave is Reason.owner_gone


def test_a_wish_outlives_a_reload() -> None:
    table = Table(Policy(stored=True))
    hold = opened(table, "a")
    wishes.close(table, "a", 0.0)
    wishes.detach(table, hold, Reason.stale)
    assert entry_of(hold).leave is Reason.closed
    assert not table.open_failed(hold, None, False)
    assert table.open_failed(hold, None, True)
    assert table.entries == {}


def test_once_it_closes_nobody_new_is_let_in() -> None:
    table = Table(Policy())
    hold = opened(table, "a")
    table.closing = True
    for one in ("a", "b"):
        with pytest.raises(SessionClosed, match="shut down"):
            table.enter(Hold(one), 0.0)
    leaver = table.release(hold, 0.0)
    assert leaver is not None
    assert leaver.leave is Reason.shutdown


def test_what_lingers_cannot_be_seen_before_a_sweeper_comes() -> None:
    table = Table(Policy(linger=5.0))
    table.release(opened(table, "a"), 0.0)
    wishes.park(table, "a", Reason.completed, 0.0)
    assert queries.live_ids(table, 4.0) == ["a"]
    assert queries.count_live(table, 4.0) == 1
    assert queries.live_ids(table, 5.0) == []
    assert queries.count_live(table, 5.0) == 0


def test_a_seat_on_its_way_is_not_asked_for_twice() -> None:
    table = Table(Policy(stored=True, max_sessions=1))
    first = opened(table, "a")
    entry_of(first).dirty = True
    table.release(first, 0.0)
    second = Hold("b")
    table.enter(second, 0.0)
    victim = table.seat(second, 0.0)
    assert victim is not None
    assert table.seat(second, 0.0) is None
    assert second.outcome == WAIT
    table.seats.give_up(victim)
    assert entry_of(second).seated
    assert table.seat(second, 0.0) is None


def test_what_grows_above_the_bytes_in_the_middle_of_a_use_is_looked_for_at_once() -> None:
    table = Table(Policy(max_bytes=50))
    table.release(opened(table, "a"), 0.0)
    assert table.next_leaver(0.0) is None
    table.weigh(entry_of(opened(table, "b")), 51)
    assert table.next_check <= 0.0
    leaver = table.next_leaver(0.0)
    assert leaver is not None
    assert leaver.leave is Reason.bytes


def test_who_comes_above_the_bytes_has_others_looked_for_at_once() -> None:
    table = Table(Policy(max_bytes=50))
    first = opened(table, "a")
    table.weigh(entry_of(first), 41)
    table.release(first, 0.0)
    assert table.next_leaver(0.0) is None
    second = Hold("b")
    table.enter(second, 0.0)
    table.seat(second, 0.0)
    entry_of(second).weight = 10
    table.opened(second, 0.0)
    assert table.next_check <= 0.0
    leaver = table.next_leaver(0.0)
    assert leaver is not None
    assert leaver.id == "a"


def test_one_that_was_idle_for_too_long_when_it_was_saved_again_is_looked_for_at_once() -> None:
    table = Table(Policy(stored=True, idle=10.0))
    hold = opened(table, "a")
    entry = entry_of(hold)
    entry.failed = entry.dirty = True
    table.release(hold, 0.0)
    retry = Hold("a")
    assert take_refused(table, retry) is None
    assert table.next_leaver(11.0) is None
    entry.failed = entry.dirty = False
    assert table.release(retry, 11.0, stamp=False) is None
    assert table.next_check <= 11.0
    assert table.next_leaver(11.0) is entry


def test_a_hold_that_was_served_meanwhile_cannot_give_up() -> None:
    table = Table(Policy())
    first, second = opened(table, "a"), Hold("a")
    second.who = "second"
    assert table.enter(second, 0.0) == WAIT
    table.release(first, 0.0)
    assert second.outcome == HELD
    assert not table.give_up(second)
