from __future__ import annotations

import sys
import threading
import types

from floodline.leaks._closeup.closeup import look_closer
from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.trend import Trend
from floodline.leaks._heap import owner_names as naming
from floodline.leaks._heap.roots import survey
from floodline.leaks._heap.slots import Slots
from soak_programs import module, narrow

SOURCE = """
import collections, functools, weakref

class Base:
    def __init__(self):
        self.rows = {}

class Derived(Base):
    limit = 50

ONE = Derived()
RING = collections.deque(maxlen=9)
TABLE = weakref.WeakValueDictionary()

@functools.lru_cache(maxsize=77)
def cached(x): return x

@functools.lru_cache(maxsize=None)
def endless(x): return x

class Cap:
    most = 30
    def __init__(self):
        self.own = 20
        self.a, self.b, self.c, self.d = {}, {}, {}, {}
    def put(self):
        if len(self.a) > 10: self.a.popitem()
        if len(self.b) > self.own: self.b.popitem()
        if len(self.c) > self.most: self.c.popitem()
        if len(self.d) > LIMIT: self.d.popitem()
        if len(self.e) > compute(): self.e.popitem()
LIMIT = 40
CAP = Cap()

class Node:
    def __init__(self, n): self.next = n
class Stack:
    def __init__(self): self.head = None
STACK = Stack()
for _ in range(5): STACK.head = Node(STACK.head)
"""


def close_to(key, made, monkeypatch, column="length"):
    narrow(monkeypatch, made)
    slots = Slots()
    survey(slots)
    slot = slots.get(key)
    one = Candidate(slot, column, Trend("growing", 1.0, 10.0, 1.0), 10.0, 5)
    return look_closer(slots, [one])[0]


def test_an_attribute_is_named_by_the_class_that_assigns_it(tmp_path, monkeypatch):
    made = module("named", SOURCE, tmp_path, monkeypatch)
    found = close_to("named.ONE.rows", made, monkeypatch)
    assert (found.owner, found.defined_in) == ("named.Base.rows", "named.Base")
    assert naming.defining_class(made.Derived, "nowhere") == "named.Derived"


def test_a_global_is_named_by_the_module_that_makes_it(tmp_path, monkeypatch):
    made = module("named", SOURCE, tmp_path, monkeypatch)
    user = module("user_of_named", "from named import RING\n", tmp_path, monkeypatch)
    found = close_to("user_of_named.RING", user, monkeypatch)
    assert found.owner == "named.RING"
    assert made.RING is user.RING
    user.OTHER = []
    assert naming._home("user_of_named", "OTHER", user.OTHER) == "user_of_named"


def test_what_the_library_holds_is_named_by_the_program(tmp_path, monkeypatch):
    made = module("named", SOURCE, tmp_path, monkeypatch)
    found = close_to("named.TABLE.data", made, monkeypatch)
    assert found.owner == "named.TABLE"
    assert found.suspect(1).type == "WeakValueDictionary"


def test_caps_are_read_from_the_object_or_its_code(tmp_path, monkeypatch):
    made = module("named", SOURCE, tmp_path, monkeypatch)
    keys = ["RING", "cached", "endless", "CAP.a", "CAP.b", "CAP.c", "CAP.d"]
    caps = [close_to(f"named.{key}", made, monkeypatch)._cap for key in keys]
    assert caps == [
        *((9, True), (77, True), (None, False)),
        *((10, True), (20, True), (30, True), (40, True)),
    ]


def test_a_cached_function_is_its_own_line(tmp_path, monkeypatch):
    made = module("named", SOURCE, tmp_path, monkeypatch)
    assert close_to("named.endless", made, monkeypatch).definition().co_name == "endless"
    assert close_to("named.RING", made, monkeypatch).definition() is None


def test_a_chain_is_named_by_the_slot_of_its_head(tmp_path, monkeypatch):
    made = module("named", SOURCE, tmp_path, monkeypatch)
    found = close_to("*named.Node.next", made, monkeypatch, "count")
    assert found.owner == "named.Stack.head"
    assert found.holds() == "Node ×3"
    [changes] = found.watch().lengths
    made.STACK.head = made.Node(made.STACK.head)
    assert (changes(), changes()) == (1, 1)


def test_lengths_follow_what_is_replaced(tmp_path, monkeypatch):
    source = "class A:\n    pass\nclass B:\n    __slots__ = ('x',)\n"
    source += "ONE, TWO, ROWS = A(), B(), [1]\nONE.x, TWO.x = [1], [1, 2]\nclass C:\n    y = [1]\n"
    made = module("replaced", source, tmp_path, monkeypatch)
    watches = [
        close_to(f"replaced.{key}", made, monkeypatch).watch()
        for key in ("ONE.x", "TWO.x", "ROWS", "C.y")
    ]
    made.ONE.x, made.TWO.x, made.ROWS = [1] * 5, [1] * 6, [1] * 7
    assert [watch.lengths[0]() for watch in watches] == [5, 6, 7, 1]


def test_thread_locals_without_a_way_are_found_by_their_use(tmp_path, monkeypatch):
    module(
        "uses_local",
        "import threading\nL = threading.local()\ndef f(): L.rows\n",
        tmp_path,
        monkeypatch,
    )
    assert naming._thread_local("rows") == ("uses_local.L.rows", "uses_local.L")
    assert naming._thread_local("no_such") == ("threading.local.no_such", "threading.local")
    assert not naming._uses(str(tmp_path / "missing.py"), "L.rows")


def test_a_place_in_a_thread_local_is_named_by_its_use():
    slots = Slots()
    slot = slots[slots.child(slots.root("<thread local>"), "<thread local>", ".rows_of_nobody")]
    assert naming.owner_of(slot, [])[0] == "threading.local.rows_of_nobody"


def test_an_owner_without_objects_keeps_the_name_of_its_slot():
    slots = Slots()
    slot = slots[slots.child(slots.root("app.X"), "app.C", ".rows")]
    assert naming.owner_of(slot, []) == ("app.C.rows", "app.C")
    cell = slots[slots.child(slots.root("app.f"), "app.f", "{rows}")]
    assert naming.owner_of(cell, []) == ("app.f{rows}", "app.f")


def test_the_last_name_is_the_word_in_the_source():
    owners = ["a.B.rows", "a.f.<locals>.g{rows}", "a.f()rows", "a.f(rows=)", "a.f"]
    assert [naming.last_name(o) for o in owners] == ["rows", "rows", "rows", "rows", "f"]


def test_no_module_is_found_for_a_stranger():
    assert naming.module_of("nobody.knows.this") is None


def test_names_do_not_fall_for_odd_modules(monkeypatch):
    monkeypatch.setitem(sys.modules, "odd", types.SimpleNamespace(X=1))
    assert naming._home("no_such", "X", 1) == "no_such"
    assert isinstance(threading.local(), threading.local)
