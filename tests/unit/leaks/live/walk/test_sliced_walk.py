from __future__ import annotations

import asyncio
import gc
import importlib.util
import sys
import threading
import types
import weakref
from itertools import islice

import pytest

from floodline.leaks import Live
from floodline.leaks._heap.slot_lookup import Places, by_name, suspended_label, suspended_locals
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live import watch
from floodline.leaks._live.blind_spots import blind_spots
from floodline.leaks._live.readings.tracks import Tracks
from floodline.leaks._live.readings.watched_slots import Ticks
from floodline.leaks._live.walk import long_chains
from floodline.leaks._live.walk import outline_walk as look
from floodline.leaks._live.walk import sliced_walk as walk_module
from floodline.leaks._live.walk import walk_queue as entries
from floodline.leaks._live.walk.roots import roots
from floodline.leaks._live.walk.sliced_walk import SlicedWalk
from floodline.leaks._objects.frames import READS_RUNNING, SEES_RUNNING
from floodline.leaks._objects.identity_set import Seen
from floodline.leaks._objects.outline import MISSING, Outlines
from soak_programs import HOSTILE, MANY, lengths, module


class Sliced:
    """A walk from some modules, a few objects at a time."""

    def __init__(self, *modules, every=3):
        self.anchors, self.outlines = {}, Outlines()
        self.walk = SlicedWalk(Slots(), self.outlines, self.anchors)
        self.every = every
        for one in modules:
            self.walk.root(one, one.__name__)
        self.walk.advance(lambda: True)

    def step(self):
        asked = iter([False] * self.every)
        self.walk.advance(lambda: next(asked, True))
        return not self.walk.done or self.walk.last()

    def all(self):
        while self.step():
            pass
        return self.walk


def walked(source, tmp_path, monkeypatch, *, every=3, name="sliced_program"):
    made = module(name, source, tmp_path, monkeypatch)
    return made, Sliced(made, every=every).all()


def test_every_kind_of_place_has_its_length_under_its_name(tmp_path, monkeypatch):
    made = module("many", MANY, tmp_path, monkeypatch)
    for i in range(7):
        made.round(i)
    found = lengths(Sliced(made).all())
    wanted = {
        "many.SERVICE.by_id": 7,
        "many.SERVICE.seen": 7,
        "many.SERVICE.turns": 7,
        "many.Service.shared": 7,
        "*many.Chat.events": 7,
        "many.TOKENS": 7,
        "many.BY_KEY.data": 7,
        "many.make_counter.<locals>.count{rows}": 7,
        "many.cached": 7,
        "many.worker()backlog": 7,
    }
    assert {key: found.get(key) for key in wanted} == wanted


def test_no_code_of_the_program_runs(tmp_path, monkeypatch):
    more = """
class Proxy:
    __slots__ = ("__weakref__", "rows")
    def __init__(self): self.rows = [1, 2, 3]
    __dict__ = property(lambda self: Lies.ran.append("dict"))
class Eager:
    def __init__(self): self.rows, self.shown = [1, 2], [1]
    def __getattr__(self, name):
        Lies.ran.append("getattr " + name); raise AttributeError
    shown = property(lambda self: Lies.ran.append("property"), lambda self, value: None)
class Shown:
    def __get__(self, obj, kind=None):
        Lies.ran.append("descriptor"); return []
    __set__ = None
class Odd:
    later = Shown()
    def __init__(self): self.rows = [1]
    def late(self): self.later = 1
P, E, O = Proxy(), Eager(), Odd()
Lies.ran.clear()
"""
    made, walk = walked(HOSTILE + more, tmp_path, monkeypatch)
    assert list(vars(made)["Lies"].__dict__["ran"]) == []
    found = lengths(walk)
    # no code speaks of `kept`, and 3.13 does not show the dict that names it
    kept = "ONE→list" if READS_RUNNING else "ONE.kept"
    names = ("TWO", "THREE", kept, "P.rows", "E.rows", "O.rows")
    assert [found.get(f"sliced_program.{name}") for name in names] == [3, 1, 2, 3, 2, 1]
    places = Places(Outlines(), {})
    for slot in walk.slots:
        places.held(slot)
    assert list(vars(made)["Lies"].__dict__["ran"]) == []


@pytest.mark.usefixtures("untraced")
def test_a_module_that_is_loaded_on_demand_stays_unloaded(tmp_path, monkeypatch):
    (tmp_path / "sleeping_thing.py").write_text("raise RuntimeError('woken')\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("sleeping_thing", tmp_path / "sleeping_thing.py")
    loader = importlib.util.LazyLoader(spec.loader)
    spec.loader = loader
    sleeping = importlib.util.module_from_spec(spec)
    loader.exec_module(sleeping)
    monkeypatch.setitem(sys.modules, "sleeping_thing", sleeping)
    asked = []
    speaking = types.ModuleType("speaking_thing")
    speaking.__getattr__ = asked.append
    speaking.ROWS = [1, 2]
    monkeypatch.setitem(sys.modules, "speaking_thing", speaking)
    sliced = Sliced()
    for begin in roots(len(sys.modules) - 2):
        begin(sliced.walk)
    found = lengths(sliced.all())
    assert found["speaking_thing.ROWS"] == 2
    assert asked == []
    assert type(sleeping).__name__ == "_LazyModule"


def test_no_attribute_dict_is_made_by_looking(tmp_path, monkeypatch):
    source = (
        "class A:\n    def __init__(self):\n        self.rows, self.n = [1, 2], 3\n"
        "class F:\n    def cap(self):\n        self.rows = 1\n"
        "ALL = [A() for _ in range(40)]\nONE = A()\nONE.extra = [1, 2, 3]\n"
        "DICT = A()\nDICT.__dict__['late'] = [1, 2, 3, 4]\n"
    )
    made, walk = walked(source, tmp_path, monkeypatch)
    found = lengths(walk)
    assert found["sliced_program.ONE.rows"] == 2
    assert found["*sliced_program.A.rows"] == 80
    assert found["sliced_program.ONE→list"] == 3
    assert found["sliced_program.DICT.late"] == 4
    places = Places(Outlines(), {})
    for slot in walk.slots:
        places.held(slot)
    held = [one for obj in (made.ONE, *made.ALL) for one in gc.get_referents(obj)]
    assert not [one for one in held if type(one) is dict]


class Thing:
    pass


def test_what_is_dropped_between_slices_dies_at_once(tmp_path, monkeypatch):
    source = (
        "class Box:\n    def __init__(self, rows):\n        self.rows = rows\n"
        "ROWS = []\nBOXES = {}\nNESTED = [[]]\nCLASSES = {}\n"
    )
    made = module("dropping", source, tmp_path, monkeypatch)
    made.ROWS += [Thing() for _ in range(300)]
    made.BOXES.update({i: made.Box([Thing()]) for i in range(300)})
    made.NESTED[0] += [[Thing()] for _ in range(300)]
    sliced = Sliced(made, every=1)
    dropped = 0
    while sliced.step():
        for held in (made.ROWS, made.NESTED[0]):
            if held:
                last = held.pop()
                ref = weakref.ref(last if type(last) is Thing else last[0])
                del last
                assert ref() is None
                dropped += 1
        if made.BOXES:
            ref = weakref.ref(made.BOXES.popitem()[1])
            assert ref() is None
    assert dropped > 20


def test_what_waits_to_be_looked_into_can_die(tmp_path, monkeypatch):
    source = (
        "class Box:\n    def __init__(self, rows):\n        self.rows = rows\n"
        "BOXES = {n: Box([[n, [k]] for k in range(60)]) for n in range(60)}\n"
    )
    source += "".join(f"B{n} = Box([{n}])\n" for n in range(60))
    made = module("waiting", source, tmp_path, monkeypatch)
    sliced = Sliced(made, every=1)
    for n in reversed(range(60)):
        refs = [weakref.ref(vars(made)[f"B{n}"]), weakref.ref(made.BOXES[n])]
        del vars(made)[f"B{n}"], made.BOXES[n]
        assert [ref() for ref in refs] == [None, None]
        sliced.step()
        sliced.step()


def test_a_first_walk_gives_the_collector_nothing_to_do(tmp_path, monkeypatch):
    source = "".join(f"SHELF{n} = [[k, [k]] for k in range(9)]\n" for n in range(200))
    source += "".join(
        f"class C{n}:\n    ROWS = [[]]\n    def f(self, a=[]): pass\n" for n in range(90)
    )
    made = module("shelved", source, tmp_path, monkeypatch)
    sliced = Sliced(made, every=1)
    waiting, more, steps = 0, 0, 0
    gc.disable()
    try:
        before = len(gc.get_objects())
        while sliced.step():
            waiting = max(waiting, len(sliced.walk._stack) + len(sliced.walk._deep))
            steps += 1
            if steps % 100 == 0:
                more = max(more, len(gc.get_objects()) - before)
    finally:
        gc.enable()
    assert sliced.walk.objects > 3_000
    assert len(sliced.walk.slots) > 800
    assert waiting >= 200
    assert more < 400  # half as many as there are slots
    assert not [users for users in sliced.walk._entries._users if users]


def test_what_a_module_has_under_its_own_name_is_found_by_it(tmp_path, monkeypatch):
    source = (
        "import functools\n"
        "class Outer:\n"
        "    class Inner:\n"
        "        @staticmethod\n        def static(): pass\n"
        "    @property\n    def shown(self): pass\n"
        "def kept(): pass\n"
        "@functools.cache\ndef hidden(): pass\n"
        "def made():\n    def inner(): pass\n    return inner\n"
    )
    made = module("named_things", source, tmp_path, monkeypatch)
    for label, found in (
        ("named_things.Outer.Inner", made.Outer.Inner),
        ("named_things.Outer.Inner.static", made.Outer.Inner.static),
        ("named_things.Outer.shown", vars(made.Outer)["shown"].fget),
        ("named_things.kept", made.kept),
        ("named_things.hidden", made.hidden),
        ("KeyError", KeyError),
    ):
        assert by_name(label) is found
    for label in ("named_things.made.<locals>.inner", "named_things.kept.x", "nobody.knows", "?"):
        assert by_name(label) is MISSING
    monkeypatch.setitem(sys.modules, "no_module", object())
    assert by_name("no_module.Thing") is MISSING
    walk = Sliced(made).all()
    assert "named_things.hidden" in walk._anchors  # the module has its cache under this name
    assert "named_things.kept" not in walk._anchors


def test_a_walk_that_was_compared_needs_no_collection(tmp_path, monkeypatch):
    _, walk = walked("ROWS = [[1]]\n", tmp_path, monkeypatch)
    ref = weakref.ref(walk)
    walk.forget()
    gc.disable()
    try:
        del walk
        assert ref() is None
    finally:
        gc.enable()


def test_a_root_is_let_go_when_its_slice_ends(monkeypatch):
    live, kept = Live(), [Thing()]
    ref = weakref.ref(kept[0])
    monkeypatch.setattr(watch, "roots", lambda *_: iter([lambda walk: walk.root(kept[0], "app")]))
    asked = iter([False])
    live._advance(lambda: next(asked, True), 0.0)
    assert live._walk.objects == 1
    kept.clear()
    assert ref() is None


def test_a_dive_that_fails_ends_like_any_other(tmp_path, monkeypatch):
    made = module("diving", "ROWS = [[]]\n", tmp_path, monkeypatch)
    walk = Sliced(made).walk

    def changed(*_):
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(walk, "_numbered", changed)
    with pytest.raises(RuntimeError):
        walk._dive(made.ROWS, walk.slots.root("diving"))
    assert walk._diving is None


def test_a_variable_that_a_coroutine_drops_dies_at_once():
    async def work(gate):
        big = Thing()
        refs.append(weakref.ref(big))
        await gate.wait()
        del big
        done.append(refs[0]() is None)

    async def main():
        gate = asyncio.Event()
        task = asyncio.create_task(work(gate))
        await asyncio.sleep(0)
        sliced = Sliced(every=1)
        for begin in roots(len(sys.modules)):
            begin(sliced.walk)
        steps = sum(1 for _ in islice(iter(sliced.step, False), 25))
        gate.set()
        await task
        return steps

    refs, done = [], []
    assert asyncio.run(main()) > 3
    assert done == [True]


@pytest.mark.usefixtures("untraced")
def test_the_variables_of_what_waits_are_named(tmp_path, monkeypatch):
    async def main():
        async def work(first, *, second):
            rows, cell = [1, 2, 3], {1: 1}

            def inner():
                return cell

            await asyncio.Event().wait()
            return rows, inner, first, second

        task = asyncio.create_task(work([1], second=[1, 2]), name="waiting")
        await asyncio.sleep(0)
        sliced = Sliced()
        for begin in roots(len(sys.modules)):
            begin(sliced.walk)
        found = lengths(sliced.all())
        label = suspended_label(task.get_coro())
        task.cancel()
        return {k[len(label) :]: v for k, v in found.items() if k.startswith(label + "()") and v}

    found = asyncio.run(main())
    assert {k: found.get(k) for k in ("()first", "()second", "()rows")} == {
        "()first": 1,
        "()second": 2,
        "()rows": 3,
    }


def test_what_runs_shows_its_variables_on_new_pythons_only():
    def running():
        yield suspended_locals(me[0])

    me = [running()]
    assert next(me[0]) == []
    assert suspended_locals(len) == []
    assert suspended_label(3) == "int"

    async def numbers():
        rows = [1]
        yield rows

    made = numbers()
    asyncio.run(anext(made))
    named = dict(suspended_locals(made))
    assert named["rows"] == [1]


@pytest.mark.skipif(not SEES_RUNNING, reason="frames that run cannot be read in this Python")
@pytest.mark.usefixtures("untraced")
def test_the_variables_of_a_running_thread_are_named():
    def serve(ready, end):
        backlog = [1, 2, 3]
        ready.set()
        end.wait(60)
        return backlog

    ready, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=serve, args=(ready, end))
    thread.start()
    ready.wait(60)
    sliced = Sliced()
    for begin in roots(len(sys.modules)):
        begin(sliced.walk)
    walk = sliced.all()
    found = {k.rpartition("()")[2]: v for k, v in lengths(walk).items() if ".serve()" in k}
    slot = next(s for s in walk.slots if s.key.endswith(".serve()backlog"))
    held = [one.value for one in Places(Outlines(), {}).held(slot)]
    end.set()
    thread.join()
    assert found["backlog"] == 3
    assert held == [[1, 2, 3]]


def test_a_class_that_is_dropped_dies():
    outlines = Outlines()

    class Short:
        __slots__ = ("rows",)

        def __init__(self):
            self.rows = [1]

    plan = outlines.of(Short)
    assert plan.attributes(Short()) == [(f"{plan.label}.rows", [1])]
    key, ref = id(Short), weakref.ref(Short)
    del Short
    gc.collect()
    assert ref() is None
    assert key not in outlines.by_id


def test_a_long_chain_is_counted_to_its_end(tmp_path, monkeypatch):
    source = "class N:\n    def __init__(self, n): self.n = n\nH = None\n"
    source += "for _ in range(3000): H = N(H)\n"
    _, walk = walked(source, tmp_path, monkeypatch, every=20)
    assert lengths(walk, "count")["*sliced_program.N.n"] == 2998
    assert walk.cut == 0


def test_links_that_cannot_be_found_again_are_counted_to_the_end(tmp_path, monkeypatch):
    source = "class S:\n    __slots__ = ('unset', 'text', 'before')\n"
    source += "    def __init__(self, n, before): self.text, self.before = str(n), before\n"
    source += "class E: last = None\nE = E()\n"
    source += "for n in range(9000): E.last = S(n, E.last)\n"
    made, walk = walked(source, tmp_path, monkeypatch)
    assert lengths(walk, "count")["*sliced_program.S.before"] >= 8990
    assert walk.cut == 0
    assert long_chains.count_links(made.E.last, Outlines(), Seen(), 500) == (500, False)
    assert long_chains.count_links(object(), Outlines(), Seen(), 500) == (0, False)
    monkeypatch.setattr(walk_module, "MOST_LINKS", 500)
    _, walk = walked(source, tmp_path, monkeypatch)
    assert lengths(walk, "count")["*sliced_program.S.before"] < 5000
    assert walk.cut > 0  # a dive takes only so long


def test_links_that_c_code_holds_are_counted_to_the_end(tmp_path, monkeypatch):
    source = "import functools\nclass E:\n    call = None\nE = E()\n"
    source += "def f(n, call): pass\n"
    source += "for n in range(3000): E.call = functools.partial(f, {'n': n}, E.call)\n"
    made, walk = walked(source, tmp_path, monkeypatch)
    found = lengths(walk, "count")
    assert max(found.values()) >= 2990
    assert walk.cut > 0  # what they hold was not inspected
    assert long_chains.count_behind(made.E.call, Outlines(), Seen(), 2000) == (500, False)
    assert long_chains.count_behind([made.E.call], Outlines(), Seen(), 2000) == (0, False)


def test_what_lies_too_deep_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(entries, "MAX_STEPS", 80)
    monkeypatch.setattr(walk_module, "DIVE", 50)
    source = "H = []\nfor _ in range(300): H = [H, 'x']\n"
    source += "class S:\n    __slots__ = ('n',)\n    def __init__(self, n): self.n = n\n"
    source += "C = None\nfor _ in range(400): C = S(C)\n"
    _, walk = walked(source, tmp_path, monkeypatch)
    assert walk.cut > 0
    spots = blind_spots(walk.slots, walk, short=False, inherited=False, census=True)
    assert any("too deep" in spot for spot in spots)


def test_more_waiting_than_there_is_room_for_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(walk_module, "MAX_WAITING", 10)
    source = "class A: pass\nALL = {i: [[j] for j in range(40)] for i in range(60)}\n"
    _, walk = walked(source, tmp_path, monkeypatch, every=50)
    assert walk.cut > 0


def test_large_containers_are_sampled_from_both_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(look, "MAX_EXPANDED", ((10**9, 100, 20),))
    source = "import collections, functools\n"
    for name, made in (
        ("D", "{i: [i] for i in range(500)}"),
        ("L", "[[i] for i in range(500)]"),
        ("T", "tuple([i] for i in range(500))"),
        ("S", "{(i, (i,)) for i in range(500)}"),
        ("F", "frozenset((i, (i,)) for i in range(500))"),
        ("Q", "collections.deque([i] for i in range(500))"),
        ("ROWS", "[[[j] for j in range(50)] for i in range(500)]"),
    ):
        source += f"{name} = {made}\n"
    source += "@functools.lru_cache(maxsize=None)\ndef C(i): return [i]\n"
    source += "for i in range(500): C(i)\n"
    _, walk = walked(source, tmp_path, monkeypatch)
    counts = lengths(walk, "count")
    assert {k: counts[f"sliced_program.{k}[*]"] for k in "DLTSFQ"} == dict.fromkeys("DLTSFQ", 40)
    assert counts["sliced_program.ROWS[*][*]"] == 40 * 50
    assert counts.get("sliced_program.C[*]", 0) == 0
    assert lengths(walk)["sliced_program.C"] == 500
    spots = blind_spots(walk.slots, walk, short=False, inherited=False, census=True)
    assert sum("500 items: only some of them" in spot for spot in spots) == 3
    assert any("5 more large containers" in spot for spot in spots)


def test_the_largest_of_many_sampled_containers_are_remembered(monkeypatch):
    monkeypatch.setattr(look, "MAX_SAMPLED", 2)
    walk = Sliced().walk
    root = walk.slots.root("app")
    for size in (5, 9, 7):
        walk._note(walk.slots.child(root, "app", f".a{size}"), size)
    assert sorted(walk.sampled.values()) == [7, 9]


def test_what_moves_between_slices_is_passed_over(tmp_path, monkeypatch):
    made = module("moving", "ROWS = {i: [[i], [i]] for i in range(200)}\n", tmp_path, monkeypatch)
    sliced = Sliced(made, every=1)
    while sliced.step():
        made.ROWS = {i: [[[i] for _ in range(40)]] for i in range(200)}
    assert sliced.walk.done


def test_what_changes_while_it_is_looked_at_is_passed_over(tmp_path, monkeypatch):
    made = module("busy_thing", "A, B = [[1]], {1: [1]}\n", tmp_path, monkeypatch)
    sliced = Sliced(made)
    walk = sliced.walk

    def changing(*_, **__):
        raise RuntimeError("dictionary changed size during iteration")

    walk._expand = dict.fromkeys(walk._expand, changing)
    walk.push(made.B, walk.slots.root("other"))
    sliced.all()
    assert walk.cut > 0
    places = Places(Outlines(), {})
    monkeypatch.setattr(places, "values", changing)
    ticks = Ticks(Tracks(walk.slots), places, Outlines())
    assert ticks._read(walk.slots[0]) is None


def test_names_that_lead_nowhere_any_more_are_empty(tmp_path, monkeypatch):
    made = module("many", MANY, tmp_path, monkeypatch)
    made.round(1)
    sliced = Sliced(made)
    walk = sliced.all()
    places = Places(sliced.outlines, sliced.anchors)
    for name in [name for name in vars(made) if not name.startswith("__")]:
        delattr(made, name)
    gc.collect()
    for slot in walk.slots:
        if slot.parent is not None and slot.key.startswith("many."):
            assert places.held(slot) == [] or slot.label.startswith(".__")
    assert places.take(3, "{x}") == places.take(3, "(x=)") == places.take(3, "()x") == []


def test_only_so_many_roots_and_objects_of_one_are_remembered(monkeypatch):
    monkeypatch.setattr(look, "MAX_ANCHORS", 2)
    monkeypatch.setattr(look, "MAX_ROOTS", 2)
    walk, things = Sliced().walk, [Thing() for _ in range(5)]
    for thing in things:
        walk._anchor(thing, "one")
        walk._anchor(thing, f"label {id(thing)}")
    assert len(walk._anchors) == 2
    assert len(walk._anchors["one"]) == 2


def test_a_chain_with_new_heads_is_walked_to_its_end(tmp_path, monkeypatch):
    source = """
class Link:
    def __init__(self, before):
        self.before = before
class Journal:
    def __init__(self):
        self.head = None
    def add(self):
        self.head = Link(self.head)
journal = Journal()
for _ in range(300):
    journal.add()
"""
    made = module("chained", source, tmp_path, monkeypatch)
    sliced = Sliced(made, every=8)
    while sliced.step():
        made.journal.add()
    walk = sliced.walk
    links = sum(walk.count[s.index] for s in walk.slots if s.label in (".head", ".before"))
    assert links >= 300
