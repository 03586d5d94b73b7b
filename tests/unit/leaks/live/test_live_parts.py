from __future__ import annotations

import ast
import contextvars
import functools
import sys
import threading
import types
from collections import deque

import pytest

from floodline.leaks import Suspect
from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.trend import Trend
from floodline.leaks._heap.slot_lookup import Places, cached, locals_of, suspended_label
from floodline.leaks._heap.slots import MAX_SLOTS, Slots
from floodline.leaks._live import tracks as tracks_module
from floodline.leaks._live.blind_spots import blind_spots
from floodline.leaks._live.judge import Judge
from floodline.leaks._live.named_suspects import Named, echoes_of, name
from floodline.leaks._live.sliced_walk import SlicedWalk
from floodline.leaks._live.tracks import MAX_POINTS, Process, Track, Tracks
from floodline.leaks._live.watched_slots import LOST, Ticks
from floodline.leaks._objects import items as items_module
from floodline.leaks._objects.items import edges, part, some
from floodline.leaks._objects.outline import MISSING, Outline, Outlines, _slot
from floodline.leaks._source.excerpt import tree_about

SOURCE = '''
import other

@decorated
@twice
def first():
    keep = 1

def second():
    """Text
at the left edge, with keep in it
    """
    return 2

class Head(keep):
    def nothing(self):
        return 1

class Large:
    """A docstring
    of two lines."""

    @property
    def one(self):
        return self.keep

    def two(self):
        return 2
    keep: int = 3

class Spread(
    Head,
):
    keep = 4

if other:
    pass
else:
    keep = 5
'''


def test_only_the_statements_that_mention_a_word_are_parsed(tmp_path):
    file = tmp_path / "large.py"
    file.write_text(SOURCE, encoding="utf-8")
    tree = tree_about(str(file), "keep")
    names = [getattr(node, "name", type(node).__name__) for node in tree.body]
    assert names == ["first", "second", "Head", "Large", "Spread", "If"]
    large = tree.body[3]
    assert [getattr(node, "name", type(node).__name__) for node in large.body] == [
        "one",
        "AnnAssign",
    ]
    line = SOURCE.splitlines().index("    keep: int = 3") + 1
    assert large.body[1].lineno == line
    assert ast.unparse(tree.body[2]) == "class Head(keep):\n    pass"
    assert tree_about(str(file), "no_such_word").body == []


def test_a_file_that_cannot_be_cut_is_parsed_whole(tmp_path):
    file = tmp_path / "odd.py"
    file.write_text("X = [1,\n2,\n'keep']\nY = 1\n", encoding="utf-8")
    assert len(tree_about(str(file), "keep").body) == 2


@pytest.mark.parametrize("made", [dict, list, tuple, set, frozenset, deque])
def test_parts_of_containers_are_taken_in_their_order(made):
    items = [(n,) for n in range(10)]
    held = dict(enumerate(items)) if made is dict else made(items)
    ordered = made not in (set, frozenset)
    assert len(part(held, made, 2, 5)) == 3
    assert not ordered or part(held, made, 2, 5) == items[2:5]
    both = edges(held, made, 2)
    expected = items[:2] + (items[-2:] if made in (list, tuple) else items[-2:][::-1])
    assert sorted(both) == sorted(expected) if ordered else len(both) == 4
    assert len(some(held, made, 10, 10)) == 10
    assert len(some(held, made, 10, 4)) == 4
    assert part(3, None, 0, 5) == []


def test_a_container_that_changes_meanwhile_is_tried_again_and_then_left(monkeypatch):
    tries = []

    def changing(*_, **__):
        tries.append(1)
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(items_module, "islice", changing)
    assert part({1: 2}, dict, 0, 1) == []
    assert len(tries) == 3
    assert edges({1: 2}, dict, 1) == []
    assert len(tries) == 9


def test_a_track_that_is_full_keeps_every_second_point_and_then_the_newest_half(monkeypatch):
    monkeypatch.setattr(tracks_module, "MAX_SPACING", 2.0)
    track = Track()
    for second in range(400):
        track.add(float(second), (1, second, 0, 0))
    assert len(track) < MAX_POINTS
    assert track.times[-1] > 390
    assert 20 < track.span < 200
    assert track.latest == (1, 399, 0, 0)
    assert track.column(1) == [int(at) for at in track.times]


def test_full_tracks_make_room_by_forgetting_what_does_not_change(monkeypatch):
    monkeypatch.setattr(tracks_module, "MAX_TRACKS", 2)
    tracks = Tracks(Slots())
    tracks.add(1, 0.0, (1, 1, 0, 0))
    tracks.add(2, 0.0, (1, 1, 0, 0))
    tracks.add(2, 1.0, (1, 2, 0, 0))
    tracks.add(3, 2.0, (1, 1, 0, 0))
    assert list(tracks.by_index) == [2, 3]
    tracks.add(3, 3.0, (1, 5, 0, 0))
    tracks.add(4, 4.0, (1, 1, 0, 0))
    assert sorted(tracks.changed()) == [2, 3]


def test_an_attribute_is_found_wherever_it_is(monkeypatch):
    places = Places(Outlines(), {})

    class Mixed(dict):
        __slots__ = ("__dict__", "slot")

    class Late:
        def __getattr__(self, name):
            raise AssertionError

    mixed, late, local = Mixed(), Late(), threading.local()
    mixed.slot, mixed.dynamic, late.rows, local.rows = [1], [2], [3], [4]
    assert places.take(mixed, ".slot") == [[1]]
    assert places.take(mixed, ".dynamic") == [[2]]
    assert places.take(mixed, ".__dict__") == places.take(mixed, ".missing") == []
    assert places.take(late, ".rows") == [[3]]
    assert places.take(late, ".missing") == places.take(late, ".__init__") == []
    assert places.take(local, ".rows") == [[4]]
    assert places.take(len, ".rows") == places.take(3, "[*]") == places.take({}, "→int") == []
    assert places.take({1: [1]}, "[keys]") == []
    variable = contextvars.ContextVar("variable")
    context = contextvars.copy_context()
    context.run(variable.set, [5])
    assert [5] in places.take(context, "→value")

    def function(a, b=[1], *, c=[2]):  # noqa: B006  # defaults are what is looked for
        return local

    function.rows = [6]
    assert places.take(function, "(b=)") == [[1]]
    assert places.take(function, "(c=)") == [[2]]
    assert places.take(function, ".rows") == [[6]]
    assert places.take(function, "{local}") == [local]
    assert locals_of(sys._getframe()) == [] or sys.version_info >= (3, 13)


def test_a_large_cache_is_not_listed(monkeypatch):
    made = functools.cache(lambda n: [n])
    for n in range(20):
        made(n)
    assert [3] in cached(made)
    monkeypatch.setattr("floodline.leaks._heap.slot_lookup.MOST_REFERENTS", 10)
    assert cached(made) == []


def test_a_generator_without_a_function_is_named_by_its_code(monkeypatch):
    made = (n for n in [1])
    monkeypatch.setattr("floodline.leaks._heap.slot_lookup._HEADER", 0)
    assert suspended_label(made).endswith("<genexpr>")


def test_slots_that_are_not_there_are_missing():
    class One:
        __slots__ = ("rows",)

    assert _slot((One,), 5, "rows", One()) is MISSING
    assert _slot((One,), 0, "other", One()) is MISSING
    assert _slot((One,), 0, "rows", One()) is MISSING
    plan = Outline(One)
    assert plan.attributes(One()) == []
    assert plan.attribute(One(), "other") is MISSING
    assert not plan._is_namespace(One(), {"rows": 1})


def test_a_dict_is_the_namespace_only_if_the_object_says_so():
    class Box:
        pass

    box, plan = Box(), Outline(Box)
    box.x = [1]
    assert plan._is_namespace(box, {"x": box.x})
    for other in ({}, {"x": [1]}, {1: 2}, {"__init__": 1}, Shy()):
        assert not plan._is_namespace(box, other)


class Shy(dict):
    def __iter__(self):
        raise RuntimeError("changed")


def suspect(owner, rate):
    return Suspect(1, "growing", owner, "app", "app", "dict", "", 5, rate, 1.0)


def test_a_library_container_at_the_same_pace_is_an_echo():
    mine, theirs = suspect("asyncio.tasks._all", 2.0), suspect("app.TASKS", 2.0)
    one, other = (Named(s, 0.0, frozenset(), ()) for s in (mine, theirs))
    assert echoes_of(one, mine, other, theirs)
    assert not echoes_of(other, theirs, one, mine)


def test_what_no_path_leads_back_to_is_named_by_its_slot():
    slots = Slots()
    slot = slots.child(slots.root("no_such_module"), "no_such_module", ".ROWS")
    places = Places(Outlines(), {})
    named = name(Candidate(slots[slot], "length", Trend("growing", 2.0), 1.0, 5), places).suspect
    assert (named.owner, named.path, named.len) == ("no_such_module.ROWS", "no_such_module.ROWS", 5)
    assert (named.type, named.holds, named.file, named.line_source) == ("", "", None, None)
    ticks = Ticks(Tracks(slots), places, Outlines())
    ticks.watch(slot)
    for _ in range(LOST):
        ticks.begin()
        ticks.advance(lambda: False, lambda: 0.0)
    assert len(ticks) == 0


def test_a_place_that_is_many_is_left_to_the_walk(monkeypatch):
    monkeypatch.setattr("floodline.leaks._live.watched_slots.MOST_PLACES", 10)
    made = types.ModuleType("many_places")
    made.ROWS = [[n] for n in range(50)]
    monkeypatch.setitem(sys.modules, "many_places", made)
    slots = Slots()
    child = slots.child(slots.root("many_places"), "many_places", ".ROWS")
    ticks = Ticks(Tracks(slots), Places(Outlines(), {}), Outlines())
    assert ticks._read(slots[child]) == (1, 50, 0, made.ROWS.__sizeof__())
    assert ticks._read(slots[slots.child(child, "", "[*]")]) is None


def test_what_a_class_holds_is_read_by_the_name_of_the_class(monkeypatch):
    made = types.ModuleType("held_by_class")
    made.Store = type("Store", (), {"ROWS": [1, 2]})
    monkeypatch.setitem(sys.modules, "held_by_class", made)
    slots = Slots()
    rows = slots.child(slots.root("held_by_class.Store"), "held_by_class.Store", ".ROWS")
    assert Places(Outlines(), {}).values(slots[rows]) == [made.Store.ROWS]


def test_what_lies_too_deep_is_not_called_bounded():
    slots = Slots()
    places, process = Places(Outlines(), {}), Process()
    judge = Judge(Tracks(slots), Tracks(slots), places, process)
    for second in range(100):
        process.add(float(second), (second, 0, 0, 1 << 20, 100, 0, 0, 0, 0))
    judge.settled(0.0)
    for cut, expected in ((0, "bounded"), (7, "undecided")):
        walk = SlicedWalk(slots, Outlines(), {})
        walk.cut = cut
        judge.walked(walk)
        judge.work(100.0)
        found = judge.answer(watched=1, objects=1, walks=1, expected=0, cost=0, blind=())
        assert found.verdict == expected
    assert "7 objects" in found.needed["why"]


def test_a_full_table_of_places_and_a_large_heap_are_said():
    slots = Slots()
    slots.keys += [""] * MAX_SLOTS
    spots = blind_spots(slots, None, short=True, inherited=False, census=False)
    assert any("named places" in spot for spot in spots)
    assert any("no census" in spot for spot in spots)
