"""Inspects objects without creating anything in them, and remembers by name what it saw."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from abc import ABC
from array import array
from collections.abc import Callable
from typing import Any

from floodline.leaks._heap.slot_lookup import (
    by_name,
    label_of_function,
    own_dicts,
    suspended_label,
    suspended_locals,
)
from floodline.leaks._heap.slots import ANCHOR, NOWHERE, Slots
from floodline.leaks._heap.walk import PLAIN, Walk
from floodline.leaks._objects.anatomy import (
    INERT,
    LruWrapper,
    derives,
    label_of,
    module_of_type,
    mro_of,
    names_of_type,
    unwrapped,
)
from floodline.leaks._objects.frames import code_label, variables_of
from floodline.leaks._objects.identity_set import Seen
from floodline.leaks._objects.outline import Outline, Outlines
from floodline.leaks._objects.territory import Territory

# larger containers are sampled; the more a walk has met, the smaller the sample
MAX_EXPANDED = ((150_000, 10_000, 500), (300_000, 2_000, 250), (sys.maxsize, 500, 100))
MAX_ANCHORS = 16
MAX_ROOTS = 20_000
UNKNOWN = (1 << 32) - 1  # the number that stands for no name
KNOWN = 16  # objects in a row without an unknown attribute, after which none is looked for
MAX_SAMPLED = 100
OURS = 3  # references to an item that is being counted, beside those of its holders
OTHERS = 0  # the slot of classes and functions of libraries
SHORT = 256  # characters of a text that is not followed
FEW = 8  # items of a library's container that is passed over
_BUILTIN = frozenset(map(id, (dict, list, set, tuple, frozenset)))
_ABSTRACT = type(vars(ABC)["_abc_impl"])  # what each abstract class keeps for `isinstance`
Anchors = dict[str, list[Callable[[], Any]]]


class OutlineWalk(Walk):
    """A walk by outlines: it creates no `__dict__` and keeps no type or function alive.

    `anchors` are weak references to the classes, functions and coroutines that are roots of slots
    but that no module has under their own name.
    """

    seen: Seen  # type: ignore[assignment]  # a set of identities, only smaller

    def __init__(
        self,
        slots: Slots,
        outlines: Outlines,
        anchors: Anchors,
        territory: Territory | None = None,
    ) -> None:
        super().__init__(slots)
        self._territory = territory or Territory()
        self.seen = Seen()
        self.count, self.length, self.text, self.bytes = (array("q") for _ in range(4))
        self.sampled: dict[int, int] = {}
        self.unseen: dict[int, int] = {}  # items that were left out, by slot
        self.amended = array("d")  # bytes to add to those of a slot, or to take away
        self._outlines, self._anchors = outlines, anchors

    def _edge(self, slot: int, size: int) -> int:
        """Return how many items to inspect at either end, 0 for all of them."""
        most, edge = next((m, e) for met, m, e in MAX_EXPANDED if self.objects < met)
        if size <= most:
            return 0
        self._note(slot, size)
        self.unseen[slot] = self.unseen.get(slot, 0) + size - 2 * edge
        return edge

    def _texts(self, items: list[Any], slot: int) -> None:
        before = self.bytes[slot] if slot < len(self.bytes) else 0
        super()._texts(items, slot)
        self._amend(slot, -shared_part(items) * (self.bytes[slot] - before))

    def _amend(self, slot: int, size: float) -> None:
        """Correct what a slot weighs, beside the figures by which growth is judged."""
        if size:
            if slot >= len(self.amended):
                self.amended.extend([0.0] * (slot + 1 - len(self.amended)))
            self.amended[slot] += size

    def _note(self, slot: int, size: int) -> None:
        self.sampled[slot] = max(size, self.sampled.get(slot, 0))
        if len(self.sampled) > MAX_SAMPLED:
            del self.sampled[min(self.sampled, key=self.sampled.__getitem__)]

    def _attributes(self, obj: Any, slot: int, plan: Any) -> None:
        named, names, kids = plan.attributes(obj), self.slots.names, self.slots.kids
        texts = 0.0
        for key, value in named:
            if type(value) is str and len(value) < SHORT:
                texts += sys.getsizeof(value) / max(1, sys.getrefcount(value) - OURS)
            elif not is_dull(value):
                child = kids.get(slot << 32 | names.get(key, UNKNOWN))
                if child is None:
                    child = self.slots.child(slot, plan.label, key.removeprefix(plan.label))
                self.push(value, child)
        self._amend(slot, texts)
        if plan.base is None and (plan.hidden or plan.complete < KNOWN):
            self._unnamed(obj, slot, plan, named)

    def _unnamed(self, obj: Any, slot: int, plan: Outline, named: list[tuple[str, Any]]) -> None:
        names, rest = plan.rest(obj, named)
        if plan.hidden:
            self._count_referents(obj, slot)
        plan.complete = 0 if rest or names else plan.complete + 1
        if names is not None:
            self._count_names(slot, dict.__len__(names))
            anchor = self._belongs_to(slot, plan)  # type: ignore[arg-type]  # an outline answers like an anatomy
            self.namespace(names, slot, anchor)
        for value in rest:
            if id(value) in self.seen:
                continue
            alone = not self.slots.starred[slot]
            name = self._outlines.given(plan, obj, value) if alone else None
            if name is not None:
                self.push(value, self.slots.child(slot, plan.label, f".{name}"))
                continue
            kind = self._outlines.of(type(value)).label.rpartition(".")[2]
            self.push(value, self.slots.child(slot, "", f"→{kind}"))

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
        """Follow a name, unless it has underscores at both ends.

        Those describe classes and modules, and in a program with many models they lead to most of
        all objects.
        """
        kind = type(value)
        if self._skips(value, label):
            if kind is str and slot != ANCHOR:
                self._amend(slot, sys.getsizeof(value) / max(1, sys.getrefcount(value) - OURS - 1))
            return
        if kind is types.FunctionType or derives(kind, type):
            self.push(value, self._definition(value))  # named after itself, wherever it is met
        else:
            super()._named(value, slot, anchor, label, entered=entered)

    def _skips(self, value: Any, label: str) -> bool:
        return (label[:3] == ".__" and label[-2:] == "__") or is_dull(value)

    def _definition(self, value: Any) -> int:
        """Return the slot of a class or function; a library's has none of its own.

        There are many, and hardly any holds something that could grow.
        """
        if type(value) is types.FunctionType:
            label, module = label_of_function(value), dict.get(value.__globals__, "__name__")
        else:
            label, module = label_of(value), module_of_type(value)
        return OTHERS if self._territory.is_library(module) else self.slots.root(label)

    def _type(self, obj: Any, slot: int, _: Any) -> None:
        label, names = label_of(obj), names_of_type(obj)
        self._anchor(obj, label)
        if slot != OTHERS:
            self._count_names(slot, len(names))
        held = [(name, unwrapped(value)) for name, value in list(names.items())]
        kept = [(n, v) for n, v in held if type(n) is str and not self._skips(v, "." + n)]
        for name, value in kept:
            self._named(value, ANCHOR, label, "." + name)
        for base in mro_of(obj):
            self.push(base, slot)

    def _function(self, obj: Any, slot: int, plan: Any) -> None:
        self._anchor(obj, label_of_function(obj))
        super()._function(obj, NOWHERE if slot == OTHERS else slot, plan)

    def _suspended(self, obj: Any, slot: int, plan: Any) -> None:
        label = suspended_label(obj)
        self._anchor(obj, label)
        for name, value in suspended_locals(obj):
            self._named(value, ANCHOR, label, f"(){name}", entered=slot)
        self._opaque(obj, slot, plan)

    def frame(self, frame: types.FrameType, entered: int = NOWHERE) -> None:
        """Name what the variables of a running function hold."""
        label = code_label(frame.f_code, frame.f_globals)
        for name, value in variables_of(frame).items():
            self._named(value, ANCHOR, label, f"(){name}", entered=entered)

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


def is_dull(value: Any) -> bool:
    """Return True if something holds nothing that can grow, and is not worth a slot.

    Such is a function without a cell, a default or an attribute, and a short text.
    """
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value) < SHORT
    if kind is property:
        return is_dull(value.fget) and is_dull(value.fset) and is_dull(value.fdel)
    if kind is not types.FunctionType:
        return id(kind) in INERT or kind is _ABSTRACT
    if value.__closure__:
        return False
    given = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    return {id(type(one)) for one in given} <= PLAIN and not own_dicts(value)


def definitions_in(value: Any, kind: str) -> list[Any] | None:
    """Return the classes and functions that a class or function leads to, None if it has more."""
    if kind == "type":
        held = [unwrapped(one) for one in list(names_of_type(value).values())]
        names = zip(names_of_type(value), held, strict=False)
        held = [one for name, one in names if name[:2] != "__"] + list(mro_of(value)[1:])
    else:
        cells = [one for cell in value.__closure__ or () for one in gc.get_referents(cell)]
        given = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        held = [*cells, *given, *own_dicts(value)]
    found = []
    for one in held:
        if type(one) is types.FunctionType or derives(type(one), type):
            found.append(one)
        elif not (is_dull(one) or is_small(one)):
            return None
    return found


def is_small(value: Any) -> bool:
    """Return True for a builtin container of a few plain values."""
    kind = type(value)
    if id(kind) not in _BUILTIN or len(value) > FEW:
        return False
    items = list(dict.values(value)) if kind is dict else list(value)
    return {id(type(item)) for item in items} <= PLAIN


def shared_part(items: list[Any]) -> float:
    """Return which part of texts and numbers belongs to other holders, judged by a few of them."""
    size = theirs = 0.0
    for at in (0, len(items) // 2, -1):
        item = items[at]
        own = sys.getsizeof(item)
        size += own
        theirs += own - own / max(1, sys.getrefcount(item) - OURS)
    return theirs / size


def numbers_in(items: list[Any]) -> float:
    """Return about what numbers weigh, judged by a few; those that others hold count in part."""
    size = 0.0
    for at in (0, len(items) // 2, -1) if items else ():
        item = items[at]
        size += sys.getsizeof(item) / max(1, sys.getrefcount(item) - OURS)
    return size * len(items) / 3


def label_in_module(obj: Any, kind: str) -> str:
    """Return the name by which a module may have it."""
    if kind == "function":
        return label_of_function(obj)
    return label_of(obj) if kind == "type" else ""
