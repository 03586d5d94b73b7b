"""The same walk in slices: between two of them it holds no object of the program, only its place.

What waits to be looked into is found again from what holds it: by name, by position, or among its
referents by its identity. What is not there any more is passed over.
"""

from __future__ import annotations

import gc
import types
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from floodline.leaks._anatomy import INERT, LruWrapper, is_standard, label_of
from floodline.leaks._live_items import EDGE, MAX_EXPANDED, edges, part
from floodline.leaks._live_place import (
    Places,
    label_of_function,
    own_dicts,
    suspended_label,
    suspended_locals,
)
from floodline.leaks._live_seen import Seen
from floodline.leaks._live_tracks import Row
from floodline.leaks._outline import Outline, Outlines
from floodline.leaks._slots import Slot, Slots
from floodline.leaks._walk import PLAIN, Walk

CHUNK = 128
MAX_WAITING = 50_000
REBASE = 64  # so many steps down, an object is found again by a weak reference
MAX_STEPS = 512
MAX_ANCHORS = 16
MAX_ROOTS = 20_000
GONE: Any = type("Gone", (), {})()
_ANCHORED = frozenset(("type", "function", "suspended"))  # they allow weak references
_MUTABLE = frozenset(map(id, (dict, list, set, deque, bytearray)))
Anchors = dict[str, list[Callable[[], Any]]]


class Entry:
    """One object that waits: where it is found again, and how far it was looked into."""

    __slots__ = ("cursor", "depth", "ident", "obj", "parent", "ref", "slot", "step")

    def __init__(self, obj: Any, slot: Slot, parent: Entry | None, step: int) -> None:
        self.obj, self.slot, self.parent, self.step = obj, slot, parent, step
        self.ident = id(obj)
        self.depth: int = parent.depth + 1 if parent else 0
        self.cursor = 0
        self.ref: Callable[[], Any] | None = None


class SlicedWalk(Walk):
    """One walk, advanced for as long as it is allowed to; `done` when nothing waits any more."""

    seen: Seen  # type: ignore[assignment]  # a set of identities, only smaller

    def __init__(self, slots: Slots, outlines: Outlines, anchors: Anchors) -> None:
        super().__init__(slots)
        self.seen = Seen()
        self.sampled: dict[int, int] = {}  # floodline: bounded[cut to the largest in _sample]
        self.containers: list[int] = []  # floodline: bounded[taken after each slice]
        self.cut = 0
        self._outlines, self._anchors = outlines, anchors
        self._places = Places(outlines, anchors)
        self._named_queue: deque[Entry] = deque()
        self._stack: list[Entry] = []
        self._later_on: list[Entry] = []
        self._open: list[Entry] = []
        self._at: Entry | None = None
        self._step = -1

    @property
    def done(self) -> bool:
        """Whether nothing waits any more."""
        return not (self._named_queue or self._stack or self._later_on)

    @property
    def named_done(self) -> bool:
        """Whether all that has a path of names alone was counted."""
        return not self._named_queue

    def root(self, obj: Any, label: str) -> None:
        """Begin at an object that has a name of its own; a module is found again by it."""
        self._at = None
        self.push(obj, self.slots.root(label))

    def advance(self, due: Callable[[], bool]) -> None:
        """Look into what waits until `due` says so, then let go of everything."""
        try:
            while not self.done and not due():
                self._look(self._next())
        finally:
            for entry in self._open:
                entry.obj = None
            self._open.clear()
            self._holder = self._at = None

    def _next(self) -> Entry:
        if self._named_queue:
            return self._named_queue.popleft()
        if not self._stack:
            # the program's own containers first, so that their names win
            self._later_on.sort(key=lambda entry: not is_standard(entry.slot.path))
            self._stack, self._later_on = self._later_on, []
        return self._stack.pop()

    def _look(self, entry: Entry) -> None:
        obj = self._found(entry)
        if obj is GONE:
            return
        self._at, self._holder, self._step = entry, obj, -1
        plan = self._outlines.of(type(obj))
        self._expand[plan.kind](obj, entry.slot, plan)  # type: ignore[arg-type]  # an outline answers like an anatomy

    def _plan(self, kind: type) -> Any:
        return self._outlines.of(kind)

    def push(self, obj: Any, slot: Slot) -> None:
        """Count an object in a slot, once in the walk, and look into it later."""
        plan = self._outlines.of(type(obj))
        if plan.own:
            return
        super().push(obj, slot)
        grows = plan.kind == "cache" or id(plan.base) in _MUTABLE
        if grows and not slot.starred and not slot.label.startswith(".__"):
            self.containers.append(slot.index)

    def row(self, index: int) -> Row:
        """Return the figures of a slot, zeros if it was not met."""
        if index >= len(self.count):
            return (0, 0, 0, 0)
        return (self.count[index], self.length[index], self.text[index], self.bytes[index])

    def forget(self) -> None:
        """Keep the figures alone."""
        self.seen = Seen()
        self._plans.clear()

    def _later(self, obj: Any, slot: Slot) -> None:
        parent = self._at
        if len(self._stack) + len(self._named_queue) + len(self._later_on) >= MAX_WAITING:
            self.cut += 1
            return
        plan = self._outlines.of(type(obj))
        entry = Entry(obj, slot, parent, self._step)
        unnamed = parent is None and plan.kind != "module"
        far = entry.depth >= REBASE or unnamed or plan.kind in _ANCHORED
        if far and not self._rebase(entry):
            return
        self._open.append(entry)
        if slot.starred and (parent is None or parent.slot.starred or parent.cursor):
            self._stack.append(entry)
        elif slot.starred or plan.kind in ("container", "cache"):
            self._later_on.append(entry)
        else:
            self._named_queue.append(entry)

    def _rebase(self, entry: Entry) -> bool:
        """Cut a long way back to the root short; what allows no weak reference ends somewhere."""
        try:
            entry.ref = weakref.ref(entry.obj)
        except TypeError:
            if entry.depth < MAX_STEPS:
                return True
            self.cut += 1
            return False
        entry.parent, entry.depth = None, 0
        return True

    def _found(self, entry: Entry) -> Any:
        """Return the object of an entry, found again from its holder; the way back is a loop."""
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
            self._open.append(one)
        return entry.obj

    def _again(self, entry: Entry) -> Any:
        if entry.ref is not None:
            obj = entry.ref()
            return GONE if obj is None else obj
        if entry.parent is None:
            found = [held.value for held in self._places.held(entry.slot)]
        elif entry.step >= 0:
            found = self._at_position(entry.parent.obj, entry.step)
        elif entry.slot is entry.parent.slot or entry.slot.parent is None:
            found = gc.get_referents(entry.parent.obj)
        else:
            found = self._places.take(entry.parent.obj, entry.slot.label)
        return next((obj for obj in found if id(obj) == entry.ident), GONE)

    def _at_position(self, holder: Any, step: int) -> list[Any]:
        base = self._outlines.of(type(holder)).base
        size = self._size(holder)
        if size > MAX_EXPANDED:
            return edges(holder, base, size)[step : step + 1]
        return part(holder, base, step, step + 1)

    def _size(self, obj: Any) -> int:
        count = self._outlines.of(type(obj)).length
        return count(obj) if count else 0

    def _container(self, obj: Any, slot: Slot, plan: Any) -> None:
        entry, size = self._at, self._size(obj)
        assert entry is not None
        if not entry.cursor and (plan.dict_of or plan.slots):
            self._attributes(obj, slot, plan)
        if size > MAX_EXPANDED:
            self._sample(obj, slot, plan.base, size)
            return
        begin = entry.cursor
        entry.cursor = begin + CHUNK
        if entry.cursor < size:
            self._stack.append(entry)
        self._numbered(part(obj, plan.base, begin, begin + CHUNK), slot, begin)
        if plan.base is dict:
            self._keys(part(obj, dict, begin, begin + CHUNK, keys=True), slot)

    def _sample(self, obj: Any, slot: Slot, base: type | None, size: int) -> None:
        self.sampled[slot.index] = max(size, self.sampled.get(slot.index, 0))
        if len(self.sampled) > 100:
            del self.sampled[min(self.sampled, key=self.sampled.__getitem__)]
        entry = self._at
        assert entry is not None
        begin = entry.cursor
        entry.cursor = begin + CHUNK
        if entry.cursor < 2 * EDGE:
            self._stack.append(entry)
        self._numbered(edges(obj, base, size)[begin : begin + CHUNK], slot, begin)

    def _numbered(self, items: list[Any], slot: Slot, begin: int) -> None:
        kinds = set(map(id, map(type, items)))
        if kinds <= INERT:
            return
        child = self.slots.child(slot, "", "[*]")
        if kinds <= PLAIN:
            self._texts(items, child)
            return
        for self._step, item in enumerate(items, begin):
            self.push(item, child)
        self._step = -1

    def _keys(self, keys: list[Any], slot: Slot) -> None:
        """Count keys, but do not look into them: what a key holds does not grow."""
        if {id(kind) for kind in map(type, keys)} <= INERT:
            return
        texts = [key for key in keys if id(type(key)) in PLAIN]
        self._texts(texts, self.slots.child(slot, "", "[keys]"))

    def _attributes(self, obj: Any, slot: Slot, plan: Any) -> None:
        named = plan.attributes(obj)
        for name, value in named:
            self._named(value, slot, plan.label, "." + name)
        if plan.base is None:
            self._unnamed(obj, slot, plan, named)

    def _unnamed(self, obj: Any, slot: Slot, plan: Outline, named: list[tuple[str, Any]]) -> None:
        names, rest = plan.rest(obj, named)
        if names is not None:
            self.namespace(names, slot, plan.label)
        for value in rest:
            if id(value) not in self.seen:
                name = self._outlines.of(type(value)).label.rpartition(".")[2]
                self.push(value, self.slots.child(slot, "", "→" + name))

    def _instance(self, obj: Any, slot: Slot, plan: Any) -> None:
        if plan.local:
            self._thread_local(obj, slot)
        else:
            self._attributes(obj, slot, plan)

    def _named(self, value: Any, slot: Slot, anchor: str, label: str) -> None:
        if type(value) is types.FunctionType and _is_dull(value):
            return
        super()._named(value, slot, anchor, label)

    def _type(self, obj: Any, slot: Slot, plan: Any) -> None:
        self._anchor(obj, label_of(obj))
        super()._type(obj, slot, plan)

    def _function(self, obj: Any, slot: Slot, plan: Any) -> None:
        self._anchor(obj, label_of_function(obj))
        super()._function(obj, slot, plan)

    def _suspended(self, obj: Any, slot: Slot, plan: Any) -> None:
        label = suspended_label(obj)
        self._anchor(obj, label)
        root = self.slots.root(label)
        for name, value in suspended_locals(obj):
            self._named(value, root, label, f"(){name}")
        self._opaque(obj, slot, plan)

    def _cache(self, obj: Any, slot: Slot, plan: Any) -> None:
        size = LruWrapper.cache_info(obj).currsize
        if size > MAX_EXPANDED:
            self.sampled[slot.index] = size
            return
        super()._cache(obj, slot, plan)

    def _anchor(self, obj: Any, label: str) -> None:
        """Remember weakly which class, function or coroutine a root is."""
        known = self._anchors.get(label)
        if known is None:
            if len(self._anchors) >= MAX_ROOTS:
                return
            known = self._anchors[label] = []
        known[:] = [ref for ref in known if ref() is not None]
        if len(known) < MAX_ANCHORS and all(ref() is not obj for ref in known):
            known.append(weakref.ref(obj))


def _is_dull(function: types.FunctionType) -> bool:
    """Tell whether a function holds nothing that could grow: no cell, no default, no attribute."""
    if function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    return not own_dicts(function)
