"""The walk in slices: between slices it references no object of the program, only places."""

from __future__ import annotations

import sys
import types
from collections import deque
from collections.abc import Callable, Container
from typing import Any

from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import ITEM, NOWHERE, Slots
from floodline.leaks._heap.walk import PLAIN
from floodline.leaks._live.readings.tracks import Row
from floodline.leaks._live.walk.long_chains import MOST_LINKS, count_behind, count_links
from floodline.leaks._live.walk.outline_walk import (
    OTHERS,
    Anchors,
    OutlineWalk,
    definitions_in,
    is_dull,
    is_small,
    label_in_module,
    numbers_in,
    shared_part,
)
from floodline.leaks._live.walk.still_objects import is_still
from floodline.leaks._live.walk.walk_queue import GONE, NONE, Entries, Finder
from floodline.leaks._objects.anatomy import (
    INERT,
    LruWrapper,
    derives,
    module_of_type,
    names_of_module,
)
from floodline.leaks._objects.identity_set import Seen
from floodline.leaks._objects.items import edges, part
from floodline.leaks._objects.outline import Outline, Outlines
from floodline.leaks._objects.territory import Territory

CHUNK = 48
SMALL = 32  # items of a container that is inspected at once
NESTED = 8  # steps taken at once below a waiting object
DIVE = 2_000  # objects visited at once where none can be found again
AT_ONCE = 200  # objects visited at once below a waiting object
MAX_WAITING = 50_000
REBASE = 64  # this many steps down, an object is found again by a weak reference
_ANCHORED = frozenset(("type", "function", "suspended"))  # these allow weak references
_ENTERED = frozenset(("container", "instance"))
_SHORT_TEXTS = frozenset((id(str), id(bytes)))


class SlicedWalk(OutlineWalk):
    """One walk, advanced for as long as it may run; `done` when nothing is waiting.

    Whatever has a path made only of names comes first, nearest first; then what containers hold,
    the program's own before the library's. Small things below an item are inspected at once.
    Classes and functions of libraries that the program leads to are put aside until `last()`.
    """

    def __init__(
        self,
        slots: Slots,
        outlines: Outlines,
        anchors: Anchors,
        *,
        inherited: Container[int] | None = None,
        territory: Territory | None = None,
    ) -> None:
        super().__init__(slots, outlines, anchors, territory)
        self._inherited = inherited
        self._aside: list[int] | None = []  # None once their turn has come
        self.in_libraries = False  # True once the program itself has been walked
        self._starred, self._kids = slots.starred, slots.kids
        self.containers: list[int] = []
        self.cut = 0
        self._entries = Entries()
        self._finder = Finder(self._entries, slots, Places(outlines, anchors), outlines)
        self._names: deque[int] = deque()
        self._stack: list[int] = []
        self._deep: list[int] = []
        self._path: list[int | tuple[Any, int, int]] = []  # entries, created when needed
        self._step = -1
        self._allowed = self._passing = 0
        self._diving: list[tuple[Any, int]] | None = None

    @property
    def done(self) -> bool:
        """True once nothing is waiting."""
        return not (self._names or self._stack or self._deep)

    def last(self) -> bool:
        """Take up what was put aside; return False if there is nothing."""
        aside, self._aside = self._aside, None
        self._names.extend(aside or ())
        return bool(aside)

    def root(self, obj: Any, label: str) -> None:
        """Begin at an object with a name of its own, by which a module is found again."""
        self.push(obj, self.slots.root(label))

    def advance(self, due: Callable[[], bool]) -> None:
        """Inspect what is waiting until `due` returns True, then drop every reference."""
        try:
            while not self.done and not due():
                self._look(self._next())
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Drop every reference to objects of the program."""
        self._finder.close()
        self._holder = None

    def row(self, index: int) -> Row:
        """Return the figures of a slot, zeros if it was not met."""
        if index >= len(self.count):
            return (0, 0, 0, 0)
        return (self.count[index], self.length[index], self.text[index], self.bytes[index])

    def forget(self) -> None:
        """Keep only the figures."""
        self.seen = Seen()
        self._entries = Entries()
        self._finder.forget()
        self._variables.clear()
        self._expand.clear()  # its own bound methods: a cycle that only a collection would free

    def _next(self) -> int:
        if self._names:
            return self._names.popleft()
        if not self._stack:
            # taken from the end: the program's own containers first, so that their names win
            of, library = self._entries.slot, self.slots.library
            self._deep.sort(key=lambda entry: not library[of[entry]])
            self._stack, self._deep = self._deep, []
        return self._stack.pop()

    def _look(self, entry: int) -> None:
        self._path.append(entry)
        obj = self._finder.open(entry)
        if obj is not GONE:
            self._step, self._allowed = -1, self.objects + AT_ONCE
            plan, slot = self._outlines.of(type(obj)), self._entries.slot[entry]
            try:
                self._expand[plan.kind](obj, slot, plan)  # type: ignore[arg-type]  # an outline answers like an anatomy
            except RuntimeError:  # a dict that another thread or a finalizer changed meanwhile
                self.cut += 1
        while self._path:
            self._leave()

    def _leave(self) -> None:
        last = self._path.pop()
        if type(last) is int:
            self._entries.drop(last)

    def push(self, obj: Any, slot: int) -> None:
        """Count an object in a slot, once per walk, and inspect it now or later."""
        kind = type(obj)
        plan = self._outlines.by_id.get(id(kind)) or self._outlines.of(kind)
        if plan.skipped or (plan.kind == "module" and self._is_root_itself(obj, slot)):
            return
        if not self.seen.mark(id(obj)):
            return
        if self._inherited is not None and id(obj) in self._inherited:
            return
        if slot >= len(self.count):
            self._widen(slot)
        self.objects += 1
        self.count[slot] += 1
        self.bytes[slot] += plan.size(obj) if plan.size is not None else plan.fixed
        if plan.grows and self.count[slot] == 1 and self._is_watched(slot):
            self.containers.append(slot)
        if plan.kind == "text":
            self._text(obj, slot, plan)
            return
        if plan.length is not None:
            self.length[slot] += plan.length(obj)
        elif plan.grows:
            self._without_length(obj, slot, plan)
        if slot == OTHERS and self._aside is None and self._is_passed(obj, plan.kind):
            return
        starred = self._starred[slot]
        if starred and plan.kind in _ENTERED and 0 < len(self._path) < NESTED:
            self._at_once(obj, slot, plan)
        elif starred and plan.may_link and self._is_link(kind):
            self._dive(obj, slot)
        else:
            self._later(obj, slot, plan)

    def _skips(self, value: Any, label: str) -> bool:
        if super()._skips(value, label) or value is sys.modules:
            return True
        # a library has thousands of them; one that grows is met by a later walk
        return (self._aside is None and is_small(value)) or self._is_still(value)

    def _is_still(self, value: Any) -> bool:
        kind = type(value)
        if not self.in_libraries or kind is types.FunctionType or derives(kind, type):
            return False  # what is defined is named after itself, if it holds something
        return is_still(value, self._outlines, self.seen)

    def _is_root_itself(self, module: Any, slot: int) -> bool:
        """Return True if a module that something leads to is walked under its own name anyway."""
        if self.slots.parents[slot] == NOWHERE:
            return False
        name = dict.get(names_of_module(module), "__name__")
        return type(name) is str and dict.get(sys.modules, name) is module

    def _is_passed(self, obj: Any, kind: str) -> bool:
        """Pass through a class or function of a library that only leads to others; True if so."""
        if kind not in ("type", "function") or self._passing >= NESTED:
            return False
        inner = definitions_in(obj, kind)
        if inner is None:
            return False
        self._passing += 1
        for one in inner:
            if not is_dull(one):
                self.push(one, self._definition(one))
        self._passing -= 1
        return True

    def _text(self, obj: Any, slot: int, plan: Outline) -> None:
        self.text[slot] += plan.length(obj)  # type: ignore[misc]  # every text has one
        if plan.dict_of:
            self._later(obj, slot, plan)

    def _without_length(self, obj: Any, slot: int, plan: Outline) -> None:
        """Count the entries of a cache, or the extra memory of an object of a C type."""
        if plan.kind == "cache":
            self.length[slot] += LruWrapper.cache_info(obj).currsize
        else:
            self.text[slot] += plan.extra(obj)  # type: ignore[misc]  # what grows otherwise has it

    def _is_link(self, kind: type) -> bool:
        """Return True if it is below one of its own type: a chain is visited in one go."""
        last = self._path[-1] if self._path else None
        return self._diving is None and type(last) is tuple and type(last[0]) is kind

    def _at_once(self, obj: Any, slot: int, plan: Outline) -> None:
        if plan.kind == "container":
            size = plan.length(obj)  # type: ignore[misc]  # every container has one
            if size > SMALL or not self._in_items():
                self._later(obj, slot, plan)
                return
        if self.objects > self._allowed:
            self._later(obj, slot, plan)
            return
        step = self._step
        self._path.append((obj, slot, step))
        self._step = -1
        if plan.kind == "instance":
            self._instance(obj, slot, plan)
        else:
            if plan.dict_of or plan.slots:
                self._attributes(obj, slot, plan)
            self._numbered(part(obj, plan.base, 0, SMALL), slot, 0)
        self._leave()
        self._step = step

    def _in_items(self) -> bool:
        """Return True if this is already below an item: names come first."""
        first = self._path[0]
        assert type(first) is int
        entries = self._entries
        return bool(self._starred[entries.slot[first]]) or entries.cursor[first] > 0

    def _later(self, obj: Any, slot: int, plan: Outline | None = None) -> None:
        if self._diving is not None:
            self._diving.append((obj, slot))
            return
        plan = plan or self._outlines.of(type(obj))
        waiting = len(self._stack) + len(self._names) + len(self._deep)
        if waiting + len(self._aside or ()) >= MAX_WAITING:
            self.cut += 1
            return
        parent, entries = self._parent(), self._entries
        entry = entries.add(obj, slot, parent, self._step)
        far = self._is_far(entry, obj, parent, plan)
        if far and not entries.rebase(entry, label_in_module(obj, plan.kind)):
            entries.drop(entry)
            self._dive(obj, slot)
            return
        self._finder.opened.append(entry)
        starred = self._starred[slot]
        if self._aside is not None and parent != NONE and self._is_foreign(obj, plan.kind):
            self._aside.append(entry)
        elif starred and self._path and self._in_items():
            self._stack.append(entry)
        elif starred or plan.kind in ("container", "cache"):
            self._deep.append(entry)
        else:
            self._names.append(entry)

    def _is_far(self, entry: int, obj: Any, parent: int, plan: Outline) -> bool:
        """Return True if an object should not be looked for from what led to it."""
        if self._entries.depth[entry] >= REBASE or plan.kind in _ANCHORED:
            return True
        if parent == NONE:
            return plan.kind != "module"
        # a chain that gets new heads is lost if its links are looked for from the head
        linked = plan.kind == "instance" and not plan.may_link
        return linked and type(self._entries.obj[parent]) is type(obj)

    def _is_foreign(self, obj: Any, kind: str) -> bool:
        """Return True for a class, function or module of a library: it comes after the program."""
        if kind == "type":
            return self._territory.is_library(module_of_type(obj))
        if kind == "function":
            return self._territory.is_library(dict.get(obj.__globals__, "__name__"))
        return kind == "module"

    def _dive(self, obj: Any, slot: int) -> None:
        """Follow at once, as far as time allows, what is too deep to be found again."""
        path, self._path = self._path, []
        todo = self._diving = [(obj, slot)]
        until = self.objects + DIVE
        try:
            while todo and self.objects < until:
                obj, slot = todo.pop()
                plan = self._outlines.of(type(obj))
                if plan.kind == "container":
                    self._numbered(part(obj, plan.base, 0, SMALL), slot, 0)
                else:
                    self._expand[plan.kind](obj, slot, plan)  # type: ignore[arg-type]  # as above
            self._count_on(todo)
        finally:
            self._path, self._diving = path, None

    def _count_on(self, todo: list[tuple[Any, int]]) -> None:
        """Count at least the further links of what was left out of a dive."""
        left = MOST_LINKS
        for obj, slot in todo:
            plan = self._outlines.of(type(obj))
            count = count_links if plan.may_link else count_behind
            links, whole = count(obj, self._outlines, self.seen, left) if left > 0 else (0, False)
            left -= max(1, links)
            self.objects += links
            self.count[slot] += links
            self.bytes[slot] += links * plan.fixed
            self.cut += not whole

    def _parent(self) -> int:
        """Return the entry of what is being inspected; those on the way to it get theirs too."""
        parent = NONE
        for at, step in enumerate(self._path):
            if type(step) is tuple:
                obj, slot, position = step
                step = self._entries.add(obj, slot, parent, position)
                self._finder.opened.append(step)
                self._path[at] = step
            parent = step  # type: ignore[assignment]  # it is an entry now
        return parent

    def _container(self, obj: Any, slot: int, plan: Any) -> None:
        (entry, *_), entries, size = self._path, self._entries, plan.length(obj)
        assert type(entry) is int
        begin = entries.cursor[entry]
        if not begin:
            entries.edge[entry] = self._edge(slot, size)
            if plan.dict_of or plan.slots:
                self._attributes(obj, slot, plan)
        behind = 1.0  # items for each that is looked at
        if edge := entries.edge[entry]:
            behind, size = size / (2 * edge), 2 * edge
            items = edges(obj, plan.base, edge)[begin : begin + CHUNK]
        else:
            items = part(obj, plan.base, begin, begin + CHUNK)
        entries.cursor[entry] = begin + CHUNK
        if begin + CHUNK < size:
            self._stack.append(entries.keep(entry))
        self._numbered(items, slot, begin, behind)

    def _numbered(self, items: list[Any], slot: int, begin: int, behind: float = 1.0) -> None:
        kinds = {id(type(item)) for item in items}
        if kinds <= INERT:
            self._amend(slot, behind * numbers_in(items))
            return
        child = self._kids.get(slot << 32)  # number 0 stands for an item
        if child is None:
            if kinds - INERT <= _SHORT_TEXTS and all(map(is_dull, items)):
                size = sum(map(sys.getsizeof, items))
                self.bytes[slot] += size  # they need no slot of their own
                self._amend(slot, -shared_part(items) * size)
                return
            child = self.slots.child(slot, "", ITEM)
        if kinds <= PLAIN:
            self._texts(items, child)
            return
        for step, item in enumerate(items, begin):
            self._step = step
            self.push(item, child)
        self._step = -1

    def _is_watched(self, slot: int) -> bool:
        """Return True if its length is worth reading between walks."""
        if self.slots.labels[slot].startswith(".__"):
            return False
        return not (self._starred[slot] and self.slots.library[slot])
