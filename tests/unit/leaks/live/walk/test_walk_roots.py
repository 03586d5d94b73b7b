from __future__ import annotations

import asyncio
import atexit
import sys
import weakref

import pytest

from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.walk import roots as roots_module
from floodline.leaks._live.walk.roots import MOST_KNOWN, TASKS, KnownTasks, library_roots, roots
from floodline.leaks._live.walk.sliced_walk import SlicedWalk
from floodline.leaks._objects.frames import SEES_RUNNING
from floodline.leaks._objects.outline import Outlines


@pytest.mark.usefixtures("untraced")
def test_threads_tasks_and_odd_registries_are_no_trouble(monkeypatch):
    tasks = sys.modules["asyncio.tasks"]
    restless = weakref.WeakSet()
    restless.data = Restless()
    for name in ("_all_tasks", "_scheduled_tasks", "_eager_tasks"):
        monkeypatch.setattr(tasks, name, restless, raising=False)
    monkeypatch.setitem(sys.modules, "odd_thing", object())
    walk = SlicedWalk(Slots(), Outlines(), {})
    for begin in roots(len(sys.modules) - 1):
        begin(walk)
    walk.advance(lambda: False)
    assert walk.done
    assert TASKS not in [slot.key for slot in walk.slots]
    monkeypatch.delitem(sys.modules, "asyncio.tasks")
    assert len(list(roots(len(sys.modules)))) == 1 + SEES_RUNNING


class Restless:
    def __iter__(self):
        raise RuntimeError("Set changed size during iteration")


def test_our_own_modules_are_no_roots(monkeypatch):
    begun = []
    monkeypatch.setattr(roots_module, "_module", lambda name: begun.append(name) or (lambda _: 0))
    list(roots())
    list(library_roots())
    assert "logging" in begun
    assert not [name for name in begun if name.split(".")[0] == "floodline"]


def test_functions_at_exit_are_counted():
    walk = SlicedWalk(Slots(), Outlines(), {})
    list(roots(len(sys.modules)))[-1](walk)
    slot = walk.slots.get("atexit.register")
    assert walk.row(slot.index)[1] >= atexit._ncallbacks()


class Task:
    __eq__ = None  # must not be asked
    __hash__ = object.__hash__


def test_tasks_that_stay_come_before_those_of_a_moment():
    known, (old, brief, new) = KnownTasks(), (Task() for _ in range(3))
    first = [weakref.ref(old), weakref.ref(brief)]
    assert known.first(first) == first
    del brief
    assert [one() for one in known.first([weakref.ref(new), weakref.ref(old)])] == [old, new, old]
    assert [one() for one in known.first([])] == [old, new]
    many = [Task() for _ in range(MOST_KNOWN + 1)]
    known.first(list(map(weakref.ref, many)))
    assert len(known.first([])) == MOST_KNOWN


async def waits(rows):
    await asyncio.sleep(60)


async def walked():
    rows = [[1], [2]]
    asyncio.get_running_loop().call_later(60, rows.append, 3)
    task = asyncio.create_task(waits(rows))
    await asyncio.sleep(0)
    walk = SlicedWalk(Slots(), Outlines(), {})
    roots_module._task(weakref.ref(task))(walk)
    walk.advance(lambda: False)
    task.cancel()
    return walk


def test_the_variables_of_a_task_are_named_before_what_its_event_loop_holds():
    walk = asyncio.run(walked())
    found = walk.slots.get(f"{__name__}.waits()rows")
    assert walk.row(found.index)[1] == 2
