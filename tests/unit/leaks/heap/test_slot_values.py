from __future__ import annotations

import sys
import threading
import types

from floodline.leaks._closeup.closeup import look_closer
from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.trend import Trend
from floodline.leaks._heap import roots
from floodline.leaks._heap import slot_values as reading
from floodline.leaks._heap.roots import survey
from floodline.leaks._heap.slot_values import changes_in, length_in, names_in, value_in
from floodline.leaks._heap.slots import Slots
from floodline.leaks._heap.walk import MANY_NAMES, Held
from floodline.leaks._objects.anatomy import Anatomy, unwrapped
from live_watch import Watched
from soak_programs import lengths, module, narrow

SOURCE = """
import array, collections, functools, io, queue, threading, xml.etree.ElementTree as tree

class Bag: pass
BAG, FEW, MANY = Bag(), [Bag()], [Bag()]
for n in range(300): setattr(BAG, "key%d" % n, [n])
FEW[0].a = FEW[0].b = [1]
for n in range(70): setattr(MANY[0], "key%d" % n, [n])

NUMBERS = array.array("i", range(10))
SINK, TEXT = io.BytesIO(), io.StringIO()
SINK.write(b"12345")
TEXT.write("123")
ROOT = tree.Element("root")
for n in range(9): tree.SubElement(ROOT, "row")

class Mine(threading.local):
    def __init__(self): self.spans = [1, 2]
LOCAL = Mine()
LOCAL.spans.append(3)

class Jobs(queue.Queue): pass
class App:
    def __init__(self): self.jobs = Jobs()
APP = App()
APP.jobs.put(1)

class Look:
    @staticmethod
    @functools.cache
    def up(n): return [n]
Look.up(1)

@functools.singledispatch
def show(x): return x
"""


def walked(tmp_path, monkeypatch):
    made = module("rare", SOURCE, tmp_path, monkeypatch)
    narrow(monkeypatch, made)
    slots = Slots()
    return made, slots, survey(slots)


def candidate(slots, key, column="length", rate=1.0):
    return Candidate(slots.get(key), column, Trend("growing", rate), 0.0, 3)


def test_attributes_count_as_the_length_of_what_is_used_like_a_dict(tmp_path, monkeypatch):
    made, _, walk = walked(tmp_path, monkeypatch)
    found = lengths(walk)
    assert found["rare.BAG"] == 300
    assert found["rare.FEW[*]"] == 0
    assert found["rare.MANY[*]"] == 70 > MANY_NAMES
    assert found["rare.Look"] == len(vars(made.Look))
    assert found["rare"] >= len(vars(made)) - 1


def test_buffers_are_counted_in_bytes_and_what_c_code_keeps_by_its_number(tmp_path, monkeypatch):
    _, _, walk = walked(tmp_path, monkeypatch)
    found = lengths(walk, "text")
    assert [found[f"rare.{name}"] for name in ("NUMBERS", "SINK", "TEXT")] == [40, 5, 3]
    assert lengths(walk)["rare.ROOT"] >= 9


def test_memory_that_only_a_c_type_tells_of_is_counted():
    import struct

    class Lies(struct.Struct):
        def __sizeof__(self):
            raise AssertionError

    packed = struct.Struct("i" * 8)
    told = Anatomy(type(packed)).extra
    assert told(packed) == packed.__sizeof__() - type(packed).__basicsize__
    assert Anatomy(Lies).extra is None
    assert Anatomy(Slots).extra is None


def test_an_attribute_of_a_thread_local_is_named_by_the_class_that_assigns_it(
    tmp_path, monkeypatch
):
    _, slots, _ = walked(tmp_path, monkeypatch)
    (close,) = look_closer(slots, [candidate(slots, "rare.LOCAL.spans")])
    assert (close.owner, close.defined_in) == ("rare.Mine.spans", "rare.Mine")


def test_what_a_base_of_the_library_assigns_is_named_by_who_holds_it(tmp_path, monkeypatch):
    _, slots, _ = walked(tmp_path, monkeypatch)
    (close,) = look_closer(slots, [candidate(slots, "rare.APP.jobs.queue")])
    assert (close.owner, close.defined_in) == ("rare.App.jobs", "rare.App")
    assert [type(held.value).__name__ for held in close.heads] == ["Jobs"]


def test_a_variable_of_the_library_belongs_to_the_function_that_the_program_made(
    tmp_path, monkeypatch
):
    _, slots, _ = walked(tmp_path, monkeypatch)
    key = "functools.singledispatch.<locals>.dispatch{registry}"
    assert slots.get(key).head().owner == "rare.show"


def test_a_cache_behind_a_static_method_is_its_own_line(tmp_path, monkeypatch):
    _, slots, _ = walked(tmp_path, monkeypatch)
    (close,) = look_closer(slots, [candidate(slots, "rare.Look.up")])
    assert close.definition().co_name == "up"
    assert close.suspect(1).type == "_lru_cache_wrapper"
    assert unwrapped(classmethod(len)) is len


def test_names_that_floodline_has_for_itself_come_last(monkeypatch):
    names = ["floodline.telemetry", "logging", "app", "floodline"]
    monkeypatch.setattr(sys, "modules", {name: types.ModuleType(name) for name in names})
    begun = []
    walk = types.SimpleNamespace(
        push=lambda module, slot: begun.append(slot), slots=types.SimpleNamespace(root=str)
    )
    roots._modules(walk)
    assert begun == ["app", "logging", "floodline.telemetry", "floodline"]


def place(holder, label, value):
    slots = Slots()
    return Held(holder, value), slots[slots.child(slots.root("app"), "app", label)]


def test_values_are_read_again_wherever_they_are_replaced():
    class Shared:
        rows = (1,)

    def make(seen):
        def note(more):
            nonlocal seen
            seen = seen + more

        return note

    local, note, apart = threading.local(), make([1]), [1, 2]
    local.spans = [1]
    in_class = value_in(*place(Shared, ".rows", Shared.rows))
    in_cell = value_in(*place(note, "{seen}", note.__closure__[0].cell_contents))
    in_thread = value_in(*place(local, ".spans", local.spans))
    elsewhere = value_in(*place(note, "{seen}", apart))
    missing = value_in(*place(None, ".gone", apart))
    Shared.rows, local.spans = (1, 2), [1, 2, 3]
    note([2, 3, 4])
    assert [len(now()) for now in (in_class, in_cell, in_thread)] == [2, 4, 3]
    assert elsewhere() is missing() is apart


def test_the_head_of_a_chain_counts_when_it_is_replaced_or_c_code_keeps_more():
    from xml.etree.ElementTree import Element, SubElement

    class App:
        pass

    app = App()
    app.root = Element("root")
    changes = changes_in(*place(app, ".root", app.root))
    SubElement(app.root, "one")
    first = changes()
    app.root = None
    assert (first, changes(), changes()) == (1, 1, 1)


def test_lengths_of_what_has_none_of_its_own():
    from xml.etree.ElementTree import Element

    class Bag:
        pass

    bag, root = Bag(), Element("root")
    bag.one = 1
    made = types.ModuleType("made")
    size = {one: length_in(*place(None, ".x", one), "length") for one in (bag, made, Bag)}
    kept = length_in(*place(None, ".x", root), "length")
    before = {one: read() for one, read in size.items()}
    root.append(Element("row"))
    bag.two = made.two = Bag.two = 2
    assert {one: read() - before[one] for one, read in size.items()} == dict.fromkeys(size, 1)
    assert kept() >= 1
    assert names_in([1]) is None


LEAKS = """
import array, functools, io

class Desk:
    def __init__(self):
        self.numbers = array.array("d")
        self.sink = io.BytesIO()
        self.text = io.StringIO()

    @staticmethod
    @functools.cache
    def look_up(i):
        return [i]

class Bag: pass
DESK, BAG = Desk(), Bag()

def round(i):
    DESK.numbers.extend([1.0] * 50)
    DESK.sink.write(b"0123456789" * 40)
    DESK.text.write("0123456789" * 40)
    setattr(BAG, "key%d" % i, [i])
    Desk.look_up(i)
"""


def test_a_live_watch_names_them_too(tmp_path, monkeypatch):
    made = module("served", LEAKS, tmp_path, monkeypatch)
    answer = Watched(monkeypatch, made).run(100, made.round)
    names = {suspect.owner for suspect in answer.suspects if suspect.verdict == "growing"}
    assert names >= {f"served.Desk.{name}" for name in ("numbers", "sink", "text", "look_up")}
    assert "served.BAG" in names


KEPT = """
import weakref

class Thing: pass
BY_ID, KEPT = weakref.WeakValueDictionary(), []

def round(i):
    thing = Thing()
    BY_ID[i] = thing
    KEPT.append(thing)
"""


def test_a_live_watch_names_what_holds_before_what_points(tmp_path, monkeypatch):
    made = module("served", KEPT, tmp_path, monkeypatch)
    (suspect,) = Watched(monkeypatch, made).run(100, made.round).suspects
    assert (suspect.owner, suspect.echoes, suspect.rank) == ("served.KEPT", ("served.BY_ID",), 1)


def test_variables_of_functions_that_wait_or_run_are_read_again_when_they_are_replaced():
    def waits():
        rows = ()
        while True:
            rows = (*rows, (yield))

    generator = waits()
    next(generator)
    anchor = f"{__name__}.{waits.__code__.co_qualname}"
    slots = Slots()
    slot = slots[slots.child(slots.root(anchor), anchor, "()rows")]
    waiting = value_in(Held(generator, generator.gi_frame.f_locals["rows"]), slot)
    elsewhere = value_in(Held(generator, [7]), slot)
    generator.send(1)
    assert (waiting(), elsewhere()) == ((1,), [7])

    kept = []
    anchor = f"{__name__}.{sys._getframe().f_code.co_qualname}"
    running = value_in(Held(None, kept), slots[slots.child(slots.root(anchor), anchor, "()kept")])
    kept = [1, 2]
    assert running() is kept


def test_lengths_of_caches_and_of_no_container():
    import functools

    cached = functools.lru_cache(lambda x: x)
    cached(1)

    class Rows(list):
        pass

    assert [reading.length(v) for v in (cached, Rows([1, 2]), None)] == [1, 2, 0]
