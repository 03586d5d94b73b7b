from __future__ import annotations

import sys
import weakref

import pytest

from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.roots import TASKS, roots
from floodline.leaks._live.sliced_walk import SlicedWalk
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
    assert list(roots(len(sys.modules)))[: 0 if SEES_RUNNING else None] == []


class Restless:
    def __iter__(self):
        raise RuntimeError("Set changed size during iteration")
