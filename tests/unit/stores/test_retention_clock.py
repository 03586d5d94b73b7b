"""A date is believed as long as it moves with the seconds, and a jump once it has lasted."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from floodline.stores import Grant, SQLiteStore
from floodline.stores._retention_clock import LASTING, Noted, RetentionClock

DAY = 86_400.0


def test_a_date_that_keeps_step_is_both_times() -> None:
    clock = RetentionClock()
    assert clock.note() is None
    assert clock.look(0.0, 1000.0) == (1000.0, 1000.0)
    assert clock.look(500.0, 1530.0) == (1530.0, 1530.0)  # it drifts
    assert clock.look(1000.0, 2089.0) == (2089.0, 2089.0)


@pytest.mark.parametrize("jump", [40 * DAY, -40 * DAY])
def test_a_jump_is_stamped_late_and_judged_early_until_it_has_lasted(jump: float) -> None:
    clock = RetentionClock()
    clock.look(0.0, 100 * DAY)
    both = (100 * DAY + 10, 100 * DAY + 10 + jump)
    assert clock.look(10.0, 100 * DAY + 10 + jump) == (max(both), min(both))
    end = 10.0 + LASTING
    assert (
        clock.look(end - 1, 100 * DAY + end - 1 + jump)[0]
        != clock.look(end - 1, 100 * DAY + end - 1 + jump)[1]
    )
    assert clock.look(end, 100 * DAY + end + jump) == (100 * DAY + end + jump,) * 2


def test_seconds_that_begin_anew_keep_the_date() -> None:
    clock = RetentionClock()
    clock.look(5000.0, 10 * DAY)
    assert clock.look(3.0, 50 * DAY) == (50 * DAY, 10 * DAY)


def test_the_next_process_goes_on_where_the_last_one_was() -> None:
    last = RetentionClock("boot")
    last.look(0.0, 10 * DAY)
    last.look(100.0, 60 * DAY)
    noted = last.note()
    assert noted == Noted(10 * DAY, 0.0, "boot", 60 * DAY - 100, 100.0)
    clock = RetentionClock("boot")
    clock.resume(noted, 200.0, 60 * DAY + 100)
    assert clock.begun
    assert clock.look(200.0, 60 * DAY + 100) == (60 * DAY + 100, 10 * DAY + 200)
    end = 100.0 + LASTING
    assert clock.look(end, 60 * DAY + end - 100) == (60 * DAY + end - 100,) * 2


@pytest.mark.parametrize(
    ("off", "believed"), [(0.0, True), (DAY, True), (DAY + 61, False), (-3600.0, False)]
)
def test_after_a_boot_the_date_is_believed_if_it_is_at_most_a_day_later(
    off: float, believed: bool
) -> None:
    clock = RetentionClock("second")
    clock.resume(Noted(10 * DAY, 90_000.0, "first"), 20.0, 10 * DAY + off)
    stamp, judged = clock.look(20.0, 10 * DAY + off)
    assert (stamp == judged) == believed


def opened(path: Path, seconds: float, date: float) -> SQLiteStore:
    return SQLiteStore(path, clock=lambda: seconds, wall=lambda: date)


def test_a_store_that_is_opened_under_a_wrong_date_deletes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with opened(path, 100.0, 10 * DAY) as store:
        grant = store.acquire("chat", "a", "me", lease=9.0)
        assert isinstance(grant, Grant)
        terms = {"fence": grant.fence, "version": 0, "write_id": "w"}
        store.save("chat", "a", b"x", release=True, **terms)
        assert store.purge("chat", unused=DAY, limit=9) == []
    for seconds in (200.0, 300.0):
        with opened(path, seconds, 50 * DAY + seconds) as store:
            assert store.purge("chat", unused=DAY, limit=9) == []
    with opened(path, 200.0 + LASTING, 50 * DAY + 200 + LASTING) as store:
        assert store.purge("chat", unused=DAY, limit=9) == ["a"]


def test_a_date_that_is_damaged_in_the_file_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with opened(path, 100.0, 10 * DAY) as store:
        store.purge("chat", unused=DAY, limit=9)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE retention_clock SET date = 'yesterday'")
    connection.commit()
    connection.close()
    with opened(path, 100.0, 10 * DAY) as store:
        assert store.purge("chat", unused=DAY, limit=9) == []
