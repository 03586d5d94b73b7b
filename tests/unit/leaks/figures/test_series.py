from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from floodline.leaks._figures import rss_split as split
from floodline.leaks._figures import trend as trend_module
from floodline.leaks._figures.candidates import find_candidates
from floodline.leaks._figures.rss_split import Split, read_split
from floodline.leaks._figures.series import Series
from floodline.leaks._heap.slots import Slots

SPLIT = Split(1, 2, 3, 4, 5)


def walk(*rows):
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    names = ("count", "length", "text", "bytes")
    return SimpleNamespace(**{n: list(c) for n, c in zip(names, columns, strict=True)})


def test_only_changes_are_kept_and_columns_are_whole():
    slots = Slots()
    series = Series(slots)
    series.add(0, walk((1, 5, 0, 9), (1, 1, 1, 1)), 10, SPLIT)
    series.add(1, walk((1, 5, 0, 9), (1, 2, 1, 1), (1, 7, 0, 0)), 11, SPLIT)
    series.add(2, walk((1, 5, 0, 9)), 12, SPLIT)
    series.add(3, walk((1, 5, 0, 9)), 12, SPLIT)
    assert series.changed() == [1, 2]
    assert series.column(0, "length") == [5, 5, 5, 5]
    assert series.column(1, "length") == [1, 2, 0, 0]
    assert series.column(2, "length") == [0, 7, 0, 0]
    assert series.last(99, "count") == 0
    assert series.process("rss") == [1, 1, 1, 1]
    series.restart()
    assert (len(series), series.changed()) == (0, [])
    series.add(4, walk((2, 6, 0, 9)), 12, SPLIT)
    assert series.column(0, "length") == [6]


def run_of(slots, rows, rounds=40):
    series, none = Series(slots), [(0, 0, 0, 0)]  # the first slot is for what comes too late
    for at in range(rounds):
        series.add(at, walk(*none, *rows(at)), 10, SPLIT)
    return series


def test_what_grows_with_its_holders_is_explained_by_them():
    slots = Slots()
    root = slots.root("app")
    table = slots.child(root, "app", ".TABLE")
    item = slots.child(table, "", "[*]")
    slots.child(item, "app.Session", ".log")

    def rows(at):
        return [(1, 0, 0, 0), (1, at, 0, 8 * at), (at, 0, 0, 48 * at), (at, 3 * at, 0, 80 * at)]

    found = find_candidates(run_of(slots, rows))
    assert [c.slot.path for c in found.growing] == ["app.TABLE"]
    assert found.growing[0].bytes_rate == pytest.approx(136, rel=0.01)


def test_many_small_ones_that_grow_are_not_explained_by_a_few_new_holders():
    slots = Slots()
    root = slots.root("app")
    slots.child(slots.child(slots.child(root, "app", ".CHATS"), "", "[*]"), "app.Chat", ".events")

    def rows(at):
        chats = 1000 + at // 8
        return [(1, 0, 0, 0), (1, 1000, 0, 0), (1000, 0, 0, 0), (chats, 90 * at, 0, 0)]

    found = find_candidates(run_of(slots, rows))
    assert [c.slot.owner for c in found.growing] == ["app.Chat.events"]


def test_the_names_of_the_program_come_before_those_of_the_library():
    slots = Slots()
    slots.child(slots.root("json"), "json", ".CACHE")
    slots.child(slots.root("app"), "app", ".ROWS")

    def rows(at):
        return [(1, 0, 0, 0), (1, at, 0, 900 * at), (1, 0, 0, 0), (1, at, 0, at)]

    found = find_candidates(run_of(slots, rows))
    assert [c.slot.path for c in found.growing] == ["app.ROWS", "json.CACHE"]


def test_without_the_counters_of_glibc_malloc_is_not_told(monkeypatch):
    split._mallinfo2.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    found = read_split()
    split._mallinfo2.cache_clear()
    assert (found.malloc_used, found.malloc_free, found.malloc_mapped) == (0, 0, 0)
    assert found.rss > 0


def test_too_few_steps_prove_nothing():
    assert trend_module._chance([0, 1, 2], [0, 1, 2]) == 1.0
    assert trend_module._chance(list(range(9)), list(range(9, 0, -1))) == 1.0
