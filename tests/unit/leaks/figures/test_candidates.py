from __future__ import annotations

import pytest

from floodline.leaks._figures.candidates import find_candidates
from floodline.leaks._figures.rss_split import Split
from floodline.leaks._figures.series import Series
from floodline.leaks._heap.slots import Slots

SPLIT = Split(1, 2, 3, 4, 5)


@pytest.fixture
def run_of(walk):
    def run(slots, rows, rounds=40):
        series, none = Series(slots), [(0, 0, 0, 0)]  # the first slot is for what comes too late
        for at in range(rounds):
            series.add(at, walk(*none, *rows(at)), 10, SPLIT)
        return series

    return run


def test_what_grows_with_its_holders_is_explained_by_them(run_of):
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


def test_many_small_ones_that_grow_are_not_explained_by_a_few_new_holders(run_of):
    slots = Slots()
    root = slots.root("app")
    slots.child(slots.child(slots.child(root, "app", ".CHATS"), "", "[*]"), "app.Chat", ".events")

    def rows(at):
        chats = 1000 + at // 8
        return [(1, 0, 0, 0), (1, 1000, 0, 0), (1000, 0, 0, 0), (chats, 90 * at, 0, 0)]

    found = find_candidates(run_of(slots, rows))
    assert [c.slot.owner for c in found.growing] == ["app.Chat.events"]


@pytest.mark.parametrize("paced", [True, False])
def test_a_few_items_that_come_evenly_decide_if_work_sets_the_pace(run_of, paced):
    slots = Slots()
    slots.child(slots.root("app"), "app", ".ROWS")
    slots.child(slots.root("app"), "app", ".TEXT")

    def rows(at):
        return [(1, 0, 0, 0), (1, at // 20, 0, at), (1, 0, 300 * (at // 20), at)]

    found = find_candidates(run_of(slots, rows, rounds=260), tests=10_000, paced=paced)
    assert [c.slot.path for c in found.growing] == ["app.ROWS"][: int(paced)]
    assert [c.slot.path for c in found.rising if c.column == "text"] == ["app.TEXT"]


def test_the_names_of_the_program_come_before_those_of_the_library(run_of):
    slots = Slots()
    slots.child(slots.root("json"), "json", ".CACHE")
    slots.child(slots.root("app"), "app", ".ROWS")

    def rows(at):
        return [(1, 0, 0, 0), (1, at, 0, 900 * at), (1, 0, 0, 0), (1, at, 0, at)]

    found = find_candidates(run_of(slots, rows))
    assert [c.slot.path for c in found.growing] == ["app.ROWS", "json.CACHE"]


@pytest.mark.parametrize(("paced", "found"), [(True, ["app.OLD"]), (False, [])])
def test_what_comes_once_in_thirty_rounds_is_not_flat_in_a_soak(walk, paced, found):
    slots = Slots()
    slots.child(slots.root("app"), "app", ".OLD")
    series = Series(slots)
    late = (264, 268, 273, 277, 281, 286, 290)  # between two of them
    for at in (*range(30, 260, 12), *late):
        rows = [(0, 0, 0, 0), (1, 0, 0, 0), (1, at // 30, 0, 8)]
        series.add(at, walk(*rows), 10, SPLIT)
    candidates = find_candidates(series, paced=paced)
    assert [one.slot.path for one in candidates.growing + candidates.rising] == found
