"""Looks on purpose for what holds objects that multiply, while no name explains them.

Some of the newest are asked for their holders, and these for theirs, up to one that can be found
again: a function, a class, an object that allows weak references. Each question is one pass over
the heap in C, which takes less time than a full collection and runs none of the program's code.
From then on the container is read like any other that is watched.
"""

from __future__ import annotations

import _thread
import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from copy import copy
from itertools import chain, compress, islice
from typing import Any

from floodline.leaks._heap.slot_lookup import label_of_function
from floodline.leaks._heap.slots import ITEM, Slots
from floodline.leaks._live.readings.listed_objects import listing
from floodline.leaks._live.readings.rare_steps import RareSteps
from floodline.leaks._live.walk.outline_walk import MAX_ANCHORS, Anchors
from floodline.leaks._objects.anatomy import derives, label_of, names_of_module, names_of_type
from floodline.leaks._objects.outline import Outlines

REST, LATER = 60.0, 300.0  # seconds until the next search, and once there were some
SOME = 6
MOST_PASSES = 6  # in one search
TAIL = 20_000  # of the newest objects, among which some are picked
PICKED, APART = 4, 50
LONG = 100  # items of a container that is worth a name
SURVIVED = 2  # the oldest generation
OURS = 3  # references to an object of a search: its list, a variable, an argument
FIND, LIST, ASK = 60e-9, 15e-9, 50e-9  # seconds per object, until they were measured
_PASSED = (types.FrameType, types.ModuleType, weakref.ref)


Identity = tuple[int, int]  # of an object and its type


class Met(list[Any]):
    """Objects that a search met; its own type, so that it is not taken for a holder."""


class HolderSearch:
    """Searches now and then; `watch` is called with the slot of what was found.

    It keeps no reference to what it met. A search that takes more than a rare step may is suspended
    in between: it finds what it has met so far again by its identity, or ends.
    """

    def __init__(
        self, slots: Slots, outlines: Outlines, anchors: Anchors, rare: RareSteps,
        watch: Callable[[int], object],
    ) -> None:  # fmt: skip
        self._slots, self._outlines, self._anchors = slots, outlines, anchors
        self._watch, self._rare, self._next = watch, rare, 0.0
        self._way: tuple[Identity, ...] = ()  # of one that is suspended, from the top
        self._asked = self._searches = 0
        self.passes = 0
        self.longest = 0.0  # seconds
        self.dead_end = ""  # where the last one ended, if at no name

    @property
    def told(self) -> str:
        """What was done, what it cost, and where it ended."""
        if not self.passes:
            return ""
        cost = f"{1000 * self.longest:.0f} ms at most"
        passes = f"{self.passes} pass{'es' if self.passes > 1 else ''}"
        told = f"looked for their holders in {passes} over the heap, {cost}"
        return f"{told}; some are in {self.dead_end}" if self.dead_end else told

    def work(self, now: float, kinds: frozenset[int], objects: int) -> None:
        """Look for a long container of objects of these types, if it is time to.

        `objects` is about how many there are in all.
        """
        if now < self._next or not kinds or not self._rare.allows("search", self._least(objects)):
            return
        met = Met()
        try:
            self._rare.take("search", lambda: self._advance(met, kinds, objects), objects)
        finally:
            if not self._way:
                self._searches += 1
                self._next = now + (REST if self._searches < SOME else LATER)
            let_go(met)

    def _least(self, objects: int) -> float:
        """Return the seconds that a step is likely to take at least."""
        first = ("find", FIND) if self._way else ("list", LIST)
        both = first, ("ask", ASK)
        return sum(self._rare.expected(kind, objects, each) for kind, each in both)

    def _advance(self, met: Met, kinds: frozenset[int], objects: int) -> None:
        """Begin a search or resume it, and go on for as long as a rare step may take."""
        timer, until = self._rare.timer, self._rare.longest("search", objects)
        until += timer()
        way = self._resumed(met, objects) if self._way else self._begun(met, kinds, objects)
        while way and self._asked < MOST_PASSES:
            way, ended = self._higher(way, met, objects)
            if ended:
                break
            if timer() + self._rare.expected("ask", objects, ASK) > until:
                self._way = tuple((id(one), id(type(one))) for one in way)
                return
        if way and self._is_long(way[-1]):
            self.dead_end = "" if self._root_of(way[0]) else self._describe(way)
            if not self.dead_end:
                self._name(way)

    def _begun(self, met: Met, kinds: frozenset[int], objects: int) -> Met:
        self._asked = 0
        met += self._rare.time("list", lambda: newest(kinds, objects), objects)
        return Met(met)

    def _resumed(self, met: Met, objects: int) -> Met:
        """Return the way so far, nothing if a part of it is gone."""
        way, self._way = self._way, ()
        met += self._rare.time("find", lambda: met_again(way), objects)
        found = {(id(one), id(type(one))): one for one in met}
        return Met(found[one] for one in way) if found.keys() >= set(way) else Met()

    def _higher(self, way: Met, met: Met, objects: int) -> tuple[Met, bool]:
        """Return the way from what holds its first, and True if it leads no further.

        It begins at the longest holder of the samples, or of that if it is short.
        """
        climbs = self._is_long(way[-1])
        above = self._holders(way[:1] if climbs else way, met, objects)
        if climbs:
            known = [one for one in above if self._root_of(one)]
            return Met((*(known or above)[:1], *way)), bool(known) or not above
        longest = Met(sorted(above, key=self._length)[-1:])
        return longest, not longest or (self._asked > 1 and not self._is_long(longest[0]))

    def _holders(self, objects: list[Any], met: Met, heap: int) -> Met:
        """Ask the collector, in one pass over the heap."""
        began = self._rare.timer()
        asked = tuple(objects)  # which holds them too
        found = self._rare.time("ask", lambda: Met(gc.get_referrers(*asked)), heap)
        self.longest = max(self.longest, self._rare.timer() - began)
        self.passes += 1
        self._asked += 1
        known = {*map(id, met), id(objects), id(asked)}
        found[:] = [one for one in found if id(one) not in known and self._is_theirs(one)]
        met += found
        return found

    def _is_theirs(self, one: Any) -> bool:
        if type(one) is Met or any(derives(type(one), kind) for kind in _PASSED):
            return False
        return not self._outlines.of(type(one)).own

    def _length(self, one: Any) -> int:
        plan = self._outlines.of(type(one))
        return plan.length(one) if plan.length is not None and plan.kind == "container" else 0

    def _is_long(self, one: Any) -> bool:
        return self._length(one) >= LONG

    def _root_of(self, one: Any) -> str:
        """Return the name of a root by which an object can be found again, nothing if none."""
        kind = self._outlines.of(type(one)).kind
        if kind == "function":
            return label_of_function(one)
        if kind == "type":
            return label_of(one)
        if kind == "container":
            return _module_of(one)
        try:
            weakref.ref(one)
        except TypeError:
            return ""
        return f"<{label_of(type(one))}>" if kind == "instance" else ""

    def _describe(self, way: Met) -> str:
        """Say what was found where no name leads, or too many objects do."""
        found = f"a {label_of(type(way[-1]))} of {self._length(way[-1]):,} items"
        labels = "".join(label for _, label in self._steps(way))
        return f"{found}, <{label_of(type(way[0]))}>{labels}" if labels else found

    def _steps(self, way: Met) -> list[tuple[str, str]]:
        steps, at = [], 0
        while at < len(way) - 1:
            anchor, label, at = self._step(way, at)
            steps.append((anchor, label))
        return steps

    def _name(self, way: Met) -> None:
        """Make a slot for the container at the end of a way, and have it watched."""
        root = self._root_of(way[0])
        if type(way[0]) is not dict:
            known = self._anchors.setdefault(root, [])
            known[:] = [ref for ref in known if ref() is not way[0]][: MAX_ANCHORS - 1]
            known.append(weakref.ref(way[0]))
        self._watch(self._slots.along(root, self._steps(way)))

    def _step(self, way: Met, at: int) -> tuple[str, str, int]:
        """Return what a name belongs to, the name, and where on the way it leads."""
        below = {id(one): place for place, one in enumerate(way) if place > at}
        for anchor, label, value in self._names_in(way[at]):
            if id(value) in below:
                return anchor, label, below[id(value)]
        if self._outlines.of(type(way[at])).kind == "container":
            return "", ITEM, at + 1
        return "", "→" + label_of(type(way[at + 1])).rpartition(".")[2], at + 1

    def _names_in(self, one: Any) -> Iterator[tuple[str, str, Any]]:
        """Return the names by which something holds others, and what they belong to."""
        plan = self._outlines.of(type(one))
        if plan.kind == "function":
            label = label_of_function(one)
            for name, cell in zip(one.__code__.co_freevars, one.__closure__ or (), strict=False):
                for value in gc.get_referents(cell):
                    yield label, "{" + name + "}", value
        elif plan.kind == "type":
            for name, value in list(names_of_type(one).items()):
                yield label_of(one), f".{name}", value
        elif plan.kind == "container" and (module := _module_of(one)):
            for name, value in list(dict.items(one)):
                yield module, f".{name}", value
        elif plan.kind == "instance":
            named = plan.attributes(one)
            for key, value in named:
                yield plan.label, key.removeprefix(plan.label), value
            names, _ = plan.rest(one, named)
            for name, value in list(dict.items(names or {})):
                yield plan.label, f".{name}", value


def newest(kinds: frozenset[int], objects: int) -> Met:
    """Return some objects of these types that have survived, those added last first.

    After a full collection they are anywhere. So every n-th of the others is looked at too.
    """
    found, emptied = listing(SURVIVED)
    last, again = _backwards(found, objects), _backwards(copy(found), objects)
    wanted = compress(last, map(kinds.__contains__, map(id, map(type, again))))
    return Met(chain(islice(wanted, 0, PICKED * APART, APART), emptied))


def _backwards(found: Iterator[list[Any]], objects: int) -> Iterator[Any]:
    listed = chain.from_iterable(map(reversed, found))
    return chain(islice(listed, TAIL), islice(listed, None, None, 1 + objects // TAIL))


def met_again(way: tuple[Identity, ...]) -> Met:
    """Return the objects that have these identities now."""
    found, emptied = listing()
    ids, again = {one for one, _ in way}, chain.from_iterable(copy(found))
    those = compress(chain.from_iterable(found), map(ids.__contains__, map(id, again)))
    return Met(chain(those, emptied))


def let_go(met: Met) -> None:
    """Drop what was met; if nobody else holds some of it any more, on another thread."""
    if any(sys.getrefcount(one) <= OURS for one in met):
        _thread.start_new_thread(met.clear, ())


def _module_of(names: Any) -> str:
    """Return the module whose globals a dict is, nothing if it is another one."""
    name: Any = dict.get(names, "__name__") if type(names) is dict else None
    module: Any = dict.get(sys.modules, name) if type(name) is str else None
    if not derives(type(module), types.ModuleType) or names_of_module(module) is not names:
        return ""
    return str(name)
