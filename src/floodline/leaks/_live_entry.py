"""What waits to be looked into, and how it is found again without a reference to it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

from floodline.leaks._live_items import edges, part
from floodline.leaks._live_place import Places
from floodline.leaks._outline import Outlines
from floodline.leaks._slots import Slot

MAX_STEPS = 512
GONE: Any = type("Gone", (), {})()


class Entry:
    """One object that waits: its place below another one, and how far it was looked into.

    It is found again from what holds it: by name, by position, or among the referents by its
    identity; far from a root by a weak reference. The object itself is kept within a slice only.
    """

    __slots__ = ("cursor", "depth", "edge", "ident", "obj", "parent", "ref", "slot", "step")

    def __init__(self, obj: Any, slot: Slot, parent: Entry | None, step: int) -> None:
        self.obj, self.slot, self.parent, self.step = obj, slot, parent, step
        self.ident = id(obj)
        self.depth: int = parent.depth + 1 if parent else 0
        self.cursor = 0
        self.edge = 0  # items from either end of it that are looked at; 0 is all
        self.ref: Callable[[], Any] | None = None

    def rebase(self) -> bool:
        """Cut the way back to the root short; False if it is too long and cannot be cut."""
        try:
            self.ref = weakref.ref(self.obj)
        except TypeError:  # a dict, a list, a tuple
            return self.depth < MAX_STEPS
        self.parent, self.depth = None, 0
        return True


class Finder:
    """Opens entries: their objects are at hand until all are closed again."""

    def __init__(self, places: Places, outlines: Outlines) -> None:
        self._places, self._outlines = places, outlines
        self.opened: list[Entry] = []

    def close(self) -> None:
        """Let go of all objects."""
        for entry in self.opened:
            entry.obj = None
        self.opened.clear()

    def open(self, entry: Entry) -> Any:
        """Return the object of an entry, `GONE` if it is not in its place any more."""
        way: list[Entry] = []
        at: Entry | None = entry
        while at is not None and at.obj is None:
            way.append(at)
            at = at.parent if at.ref is None else None
        for one in reversed(way):
            obj = self._again(one)
            if obj is GONE or id(obj) != one.ident:
                return GONE
            one.obj = obj
            self.opened.append(one)
        return entry.obj

    def _again(self, entry: Entry) -> Any:
        if entry.ref is not None:
            obj = entry.ref()
            return GONE if obj is None else obj
        parent = entry.parent
        if parent is None:
            found = [held.value for held in self._places.held(entry.slot)]
        elif entry.step >= 0:
            found = self._at_position(parent, entry.step)
        elif entry.slot is parent.slot or entry.slot.parent is None:
            found = gc.get_referents(parent.obj)
        else:
            found = self._places.take(parent.obj, entry.slot.label)
        return next((obj for obj in found if id(obj) == entry.ident), GONE)

    def _at_position(self, parent: Entry, step: int) -> list[Any]:
        base = self._outlines.of(type(parent.obj)).base
        if parent.edge:
            return edges(parent.obj, base, parent.edge)[step : step + 1]
        return part(parent.obj, base, step, step + 1)
