"""A closer look at the first candidates, with access to the objects themselves."""

from __future__ import annotations

import ast
import atexit
import gc
import types
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import islice
from typing import Any
from weakref import ref

from floodline.leaks._closeup.callbacks import kind_of_item, name_of_called
from floodline.leaks._closeup.decorated import decorated_function
from floodline.leaks._closeup.feeding_line import Watch
from floodline.leaks._closeup.stored_attributes import stored_attribute
from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.suspect import Suspect, below, outcome_of
from floodline.leaks._heap.container_limit import read_numbers, room, shown_limit
from floodline.leaks._heap.context_variables import kind_of
from floodline.leaks._heap.owner_names import last_name, module_of, owner_of
from floodline.leaks._heap.roots import AT_EXIT, HELD_BY_C, survey
from floodline.leaks._heap.slot_owner import Above, find_above, kept_by_library
from floodline.leaks._heap.slot_values import changes_in, length, length_in, names_in
from floodline.leaks._heap.slots import ITEM, Slot, Slots, is_placeholder, shorten
from floodline.leaks._heap.walk import Held
from floodline.leaks._objects.anatomy import (
    INERT,
    Anatomy,
    LruWrapper,
    derives,
    is_standard,
    label_of,
)
from floodline.leaks._objects.frames import own_module
from floodline.leaks._objects.items import some
from floodline.leaks._objects.territory import rank_of_module
from floodline.leaks._source.limit_checks import caps, caps_at
from floodline.leaks._source.place import Place
from floodline.leaks._source.reraised import Raised
from floodline.leaks._vocabulary import Column, Unit

MAX_WATCHED = 64
UNITS: dict[Column, Unit] = {"length": "item", "text": "byte", "count": "object"}
Find = Callable[[Slot], list[Held]]
_cache_names: Callable[[Any], dict[str, Any]] = vars(LruWrapper)["__dict__"].__get__


class Close:
    """A candidate with its objects, for its name, the watch on its length, and its cap."""

    def __init__(self, one: Candidate, find: Find, *, most: int | None = None) -> None:
        self.one, self._most = one, most
        self._above: Slot | None = None
        self.held = held = find(one.slot)
        self.head = head_of(one)
        self.heads = find(self.head) or held
        self._tops = find(chain_top(one.slot)) if one.column == "count" else []
        self.owner, self.defined_in = owner_of(self.head, self.heads)
        outer = outer_head(self.head)
        if outer is not None and is_standard(self.defined_in) and not self.head.standard:
            self.head, self.heads = outer, find(outer) or held
            self.owner, self.defined_in = owner_of(outer, self.heads)
        if one.slot.key.startswith(HELD_BY_C):
            self.owner = f"{HELD_BY_C} {_hook_name(held)}".strip()
        elif self.head.label == HELD_BY_C:  # in a function that C code holds
            self.owner = f"{HELD_BY_C} {one.slot.anchor}".strip()
        elif self._is_of_library():
            self.head, self.heads = one.slot, held
            self.owner, self.defined_in = owner_of(one.slot, held)
        self.stored = self._find_stored()
        if self.stored is not None:
            self.owner = f"{self.defined_in}.{self.stored[1]}"

    def _find_stored(self) -> tuple[str, str] | None:
        slot, head = self.one.slot, self.head
        if slot.label != ITEM or slot.parent is None or slot.parent.index != head.index:
            return None
        if self.one.column == "count":
            return None
        known = self.name_in_program()
        return stored_attribute(self.heads, self.held, known[0] if known else None)

    @property
    def shared(self) -> bool:
        """True if the slot stands for many places and is named after the first."""
        slot, column = self.one.slot, self.one.column
        borrowed = self.head.index != slot.index and column != "count"
        return borrowed and slot.starred and slot.label[0] == "."

    def move(self, above: Above) -> None:
        """Take the name from where the fullest containers are."""
        self.held, self._above = above.held, above.slot
        self.head, self.heads = above.slot.head(), above.holders
        known = above.holders if self.head.index == above.slot.index else []
        self.owner, self.defined_in = owner_of(self.head, known)

    def _is_of_library(self) -> bool:
        """Return True if a name of the program only leads to what the library itself owns."""
        slot, held = self.one.slot, self.held
        led = slot.standard and slot.label[0] == "." and not self.head.standard
        return led and bool(held) and kept_by_library(held[0].holder)

    def suspect(self, rank: int) -> Suspect:
        """Return the record, without its line."""
        one, trend = self.one, self.one.trend
        shown = self.heads[0].value if self.heads else None
        cap, capped = self._cap
        return Suspect(
            rank=rank,
            verdict=outcome_of(trend),
            owner=self.owner,
            defined_in=self.defined_in,
            path=shorten(self._path()),
            type=label_of(type(shown)).rpartition(".")[2] if self.heads else kind_of(one.slot),
            holds=self.holds(),
            len=one.size,
            per_round=round(trend.rate, 3),
            bytes_per_round=round(max(one.bytes_rate, 0.0), 1),
            unit=UNITS[one.column],
            cap=cap,
            capped=capped,
        )

    def _path(self) -> str:
        slot = self.one.slot
        path = self._above.path + slot.label if self._above else slot.path
        if self.stored is not None and slot.parent is not None and slot.parent.parent is not None:
            return f"{slot.parent.parent.path}.{self.stored[1]}"
        start = self.head.path
        if self.head.label[:1] in ("{", ".") and path.startswith(start):
            decorated = decorated_function(self.heads)
            if decorated is not None:
                return f"{decorated}{self.head.label}{path[len(start) :]}"
        return path

    def holds(self) -> str:
        """Return what the containers hold, most frequent first: `MemoryService ×271`."""
        return ", ".join(f"{name} ×{count}" for name, count in self.kinds().most_common(2))

    def kinds(self) -> Counter[str]:
        """Count the types of what the containers hold."""
        kinds: Counter[str] = Counter()
        for held in self.held:
            kinds.update(map(kind_of_item, self.items_of(held.value)))
        return kinds

    def items_of(self, value: Any) -> Iterable[Any]:
        """Return what one object of the slot holds."""
        if self.one.column == "count":
            return [value]
        plan = Anatomy(type(value))
        if plan.base is None and plan.kind != "cache":
            plain = self.one.column == "length" and not self.one.slot.starred
            names = names_in(value) if plain else None
            return [] if names is None else list(islice(list(names.values()), self._most))
        if self._most is not None and length(value) > self._most:
            return some(value, plan.base, length(value), self._most)
        if plan.kind == "cache":
            inner = [o for o in gc.get_referents(value) if type(o) is dict]
            return [o for d in inner if "__wrapped__" not in d for o in dict.values(d)]
        return plan.items(value) if plan.kind == "container" else []

    def ids(self) -> set[int]:
        """Return the identities of what it holds, including what dead or weak entries point to."""
        items = (_pointed_at(o) for held in self.held for o in self.items_of(held.value))
        return {id(o) for o in items if id(type(o)) not in INERT}

    def points(self) -> bool:
        """Return True if it holds nothing but weak references."""
        items = [o for held in self.held for o in islice(self.items_of(held.value), 50)]
        return bool(items) and all(derives(type(o), ref) for o in items)

    def watch(self) -> Watch:
        """Return a watch on the lengths of the containers, even if they are replaced."""
        chosen = _watched(self.held)
        private = self.head.anchor if self.head.label[:1] in ("{", "(") else None
        if self.one.slot.key == AT_EXIT:
            lengths = [atexit._ncallbacks]
        elif self.one.column == "count":
            raised = Raised(held.value for held in (*self.heads, *self._tops))
            if raised:
                return Watch([raised.times], self.owner, told=lambda: raised.place)
            lengths = [changes_in(held, self.head) for held in self.heads[:MAX_WATCHED]]
        else:
            lengths = [length_in(held, self.one.slot, self.one.column) for held in chosen]
        return Watch(lengths, self.owner, private=private)

    @property
    def nested(self) -> bool:
        """True if what grows is not the named container, but something that it holds."""
        slot, head = self.one.slot, self.head
        if self.stored is not None:
            return False
        return slot.index != head.index and self.one.column != "count" and not slot.named

    def name_in_program(self) -> tuple[str, str] | None:
        """Return the module and the name by which the program has what leads here."""
        at: Slot | None = self._above or self.one.slot
        while at is not None:
            module = module_of(at.anchor) if at.named and at.anchor else None
            if module is not None and rank_of_module(module) == 0:
                return module, last_name(at.label)
            at = at.entered or at.parent
        return None

    def definition(self) -> types.CodeType | None:
        """Return the code of the cached function, for a `functools` cache."""
        for held in (*self.heads, *self.held):
            if type(held.value) is LruWrapper:
                inner = dict.get(_cache_names(held.value), "__wrapped__")
                if type(inner) is types.FunctionType:
                    return inner.__code__
        return None

    def held_by_c(self) -> types.CodeType | None:
        """Return the code of the function that only C code holds."""
        if HELD_BY_C not in (self.head.label, self.one.slot.way[0]):
            return None
        for held in self.held:
            for one in (held.value, held.holder):
                function = one.__func__ if type(one) is types.MethodType else one
                if type(function) is types.FunctionType:
                    return function.__code__
        return None

    def cap_at(self, place: Place) -> tuple[int | None, bool]:
        """Return the limit that the feeding code shows for what it feeds, under any name."""
        return self._numbered(caps_at(place))

    @property
    def fills(self) -> bool:
        """True if the object or its feeding code shows a limit that was not reached."""
        cap, capped = self._cap
        return below(self.one.size, cap, capped=capped)

    @cached_property
    def _cap(self) -> tuple[int | None, bool]:
        """Return the limit that the object or its feeding code shows, and whether there is one."""
        filled = self.one.column == "count" and self.one.slot.label == ITEM
        shown = room(self.held) if filled else shown_limit(self.held, self.heads)
        if shown is not None:
            return shown, True
        module = module_of(self.defined_in)
        if not module:
            return None, False
        kind = self.defined_in[len(module) + 1 :].partition(".")[0]
        return self._numbered(caps(module, last_name(self.owner), of=kind or None))

    def _numbered(self, limits: list[ast.expr]) -> tuple[int | None, bool]:
        if not limits:
            return None, False
        holder = self.heads[0].holder if self.heads else None
        known = read_numbers(limits, holder, module_of(self.defined_in))
        return (max(known) * max(1, len(self.held)) if known else None), True


def head_of(one: Candidate) -> Slot:
    """Return the slot whose name stands for a candidate."""
    return one.slot.head() if one.column != "count" else chain_head(one.slot)


def outer_head(head: Slot) -> Slot | None:
    """Return the next slot above that the program named, None if there is none."""
    above = head.parent.head() if head.parent is not None else None
    if above is None or above.standard or not above.named or is_placeholder(above.label):
        return None
    return above


def chain_top(slot: Slot) -> Slot:
    """Return the slot of the objects that the links of a chain hang from, named or not."""
    first = _first_link(slot)
    return first.parent or first


def _first_link(slot: Slot) -> Slot:
    at = slot
    while at.parent and (at.parent.anchor, at.parent.label) == (slot.anchor, slot.label):
        at = at.parent
    return at


def chain_head(slot: Slot) -> Slot:
    """Return the named slot that the links of a chain hang from."""
    at = _first_link(slot)
    if at.entered is not None:
        return at.entered.head()
    return (at.parent or at).head()


def _hook_name(held: list[Held]) -> str:
    """Return the newest function in the longest list of hooks, preferably the program's."""
    names: list[str] = []
    newest = list(reversed(held))
    newest.sort(key=lambda one: -length(one.value))
    for one in newest:
        inner = tuple(list.__iter__(one.value)) if type(one.value) is list else ()
        if type(one.value) is dict:
            inner = tuple(dict.values(one.value))
        for value in (one.value, *reversed(inner)):
            names += filter(None, (name_of_called(value),))
    others = (name for name in names if not is_standard(name) and not own_module(name))
    return next(others, "".join(names[:1]))


def look_closer(slots: Slots, found: list[Candidate], *, own: Iterable[Any] = ()) -> list[Close]:
    """Walk once more and keep the objects of these candidates; merge those of one owner."""
    wanted = [one.slot for one in found] + [head_of(one) for one in found]
    wanted += [outer for slot in wanted if (outer := outer_head(slot)) is not None]
    wanted += [chain_top(one.slot) for one in found if one.column == "count"]
    walk = survey(slots, own=own, capture=frozenset(slot.index for slot in wanted))
    close = [Close(one, lambda slot: walk.captured.get(slot.index, [])) for one in found]
    moved = [one for one in close if one.shared]
    groups = [one.held for one in moved]
    places = find_above(slots, groups, own) if moved else []
    for one, above in zip(moved, places, strict=True):
        if above is not None:
            one.move(above)
    return close


def _watched(held: list[Held]) -> list[Held]:
    """Choose some of many containers: the fullest, and every n-th of the others."""
    if len(held) <= MAX_WATCHED:
        return held
    order = sorted(held, key=lambda one: -length(one.value))
    rest = order[MAX_WATCHED // 2 :]
    return order[: MAX_WATCHED // 2] + rest[:: 1 + len(rest) // (MAX_WATCHED // 2)]


def merge(close: list[Close]) -> list[tuple[Close, tuple[str, ...]]]:
    """Put what only echoes another below it: same owner, same items, or same pace in a library.

    What holds objects comes before what only points at them; a group ranks as its first one.
    """
    kept: list[tuple[Close, list[str], list[int]]] = []
    for number, one in sorted(enumerate(close), key=lambda pair: _strength(pair[1])):
        ids = one.ids()
        for other, echoes, numbers in kept:
            if one.owner == other.owner or _echoes(one, ids, other):
                numbers.append(number)
                if one.owner != other.owner:
                    echoes.append(one.owner)
                break
        else:
            kept.append((one, [], [number]))
    kept.sort(key=lambda group: (_strength(group[0]) == LAST, min(group[2])))
    return [(one, tuple(dict.fromkeys(echoes))) for one, echoes, _ in kept]


LAST = 3


def _strength(one: Close) -> int:
    """Order what holds before weak references, and the program's before the library's."""
    library = is_standard(one.owner) or is_placeholder(one.owner)
    return (2 if library else 0) + one.points()


def _pointed_at(obj: Any) -> Any:
    return ref.__call__(obj) if derives(type(obj), ref) else obj


def _echoes(one: Close, ids: set[int], other: Close) -> bool:
    mine, theirs = one.one.trend.rate, other.one.trend.rate
    same_pace = abs(mine - theirs) <= 0.05 * max(mine, theirs)
    if same_pace and (is_standard(one.owner) or one.head.label == HELD_BY_C):
        return one.fills or not other.fills  # what keeps growing does not echo what will be full
    return bool(ids) and len(ids & other.ids()) > len(ids) / 2
