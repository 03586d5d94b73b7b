from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from array import array
from pathlib import Path

import pytest

from floodline.leaks import Live, _forks
from floodline.leaks._forks import FORK
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live import inherited_pages as fork_module
from floodline.leaks._live import watch as watch_module
from floodline.leaks._live.inherited_pages import Inherited
from floodline.leaks._live.walk.sliced_walk import SlicedWalk
from floodline.leaks._objects.outline import Outlines

PREFORKED = """
import gc, json, os, re, sys, types
from floodline.leaks import Live

class Row:
    def __init__(self, n):
        self.n, self.tags = n, [n]

HEAP = {k: [Row(n) for n in range(2_000)] for k in range(60)}
gc.collect()
gc.disable()
parent = Live()

def dirty():
    text = open("/proc/self/smaps_rollup").read()
    return int(re.search(r"Private_Dirty:\\s+(\\d+)", text)[1]) << 10

def watch(live, now):
    while live.answer().walks < 1:
        now[0] += max(live.step(), 0.001)

def child(inherited):
    fresh = types.ModuleType("fresh_worker")
    fresh.SESSIONS = {n: Row(n) for n in range(50)}
    fresh.OLD = HEAP
    sys.modules["fresh_worker"] = fresh
    now = [0.0]
    live = Live(clock=lambda: now[0], inherited=inherited)
    before = dirty()
    watch(live, now)
    answer = live.answer()
    names = [slot.key for slot in live._slots]
    return {
        "dirty": dirty() - before, "objects": answer.objects, "spots": answer.blind_spots,
        "heap": "__main__.HEAP" in names, "fresh": "fresh_worker.SESSIONS" in names,
        "census": live._sampler.counting,
    }

out = {}
for inherited in (False, True):
    read, write = os.pipe()
    if not os.fork():
        os.write(write, json.dumps(child(inherited)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        out[str(inherited)] = json.loads(pipe.read())
    os.wait()
print(json.dumps(out))
"""


TOLD = Path("/proc/self/smaps_rollup"), Path("/proc/self/pagemap")


@pytest.mark.skipif(
    not all(os.access(file, os.R_OK) for file in TOLD), reason="they tell of shared pages"
)
def test_a_worker_leaves_alone_what_it_shares_with_its_parent(tmp_path):
    file = tmp_path / "preforked.py"
    file.write_text(PREFORKED, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, timeout=400, check=False
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    alone, asked = found["False"], found["True"]
    assert alone["fresh"]
    assert not alone["heap"]
    assert asked["heap"]
    assert alone["objects"] < 5_000 < asked["objects"]
    assert not alone["census"]
    assert any("inherited in a fork" in spot for spot in alone["spots"])
    assert not any("inherited in a fork" in spot for spot in asked["spots"])
    assert alone["dirty"] < asked["dirty"] / 2


def test_a_watch_begins_anew_in_a_child(monkeypatch):
    now = [0.0]
    live = Live(clock=lambda: now[0])
    for _ in range(5):
        now[0] += live.step()
    before = live._slots
    monkeypatch.setattr(FORK, "generation", FORK.generation + 1)
    monkeypatch.setattr(FORK, "modules", len(sys.modules))
    live.step()
    assert live._slots is not before
    assert live.answer().objects == 0


def test_objects_on_pages_of_our_own_are_looked_at(monkeypatch):
    class Shared:
        def __contains__(self, address):
            return address in hidden

    holder = types.ModuleType("half_shared")
    holder.OLD, holder.NEW = [[1]], [[1], [2]]
    hidden = {id(holder.OLD)}
    walk = SlicedWalk(Slots(), Outlines(), {}, inherited=Shared())
    walk.root(holder, "half_shared")
    monkeypatch.setitem(sys.modules, "half_shared", holder)
    while not walk.done:
        walk.advance(lambda: False)
    found = {s.key: walk.row(s.index)[1] for s in walk.slots}
    assert (found["half_shared.NEW"], found["half_shared.OLD"]) == (2, 0)


IN, OURS = 1 << 63, (1 << 63) | (1 << 56)


def test_pages_of_this_process_alone_are_no_inheritance(monkeypatch):
    page = os.sysconf("SC_PAGE_SIZE")
    ranges = [(4 * page, 8 * page), (9 * page, 10 * page)]
    monkeypatch.setattr(fork_module, "_mapped", lambda: ranges)
    monkeypatch.setattr(fork_module, "_pages", lambda *_: [(4, IN), (5, OURS), (6, IN)])
    inherited = Inherited()
    told = [number * page + 16 in inherited for number in range(11)]
    assert [number for number, inside in enumerate(told) if inside] == [4, 6, 7, 9]
    assert not inherited.alone


def test_a_daemon_shares_nothing_with_its_parent_any_more(monkeypatch):
    made = types.ModuleType("daemon_thing")
    made.ROWS = [[1], [2]]
    monkeypatch.setitem(sys.modules, "daemon_thing", made)
    every = [lambda walk: walk.root(made, "daemon_thing")]
    monkeypatch.setattr(watch_module, "roots", lambda skipped, known: iter(every[skipped:]))
    monkeypatch.setattr(FORK, "generation", FORK.generation + 1)
    monkeypatch.setattr(FORK, "modules", 1)
    shared = [[(1, IN)], [(1, OURS)]]
    monkeypatch.setattr(fork_module, "_pages", lambda *_: shared[0])
    now = [0.0]
    live = Live(clock=lambda: now[0])
    while not live.answer().walks:
        now[0] += max(live.step(), 0.001)
    assert any("inherited in a fork" in spot for spot in live.answer().blind_spots)
    assert live._slots.get("daemon_thing.ROWS") is None
    del shared[0]
    while live.answer().walks < 2:
        now[0] += max(live.step(), 0.001)
    assert live._slots.get("daemon_thing.ROWS") is not None
    assert not any("inherited in a fork" in spot for spot in live.answer().blind_spots)


def test_the_system_tells_which_pages_are_ours(tmp_path):
    file = tmp_path / "pagemap"
    words = array("Q", [0, OURS, IN, OURS | 5, 0, OURS])
    file.write_bytes(words.tobytes() + b"odd")
    with file.open("rb", buffering=0) as pages:
        found = [page for page, _ in fork_module._pages_between(pages, 1, 5)]
        assert found == [1, 2, 3]
        assert list(fork_module._pages_between(pages, 4, 900)) == [(5, OURS)]


def test_what_the_system_does_not_tell_counts_as_inherited(monkeypatch):
    monkeypatch.setattr(fork_module, "_pages_between", _refuse)
    assert id(Inherited.__doc__) in Inherited()
    assert 8 not in Inherited()
    monkeypatch.setattr(fork_module.Path, "read_text", _refuse)
    assert 8 in Inherited()
    assert not Inherited().alone


def test_a_fork_is_noticed():
    before = FORK.generation, FORK.modules
    _forks._before()
    _forks._in_child()
    assert (FORK.generation, FORK.modules) == (before[0] + 1, len(sys.modules))
    FORK.generation, FORK.modules = before


def _refuse(*_, **__):
    raise OSError
