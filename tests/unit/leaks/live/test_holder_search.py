from __future__ import annotations

import gc
import sqlite3
import threading
from typing import Any

import pytest

from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.holder_search import LONG, REST, HolderSearch, Met, let_go
from floodline.leaks._live.readings.rare_steps import RareSteps
from floodline.leaks._objects.outline import Outlines
from soak_programs import module

MANY = 3 * LONG
KEPT: list[Any] = []


class Event:
    pass


class Closed:
    __slots__ = ("rows",)


class Doc:
    def __init__(self) -> None:
        self.parts = [Closed(), Closed()]


class Search(HolderSearch):
    """A search with slots of its own, and what it told to watch."""

    def __init__(self) -> None:
        self.slots, self.watched, outlines, anchors = Slots(), [], Outlines(), {}
        self.places, self.now, self.spent = Places(outlines, anchors), 0.0, 0.0
        self.rare = RareSteps(lambda: self.now, lambda: self.spent)
        super().__init__(self.slots, outlines, anchors, self.rare, self.watched.append)

    def look(self, now: float = 0.0, kind: type = Event, objects: int = 100_000) -> list[str]:
        gc.collect()  # what is new has survived then
        self.now = now
        self.work(now, frozenset({id(kind)}), objects)
        return [self.slots[index].path for index in self.watched]


@pytest.fixture
def events():
    yield lambda count=MANY: [Event() for _ in range(count)]
    KEPT.clear()


def test_a_closure_that_only_c_code_holds_is_found(events):
    def install(connection):
        rows = events()

        def audit(value):
            return rows.append(value)

        connection.create_function("audit", 1, audit)

    connection = sqlite3.connect(":memory:")
    install(connection)
    search = Search()
    (path,) = search.look()
    assert path.endswith("install.<locals>.audit{rows}")
    (rows,) = search.places.values(search.slots[search.watched[0]])
    assert len(rows) == MANY
    assert search.told.startswith(f"looked for their holders in {search.passes} passes")
    connection.close()


def test_a_way_through_items_and_slots_starts_at_an_object_that_can_be_found_again(events):
    doc = Doc()
    doc.parts[1].rows = events()
    KEPT.append({"doc": doc})
    search = Search()
    assert search.look() == [f"<{__name__}.Doc>.parts[*].rows"]
    slot = search.slots[search.watched[0]]
    assert slot.owner == f"{__name__}.Closed.rows"
    assert [len(rows) for rows in search.places.values(slot)] == [MANY]
    doc = None
    KEPT.clear()
    assert search.places.values(slot) == []  # it kept nothing alive


def test_a_global_and_a_class_attribute_are_found_by_their_names(events, tmp_path, monkeypatch):
    # what was imported before the tests is frozen, and then the collector does not see it
    held = module("holding", "ROWS = []\nclass Box:\n    shared = []\n", tmp_path, monkeypatch)
    held.ROWS.extend(events())
    assert Search().look() == ["holding.ROWS"]
    held.ROWS.clear()
    held.Box.shared.extend(events())
    assert Search().look() == ["holding.Box.shared"]


def test_where_no_name_leads_what_was_found_is_described(events):
    class Sink:
        __slots__ = ("rows",)

        def __call__(self, value):
            return self.rows.append(value)

    connection, sink = sqlite3.connect(":memory:"), Sink()
    sink.rows = events()
    connection.create_function("audit", 1, sink)
    del sink
    search = Search()
    assert search.look() == []
    kind = f"{Sink.__module__}.{Sink.__qualname__}"
    assert search.told.endswith(f"a list of {MANY} items, <{kind}>.rows")
    connection.close()


def test_no_search_without_a_type_and_then_a_rest_after_each(events):
    KEPT.append(events())
    search = Search()
    search.work(0.0, frozenset(), 100_000)
    assert search.passes == 0
    assert search.told == ""
    search.look()
    passes = search.passes
    search.look(now=REST - 1)
    assert search.passes == passes
    search.look(now=REST)
    assert search.passes == 2 * passes


def test_in_a_large_heap_a_search_is_suspended_and_two_steps_a_minute_are_long(events, monkeypatch):
    search, began = Search(), []
    time = search.rare.time

    def slow(kind, call, size):
        def slowly():
            if kind == "ask":
                began.append(search.now)
                search.spent += 0.05
            return call()

        return time(kind, slowly, size)

    def install(connection):
        rows = events()
        connection.create_function("audit", 1, lambda value: rows.append(value))

    connection = sqlite3.connect(":memory:")
    install(connection)
    monkeypatch.setattr(search.rare, "time", slow)
    for second in range(300):
        if found := search.look(now=float(second), objects=1_000_000):
            break
        assert not any(isinstance(one, Event) for one in gc.get_referents(search, search.__dict__))
    assert [path.rpartition(".")[2] for path in found] == ["<lambda>{rows}"]
    assert began == [0.0, 1.0, 60.0, 61.0]  # one pass each
    connection.close()


class Rows(list):
    __slots__ = ()


def test_a_search_ends_if_what_it_has_met_is_gone_when_it_goes_on(events, monkeypatch):
    search = Search()
    monkeypatch.setattr(RareSteps, "longest", lambda *_: -1.0)
    KEPT.append({"doc": [Rows(events())]})  # a type of which there is no other at its address
    search.look()
    assert search.passes == 1
    KEPT.clear()
    search.look(now=1.0)
    assert search.passes == 1
    assert search.watched == []
    search.look(now=REST)
    assert search.passes == 1  # it rests


def test_a_search_ends_if_only_a_part_of_what_it_has_met_is_left(events, monkeypatch):
    search, rows, closed = Search(), events(), Closed()
    monkeypatch.setattr(RareSteps, "longest", lambda *_: -1.0)
    closed.rows = rows
    KEPT.append(closed)
    del closed
    search.look()
    search.look(now=1.0)
    assert search.passes == 2
    KEPT[:] = [rows]
    search.look(now=2.0)
    assert search.passes == 2


def test_a_few_objects_in_short_lists_have_no_holder_worth_a_name(events):
    KEPT.extend([events(3) for _ in range(20)])
    search = Search()
    assert search.look() == []
    assert search.passes == 2


def test_what_only_a_search_still_holds_is_dropped_by_another_thread():
    dropped, done = [], threading.Event()

    class Last:
        def __del__(self):
            dropped.append(threading.get_ident())
            done.set()

    shared = Last()
    let_go(Met([shared]))
    assert not dropped
    met = Met([Last()])
    let_go(met)
    assert done.wait(30)
    assert dropped == [dropped[0]] != [threading.get_ident()]
