"""Inspects objects without creating anything in them, and remembers by name what it saw."""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from floodline.leaks._heap.slot_lookup import (
    by_name,
    label_of_function,
    own_dicts,
    suspended_label,
    suspended_locals,
)
from floodline.leaks._heap.slots import NOWHERE, Slots
from floodline.leaks._heap.walk import Walk
from floodline.leaks._objects.anatomy import LruWrapper, label_of
from floodline.leaks._objects.identity_set import Seen
from floodline.leaks._objects.outline import Outline, Outlines

# larger containers are sampled; the more a walk has met, the smaller the sample
MAX_EXPANDED = ((150_000, 10_000, 500), (300_000, 2_000, 250), (sys.maxsize, 500, 100))
MAX_ANCHORS = 16
MAX_ROOTS = 20_000
UNKNOWN = (1 << 32) - 1  # the number that stands for no name
KNOWN = 16  # objects in a row without an unknown attribute, after which none is looked for
MAX_SAMPLED = 100
Anchors = dict[str, list[Callable[[], Any]]]


class OutlineWalk(Walk):
    """A walk by outlines: it creates no `__dict__` and keeps no type or function alive.

    `anchors` are weak references to the classes, functions and coroutines that are roots of slots
    but that no module has under their own name.
    """

    seen: Seen  # type: ignore[assignment]  # a set of identities, only smaller

    def __init__(self, slots: Slots, outlines: Outlines, anchors: Anchors) -> None:
        super().__init__(slots)
        self.seen = Seen()
        self.sampled: dict[int, int] = {}
        self.unseen: dict[int, int] = {}  # items that were left out, by slot
        self._outlines, self._anchors = outlines, anchors

    def _edge(self, slot: int, size: int) -> int:
        """Return how many items to inspect at either end, 0 for all of them."""
        most, edge = next((m, e) for met, m, e in MAX_EXPANDED if self.objects < met)
        if size <= most:
            return 0
        self._note(slot, size)
        self.unseen[slot] = self.unseen.get(slot, 0) + size - 2 * edge
        return edge

    def _note(self, slot: int, size: int) -> None:
        self.sampled[slot] = max(size, self.sampled.get(slot, 0))
        if len(self.sampled) > MAX_SAMPLED:
            del self.sampled[min(self.sampled, key=self.sampled.__getitem__)]

    def _keys(self, keys: list[Any], slot: int) -> None:
        """Count keys without inspecting them: what a key holds does not grow."""
        texts = [key for key in keys if type(key) is str or type(key) is bytes]
        if texts:
            self._texts(texts, self.slots.child(slot, "", "[keys]"))

    def _attributes(self, obj: Any, slot: int, plan: Any) -> None:
        named, names, kids = plan.attributes(obj), self.slots.names, self.slots.kids
        for key, value in named:
            if type(value) is not types.FunctionType or not is_dull(value):
                child = kids.get(slot << 32 | names.get(key, UNKNOWN))
                if child is None:
                    child = self.slots.child(slot, plan.label, key.removeprefix(plan.label))
                self.push(value, child)
        if plan.base is None and (plan.hidden or plan.complete < KNOWN):
            self._unnamed(obj, slot, plan, named)

    def _unnamed(self, obj: Any, slot: int, plan: Outline, named: list[tuple[str, Any]]) -> None:
        names, rest = plan.rest(obj, named)
        if plan.hidden:
            self._count_referents(obj, slot)
        plan.complete = 0 if rest or names else plan.complete + 1
        if names is not None:
            self._count_names(slot, dict.__len__(names))
            self.namespace(names, slot, plan.label)
        for value in rest:
            if id(value) not in self.seen:
                name = self._outlines.of(type(value)).label.rpartition(".")[2]
                self.push(value, self.slots.child(slot, "", "→" + name))

    def _instance(self, obj: Any, slot: int, plan: Any) -> None:
        if plan.local:
            self._thread_local(obj, slot)
        else:
            self._attributes(obj, slot, plan)

    def _plan(self, kind: type) -> Any:
        return self._outlines.of(kind)

    def _named(
        self, value: Any, slot: int, anchor: str, label: str, *, entered: int = NOWHERE
    ) -> None:
        if type(value) is not types.FunctionType or not is_dull(value):
            super()._named(value, slot, anchor, label, entered=entered)

    def _type(self, obj: Any, slot: int, plan: Any) -> None:
        self._anchor(obj, label_of(obj))
        super()._type(obj, slot, plan)

    def _function(self, obj: Any, slot: int, plan: Any) -> None:
        self._anchor(obj, label_of_function(obj))
        super()._function(obj, slot, plan)

    def _suspended(self, obj: Any, slot: int, plan: Any) -> None:
        label = suspended_label(obj)
        self._anchor(obj, label)
        root = self.slots.root(label)
        for name, value in suspended_locals(obj):
            self._named(value, root, label, f"(){name}", entered=slot)
        self._opaque(obj, slot, plan)

    def _cache(self, obj: Any, slot: int, plan: Any) -> None:
        size = LruWrapper.cache_info(obj).currsize
        if not self._edge(slot, size):
            super()._cache(obj, slot, plan)

    def _anchor(self, obj: Any, label: str) -> None:
        """Keep a weak reference to a root's class, function or coroutine if no name leads to it."""
        if by_name(label) is obj:
            return
        known = self._anchors.get(label)
        if known is None:
            if len(self._anchors) >= MAX_ROOTS:
                return
            known = self._anchors[label] = []
        if all(ref() is not obj for ref in known):
            known[:] = [ref for ref in known if ref() is not None][: MAX_ANCHORS - 1]
            known.append(weakref.ref(obj))


def is_dull(function: types.FunctionType) -> bool:
    """Return True if a function holds nothing that can grow: no cell, default or attribute."""
    if function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    return not own_dicts(function)
