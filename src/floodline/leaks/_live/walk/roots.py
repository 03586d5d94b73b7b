"""Where a live walk begins: modules by name, tasks, and on 3.13 the variables of running frames."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from weakref import WeakSet, ref

from floodline.leaks._heap.roots import count_at_exit
from floodline.leaks._live.walk.sliced_walk import SlicedWalk
from floodline.leaks._objects.anatomy import derives, names_of_module
from floodline.leaks._objects.frames import SEES_RUNNING, running_frames
from floodline.leaks._objects.territory import rank_of_module

TASKS = "asyncio.<tasks>"
_REGISTRIES = ("_all_tasks", "_scheduled_tasks", "_eager_tasks")
MOST_KNOWN = 200
Begin = Callable[[SlicedWalk], None]
Refer = Callable[[], Any]  # a weak reference


class KnownTasks:
    """Weak references to tasks that earlier walks met, oldest first.

    What a task of a moment leads to is lost with it. If one that stays leads there too, its name
    is the better one.
    """

    def __init__(self) -> None:
        self._known: list[Refer] = []

    def first(self, tasks: list[Refer]) -> list[Refer]:
        """Return those that are still there, then all tasks; remember some of the new ones."""
        self._known = [one for one in self._known if one() is not None]
        found = [*self._known, *tasks]
        ids = set(map(id, self._known))  # a task has one such reference, and may define equality
        more = (_own(one()) for one in tasks[:MOST_KNOWN])
        new = [one for one in more if one is not None and id(one) not in ids]
        self._known += new[: MOST_KNOWN - len(self._known)]
        return found


def _own(task: Any) -> Refer | None:
    return None if task is None else ref(task)


def roots(skipped: int = 0, known: KnownTasks | None = None) -> Iterator[Begin]:
    """Return where a walk of the program begins, without the `skipped` oldest modules.

    Its own modules come first, so that their names win, then its tasks and running functions.
    """
    for name in _names(skipped, (0,)):
        yield _module(name)
    tasks = _tasks()
    for one in known.first(tasks) if known else tasks:
        yield _task(one)
    if SEES_RUNNING:
        yield _running
    yield count_at_exit


def library_roots(skipped: int = 0) -> Iterator[Begin]:
    """Return where the rest of a walk begins: installed packages, then the standard library."""
    for name in _names(skipped, (1, 2)):
        yield _module(name)


def _names(skipped: int, ranks: tuple[int, ...]) -> list[str]:
    # newest first: what a fork inherited is not even touched
    newest = list(islice(reversed(sys.modules), max(0, len(sys.modules) - skipped)))
    names = [name for name in reversed(newest) if type(name) is str and not _is_ours(name)]
    ranked = [(rank_of_module(name), name) for name in names]
    return [name for wanted in ranks for rank, name in ranked if rank == wanted]


def _is_ours(name: str) -> bool:
    """Return True for a module of floodline: the probe uses it, and its holders have figures."""
    return name == "floodline" or name.startswith("floodline.")


def _module(name: str) -> Begin:
    def begin(walk: SlicedWalk) -> None:
        module = dict.get(sys.modules, name)
        if derives(type(module), types.ModuleType):
            walk.root(module, name)

    return begin


def _tasks() -> list[Refer]:
    """Return the weak references through which asyncio knows its tasks."""
    module = dict.get(sys.modules, "asyncio.tasks")
    if module is None:
        return []
    names = names_of_module(module)
    found = (dict.get(names, name) for name in _REGISTRIES)
    sets: list[Any] = [one for one in found if type(one) is WeakSet]
    return [each for one in sets for each in _copied(one.data)]


def _copied(refs: Any) -> list[Refer]:
    try:
        return list(refs)
    except RuntimeError:  # another thread changed it meanwhile
        return []


def _task(refer: Refer) -> Begin:
    def begin(walk: SlicedWalk) -> None:
        task = refer()
        if task is None:
            return
        for held in gc.get_referents(task):
            if type(held) is types.CoroutineType:  # its variables, before those of the event loop
                walk.root(held, TASKS)
        walk.root(task, TASKS)

    return begin


def _running(walk: SlicedWalk) -> None:
    for frame in running_frames():
        walk.frame(frame)
