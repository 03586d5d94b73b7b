"""The queue of what a walk still has to inspect, without references to the objects."""

from __future__ import annotations

import gc
import weakref
from array import array
from collections.abc import Callable
from typing import Any

from floodline.leaks._heap.slot_lookup import Places, by_name
from floodline.leaks._heap.slots import NOWHERE, Slots
from floodline.leaks._objects.items import edges, part
from floodline.leaks._objects.outline import Outlines

MAX_STEPS = 512
NONE = -1
GONE: Any = type("Gone", (), {})()


class Entries:
    """For each waiting object, its place below its holder and how far it has been inspected.

    It is found again from its holder: by name, by position, or by identity among the referents; far
    from a root by a weak reference. The object itself is referenced only within a slice. An entry
    is a number in flat columns, because objects of our own would trigger the collector.
    """

    def __init__(self) -> None:
        self.obj: list[Any] = []
        self.slot = array("l")
        self.ref: dict[int, str | Callable[[], Any]] = {}  # a name that leads to it, or weak
        self.ident, self.step, self.depth = array("Q"), array("q"), array("l")
        self.cursor = array("q")
        self.edge = array("l")  # items inspected at either end; 0 is all
        self.parent = array("l")
        self._users = array("l")  # itself, waiting or being inspected, and the entries below it
        self._free: list[int] = []

    def add(self, obj: Any, slot: int, parent: int, step: int) -> int:
        """Return a new entry; `parent` is its holder's entry, or NONE."""
        depth = 0
        if parent != NONE:
            self._users[parent] += 1
            depth = self.depth[parent] + 1
        if not self._free:
            self._grow()
        entry = self._free.pop()
        self.obj[entry], self.slot[entry], self.ident[entry] = obj, slot, id(obj)
        self.step[entry], self.depth[entry], self.parent[entry] = step, depth, parent
        self.cursor[entry] = self.edge[entry] = 0
        self._users[entry] = 1
        return entry

    def _grow(self) -> None:
        self._free.append(len(self.obj))
        self.obj.append(None)
        for column in (self.ident, self.slot, self.step, self.depth, self.cursor, self.edge):
            column.append(0)
        for column in (self.parent, self._users):
            column.append(0)

    def keep(self, entry: int) -> int:
        """Count one more user of an entry."""
        self._users[entry] += 1
        return entry

    def drop(self, entry: int) -> None:
        """Count one user less; an entry without users is free for another object."""
        while entry != NONE:
            self._users[entry] -= 1
            if self._users[entry]:
                return
            self.obj[entry] = None
            self.ref.pop(entry, None)
            self._free.append(entry)
            entry = self.parent[entry]

    def rebase(self, entry: int, label: str = "") -> bool:
        """Shorten the way back to the root; False if it is too long and cannot be shortened."""
        try:
            named = label and by_name(label) is self.obj[entry]
            self.ref[entry] = label if named else weakref.ref(self.obj[entry])
        except TypeError:  # a dict, a list, a tuple
            return self.depth[entry] < MAX_STEPS
        parent, self.parent[entry], self.depth[entry] = self.parent[entry], NONE, 0
        self.drop(parent)
        return True


class Finder:
    """Opens entries: their objects are available until all are closed again."""

    def __init__(self, entries: Entries, slots: Slots, places: Places, outlines: Outlines) -> None:
        self._entries, self._slots = entries, slots
        self._places, self._outlines = places, outlines
        self.opened: list[int] = []

    def close(self) -> None:
        """Drop all objects."""
        for entry in self.opened:
            self._entries.obj[entry] = None
        self.opened.clear()

    def forget(self) -> None:
        """Free the columns of the entries."""
        self._entries = Entries()

    def open(self, entry: int) -> Any:
        """Return the object of an entry, `GONE` if it is no longer in its place."""
        entries, way, at = self._entries, [], entry
        while at != NONE and entries.obj[at] is None:
            way.append(at)
            at = NONE if at in entries.ref else entries.parent[at]
        for one in reversed(way):
            obj = self._again(one)
            if obj is GONE or id(obj) != entries.ident[one]:
                return GONE
            entries.obj[one] = obj
            self.opened.append(one)
        return entries.obj[entry]

    def _again(self, entry: int) -> Any:
        entries = self._entries
        ref = entries.ref.get(entry)
        if ref is not None:
            obj = by_name(ref) if isinstance(ref, str) else ref()
            return GONE if obj is None else obj
        parent, slot, step = entries.parent[entry], entries.slot[entry], entries.step[entry]
        if parent == NONE:
            found = [held.value for held in self._places.held(self._slots[slot])]
        elif step >= 0:
            found = self._at_position(entries.obj[parent], entries.edge[parent], step)
        elif slot == entries.slot[parent] or self._slots.parents[slot] == NOWHERE:
            found = gc.get_referents(entries.obj[parent])
        else:
            found = self._places.take(entries.obj[parent], self._slots.labels[slot])
        ident = entries.ident[entry]
        return next((obj for obj in found if id(obj) == ident), GONE)

    def _at_position(self, obj: Any, edge: int, step: int) -> list[Any]:
        base = self._outlines.of(type(obj)).base
        if edge:
            return edges(obj, base, edge)[step : step + 1]
        return part(obj, base, step, step + 1)
