from __future__ import annotations

import sys
import types

from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.readings.tracks import Tracks
from floodline.leaks._live.readings.watched_slots import Ticks, _names_of
from floodline.leaks._objects.outline import Outline, Outlines


def test_between_live_walks_attributes_count_too():
    from xml.etree.ElementTree import Element

    class Bag:
        pass

    bag, root = Bag(), Element("root")
    for number in range(100):  # with so many there is a dict, in all versions
        setattr(bag, f"key{number}", 1)
    root.extend([Element("row") for _ in range(3)])
    made = types.ModuleType("made")
    known = {one: _names_of(one, Outline(type(one))) for one in (bag, made, Bag, root, "text")}
    assert known == {
        bag: 100,
        made: len(vars(made)),
        Bag: len(vars(Bag)),
        root: known[root],
        "text": 0,
    }
    assert known[root] >= 3


def test_a_place_that_is_many_is_left_to_the_walk(monkeypatch):
    monkeypatch.setattr("floodline.leaks._live.readings.watched_slots.MOST_PLACES", 10)
    made = types.ModuleType("many_places")
    made.ROWS = [[n] for n in range(50)]
    monkeypatch.setitem(sys.modules, "many_places", made)
    slots = Slots()
    child = slots.child(slots.root("many_places"), "many_places", ".ROWS")
    ticks = Ticks(Tracks(slots), Places(Outlines(), {}), Outlines())
    assert ticks._read(slots[child]) == (1, 50, 0, made.ROWS.__sizeof__())
    assert ticks._read(slots[slots.child(child, "", "[*]")]) is None


def test_what_many_share_is_read_once_as_a_walk_counts_it(monkeypatch):
    made = types.ModuleType("sharing")
    made.COMMON = [1, 2, 3]
    made.ROWS = [[made.COMMON, [n]] for n in range(50)]
    monkeypatch.setitem(sys.modules, "sharing", made)
    slots = Slots()
    at = slots.child(slots.root("sharing"), "sharing", ".ROWS")
    for _ in range(2):
        at = slots.child(at, "", "[*]")
    ticks = Ticks(Tracks(slots), Places(Outlines(), {}), Outlines())
    count, length, _, _ = ticks._read(slots[at])
    assert (count, length) == (51, 53)


def test_no_single_place_waits_for_those_that_are_many(monkeypatch):
    made = types.ModuleType("waiting")
    made.ROWS = [[n] for n in range(50)]
    monkeypatch.setitem(sys.modules, "waiting", made)
    slots = Slots()
    rows = slots.child(slots.root("waiting"), "waiting", ".ROWS")
    each = slots.child(rows, "", "[*]")
    tracks = Tracks(slots)
    ticks = Ticks(tracks, Places(Outlines(), {}), Outlines())
    ticks.watch(each)
    ticks.watch(rows)
    ticks.begin()
    ticks.advance(lambda: False, lambda: 1.0)
    assert list(tracks.by_index) == [rows]
    assert not ticks.busy
    assert ticks.advance_many(lambda: True, lambda: 2.0)  # one is always read
    assert tracks.by_index[each].latest[:2] == (50, 50)


def test_a_few_places_are_read_like_one(monkeypatch):
    made = types.ModuleType("rooms")
    made.ROOMS = {name: [] for name in "abc"}
    monkeypatch.setitem(sys.modules, "rooms", made)
    slots = Slots()
    each = slots.child(slots.child(slots.root("rooms"), "rooms", ".ROOMS"), "", "[*]")
    tracks = Tracks(slots)
    ticks = Ticks(tracks, Places(Outlines(), {}), Outlines())
    ticks.watch(each)
    ticks.advance_many(lambda: False, lambda: 1.0)
    for second in range(2, 9):
        made.ROOMS["b"].append(second)
        ticks.begin()
        ticks.advance(lambda: False, lambda second=second: float(second))
    assert tracks.column(each, "length") == [0, 1, 2, 3, 4, 5, 6, 7]
    made.ROOMS |= {number: [] for number in range(50)}
    ticks.begin()
    ticks.advance(lambda: False, lambda: 9.0)
    ticks.begin()
    assert not ticks.busy  # there are many now


def test_what_a_class_holds_is_read_by_the_name_of_the_class(monkeypatch):
    made = types.ModuleType("held_by_class")
    made.Store = type("Store", (), {"ROWS": [1, 2]})
    monkeypatch.setitem(sys.modules, "held_by_class", made)
    slots = Slots()
    rows = slots.child(slots.root("held_by_class.Store"), "held_by_class.Store", ".ROWS")
    assert Places(Outlines(), {}).values(slots[rows]) == [made.Store.ROWS]


def test_what_is_no_longer_found_does_not_keep_growing(monkeypatch):
    made = types.ModuleType("vanishing")
    made.ROWS = []
    monkeypatch.setitem(sys.modules, "vanishing", made)
    slots = Slots()
    child = slots.child(slots.root("vanishing"), "vanishing", ".ROWS")
    tracks = Tracks(slots)
    ticks = Ticks(tracks, Places(Outlines(), {}), Outlines())
    ticks.watch(child)
    for second in range(10):
        if second == 5:
            del made.ROWS
        elif second < 5:
            made.ROWS.append(second)
        ticks.begin()
        ticks.advance(lambda: False, lambda second=second: float(second))
        assert (child in tracks.by_index) is (second < 7)
