from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import types

import pytest

from floodline.leaks._heap import roots
from floodline.leaks._heap.roots import survey
from floodline.leaks._heap.slots import Slots
from floodline.leaks._heap.walk import MAX_NAMES
from soak_programs import HOSTILE, MANY, lengths, module, narrow


def walked(source, tmp_path, monkeypatch, name="walked_program"):
    made = module(name, source, tmp_path, monkeypatch)
    narrow(monkeypatch, made)
    return made, survey(Slots())


def test_every_kind_of_place_has_its_length_under_its_name(tmp_path, monkeypatch):
    made = module("many", MANY, tmp_path, monkeypatch)
    for i in range(7):
        made.round(i)
    narrow(monkeypatch, made)
    found = lengths(survey(Slots()))
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


def test_the_bytes_of_texts_are_summed(tmp_path, monkeypatch):
    source = (
        "A = b'123'\nB = ['1234', 'x']\nC = bytearray(9)\nclass S(str):\n    pass\nD = S('ab')\n"
    )
    _, walk = walked(source, tmp_path, monkeypatch)
    found = lengths(walk, "text")
    assert [found[f"walked_program.{k}"] for k in ("A", "B[*]", "C", "D")] == [3, 5, 9, 2]


def test_no_code_of_the_program_runs(tmp_path, monkeypatch):
    made, walk = walked(HOSTILE, tmp_path, monkeypatch)
    ran = vars(made)["Lies"].__dict__["ran"]
    assert list(ran) == []
    found = lengths(walk)
    assert found["walked_program.TWO"] == 3
    assert found["walked_program.THREE"] == 1
    assert found["walked_program.ONE.kept"] == 2


@pytest.mark.usefixtures("untraced")
def test_a_lazy_module_stays_asleep(tmp_path, monkeypatch):
    class Lazy(types.ModuleType):
        woken = False

        def __getattribute__(self, name):
            Lazy.woken = True
            return super().__getattribute__(name)

    lazy = Lazy("lazy_thing")
    types.ModuleType.__getattribute__(lazy, "__dict__")["ROWS"] = [[1], [2]]
    monkeypatch.setattr(roots, "_orphans", lambda walk: None)
    monkeypatch.setitem(sys.modules, "lazy_thing", lazy)
    Lazy.woken = False
    assert lengths(survey(Slots()))["lazy_thing.ROWS"] == 2
    assert not Lazy.woken


def test_the_links_of_a_chain_are_one_slot(tmp_path, monkeypatch):
    source = (
        "class N:\n    def __init__(self, n): self.n = n\nH = None\nfor _ in range(30): H = N(H)\n"
    )
    _, walk = walked(source, tmp_path, monkeypatch)
    assert lengths(walk, "count")["*walked_program.N.n"] == 28


def test_nested_containers_and_many_attributes_make_no_slots_for_ever(tmp_path, monkeypatch):
    source = "X = []\nfor _ in range(50): X = [X]\nclass O: pass\nY = O()\n"
    source += f"for k in range({MAX_NAMES + 5}): setattr(Y, 'a%d' % k, [k])\nY.__dict__[5] = [1]\n"
    source += "class P: pass\nZ = P()\nZ.__dict__[7] = [1, 2]\n"
    _, walk = walked(source, tmp_path, monkeypatch)
    found = lengths(walk)
    assert found["walked_program.Y.__dict__"] == MAX_NAMES + 6
    assert found["walked_program.Z.?"] == 2
    assert sum(slot.key.startswith("walked_program.X") for slot in walk.slots) < 6
    assert sum(slot.key.startswith("walked_program.Y") for slot in walk.slots) < 6


def test_defaults_closures_and_attributes_of_functions_are_named(tmp_path, monkeypatch):
    source = "def f(a, b=[1, 2], *, c=[3]): pass\nf.seen = [1]\nf.rows = {}\n"
    source += "def outer():\n    x = 1\n    def inner(): return x\n    return inner\nI = outer()\n"
    source += (
        "def empty():\n    def h(): return later\n    if 0: later = 1\n    return h\nE = empty()\n"
    )
    _, walk = walked(source, tmp_path, monkeypatch)
    found = lengths(walk)
    base = "walked_program.f"
    assert [found[base + part] for part in ("(b=)", "(c=)", ".seen")] == [2, 1, 1]


def test_slots_that_were_never_assigned_are_passed_over(tmp_path, monkeypatch):
    source = "class S:\n    __slots__ = ('a', 'b')\nX = S()\nX.a = [1]\n"
    _, walk = walked(source, tmp_path, monkeypatch)
    found = lengths(walk)
    assert found["walked_program.X.a"] == 1
    assert "walked_program.X.b" not in found


@pytest.mark.usefixtures("untraced")
def test_what_only_c_code_and_other_threads_hold_is_found(tmp_path, monkeypatch):
    local = threading.local()
    made = types.ModuleType("with_local")
    made.LOCAL = local
    monkeypatch.setitem(sys.modules, "with_local", made)
    ready, over = threading.Event(), threading.Event()

    def work():
        local.rows = [[1], [2], [3]]
        ready.set()
        over.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(30)
    found = lengths(survey(Slots()))
    over.set()
    thread.join()
    assert found["with_local.LOCAL.rows"] == 3


@pytest.mark.usefixtures("untraced")
def test_running_frames_contexts_and_loops_are_walked():
    variable = contextvars.ContextVar("walked_variable")

    async def work():
        variable.set([1, 2, 3, 4])
        held = [[1], [2]]
        found = lengths(survey(Slots()))
        return held, found

    held, found = asyncio.run(work())
    here = "test_running_frames_contexts_and_loops_are_walked.<locals>.work()held"
    assert found[next(k for k in found if k.endswith(here))] == 2
    assert found["contextvars.walked_variable→value"] == 4
    assert held


def test_a_variable_of_a_module_names_its_values(tmp_path, monkeypatch):
    source = "import contextvars\nVAR = contextvars.ContextVar('v')\n"
    source += "CTX = contextvars.Context()\nCTX.run(VAR.set, [1, 2])\n"
    _, walk = walked(source, tmp_path, monkeypatch)
    assert lengths(walk)["walked_program.VAR→value"] == 2


def test_collections_go_on_after_a_walk_if_they_did_before(monkeypatch):
    narrow(monkeypatch)
    survey(Slots())
    assert gc.isenabled()
    gc.disable()
    try:
        survey(Slots())
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_module_of_the_engine_is_left_out():
    main = types.ModuleType("__main__")
    assert not roots._is_engine_main("__main__", main)
    main._floodline_engine = True
    assert roots._is_engine_main("__main__", main)


def test_frozen_objects_are_walked_too():
    code = (
        "import gc, types, sys\nm = types.ModuleType('frozen_app')\n"
        "m.D = {str(i): i for i in range(9)}\n"
        "sys.modules['frozen_app'] = m; gc.freeze()\n"
        "from floodline.leaks._heap.slots import Slots\n"
        "from floodline.leaks._heap.roots import survey\n"
        "s = Slots(); w = survey(s); print(w.length[s.get('frozen_app.D').index])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "9"


def test_what_c_types_hold_is_found(tmp_path, monkeypatch):
    source = "import functools, itertools\nP = functools.partial(print, [1, 2, 3])\n"
    source += "class E(Exception):\n    def __init__(self): self.rows = [1]\nX = E()\n"
    _, walk = walked(source, tmp_path, monkeypatch)
    found = lengths(walk)
    assert found["walked_program.P.args[*]"] == 3
    assert found["walked_program.X.rows"] == 1


def test_the_attributes_of_a_namespace_belong_to_its_place(tmp_path, monkeypatch):
    source = "import types\nclass Mine(types.SimpleNamespace): pass\n"
    source += "class App: pass\nAPP = App()\nAPP.ctx = types.SimpleNamespace(carts={1: 2})\n"
    source += "MINE = Mine(rows=[1, 2])\n"
    _, walk = walked(source, tmp_path, monkeypatch)
    found = lengths(walk)
    assert found["walked_program.APP.ctx.carts"] == 1
    assert found["walked_program.MINE.rows"] == 2
    slot = walk.slots.get("walked_program.APP.ctx.carts")
    assert slot.owner == "walked_program.App.ctx.carts"
    assert walk.slots.get("walked_program.MINE.rows").owner == "walked_program.Mine.rows"
