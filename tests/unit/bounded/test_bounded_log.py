from __future__ import annotations

import pytest

from floodline.bounded import BoundedLog


def test_it_reads_like_a_list():
    log = BoundedLog(5)
    log.extend(range(8))
    assert list(log) == [3, 4, 5, 6, 7]
    assert log[0] == 3
    assert log[-1] == 7
    assert log[1:3] == [4, 5]
    assert log[::-2] == [7, 5, 3]
    assert log[-2:] == [6, 7]
    assert list(reversed(log)) == [7, 6, 5, 4, 3]
    assert 4 in log
    assert 1 not in log
    assert log.index(5) == 2
    assert log.count(7) == 1
    with pytest.raises(IndexError, match="has no item 5"):
        log[5]


def test_iteration_survives_change():
    log = BoundedLog(3)
    log.extend("abc")
    seen = []
    for item in log:
        seen.append(item)
        log.append(item * 2)
    assert seen == ["a", "b", "c"]


def test_what_is_too_old_is_never_shown():
    now = [0.0]
    told = []
    log = BoundedLog(max_age=10, clock=lambda: now[0], on_evict=lambda *exit: told.append(exit))
    log.append("a")
    now[0] = 5.0
    log.append("b")
    now[0] = 10.0
    assert log[0] == "b"
    assert log[:] == ["b"]
    assert told == [("a", "age")]
    now[0] = 15.0
    assert log.sweep() == 1
    assert len(log) == 0
    stats = log.stats()
    assert (stats.added, stats.max_age, stats.left) == (2, 10, {"age": 2})
    log.clear()
