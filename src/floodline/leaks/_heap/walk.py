"""One walk over everything reachable: the count, length and size of each slot."""

from __future__ import annotations

import contextvars
import gc
import types
from array import array
from collections import deque
from typing import Any, TypeAlias

from floodline.leaks._heap.slots import ANCHOR, ITEM, KEYS, NOWHERE, Slots
from floodline.leaks._objects.anatomy import (
    INERT,
    Anatomy,
    LruWrapper,
    derives,
    is_standard,
    label_of,
    mro_of,
    names_of_module,
    names_of_type,
    size_of,
    unwrapped,
)
from floodline.leaks._objects.frames import code_label, read_locals

PLAIN = INERT | {id(str), id(bytes), id(bytearray)}
_DULL = frozenset(("__builtins__", "__loader__", "__spec__", "__doc__", "__module__"))
MAX_NAMES = 200
MANY_NAMES = 64  # no source has this many attributes: they are keys
MAX_CAPTURED = 4096


class Held:
    """One object in a captured slot, with its holder; kept while suspects are examined."""

    __slots__ = ("holder", "value")

    def __init__(self, holder: Any, value: Any) -> None:
        self.holder, self.value = holder, value


Figures: TypeAlias = "list[int] | array[int]"


class Walk:
    """Counts per slot, by slot index; strong references are dropped with the walk."""

    def __init__(self, slots: Slots, *, capture: frozenset[int] = frozenset()) -> None:
        self.slots = slots
        self.count: Figures = []
        self.length: Figures = []
        self.text: Figures = []
        self.bytes: Figures = []
        self.objects = 0
        self.seen: set[int] = set()
        self.captured: dict[int, list[Held]] = {}
        self._capture = capture
        self._plans: dict[int, Anatomy] = {}
        self._kinds: list[type] = []  # keeps the ids in _plans valid
        self.queue: deque[tuple[Any, int]] = deque()
        self._variables: dict[int, int] = {}
        self._holder: Any = None
        self._expand = {
            "container": self._container,
            "text": self._instance,
            "instance": self._instance,
            "module": self._module,
            "type": self._type,
            "function": self._function,
            "cache": self._cache,
            "suspended": self._suspended,
            "frame": self._opaque,
            "opaque": self._opaque,
        }

    def push(self, obj: Any, slot: int) -> None:
        """Count an object in a slot, once per walk, and inspect it later."""
        if id(type(obj)) in INERT or id(obj) in self.seen:
            return
        self.seen.add(id(obj))
        plan = self._plan(type(obj))
        if slot >= len(self.count):
            self._widen(slot)
        self.objects += 1
        self.count[slot] += 1
        self.bytes[slot] += size_of(obj, plan.base)
        if plan.kind == "text":
            self.text[slot] += plan.length(obj) if plan.length else 0
        elif plan.length is not None:
            self.length[slot] += plan.length(obj)
        elif plan.kind == "cache":
            self.length[slot] += LruWrapper.cache_info(obj).currsize
        elif plan.extra is not None:
            self.text[slot] += plan.extra(obj)
        if slot in self._capture:
            self._keep(obj, slot)
        if plan.kind != "text" or plan.dict_of:
            self._later(obj, slot)

    def _later(self, obj: Any, slot: int) -> None:
        self.queue.append((obj, slot))

    def lengthen(self, slot: int, length: int) -> None:
        """Add to the length of a slot what no object accounts for."""
        if slot >= len(self.length):
            self._widen(slot)
        self.length[slot] += length

    def _count_names(self, slot: int, count: int) -> None:
        """Add attributes to the length of their object: a single one, or a few with many."""
        if not self.slots.starred[slot] or count > MANY_NAMES:
            self.lengthen(slot, count)

    def _count_referents(self, obj: Any, slot: int) -> None:
        """Add what C code keeps in one object to its length: nothing more of it can be seen."""
        if not self.slots.starred[slot]:
            self.lengthen(slot, len(gc.get_referents(obj)))

    def run(self) -> None:
        """Inspect everything that was pushed, nearest first."""
        queue, plans, expand = self.queue, self._plans, self._expand
        while queue:
            obj, slot = queue.popleft()
            plan = plans[id(type(obj))]
            self._holder = obj
            expand[plan.kind](obj, slot, plan)
        self._holder = None

    def forget(self) -> None:
        """Keep only the figures."""
        self.seen = set()
        self._expand.clear()  # its own bound methods: a cycle that only a collection would free

    def _keep(self, obj: Any, slot: int) -> None:
        kept = self.captured.setdefault(slot, [])
        if len(kept) < MAX_CAPTURED:
            kept.append(Held(self._holder, obj))

    def _plan(self, kind: type) -> Anatomy:
        plan = self._plans.get(id(kind))
        if plan is None:
            plan = self._plans[id(kind)] = Anatomy(kind)
            self._kinds.append(kind)
        return plan

    def _container(self, obj: Any, slot: int, plan: Anatomy) -> None:
        self._items(plan.items(obj), slot, ITEM)
        if plan.base is dict:
            self._items(list(dict.keys(obj)), slot, KEYS)
        if plan.dict_of or plan.slots:
            self._attributes(obj, slot, plan)

    def _items(self, items: list[Any], slot: int, label: str) -> None:
        if not items:
            return
        kinds = set(map(id, map(type, items)))
        if kinds <= INERT:
            return
        child = self.slots.child(slot, "", label)
        if kinds <= PLAIN and not self._capture:
            self._texts(items, child)
            return
        for item in items:
            self.push(item, child)

    def _texts(self, items: list[Any], slot: int) -> None:
        texts = [item for item in items if id(type(item)) not in INERT]
        if slot >= len(self.count):
            self._widen(slot)
        self.objects += len(texts)
        self.count[slot] += len(texts)
        self.text[slot] += sum(map(len, texts))
        self.bytes[slot] += sum(size_of(text, type(text)) for text in texts)

    def _widen(self, index: int) -> None:
        for column in (self.count, self.length, self.text, self.bytes):
            column.extend([0] * (index + 1 - len(column)))

    def _instance(self, obj: Any, slot: int, plan: Anatomy) -> None:
        if plan.local:
            self._thread_local(obj, slot)
            return
        self._attributes(obj, slot, plan)
        if plan.hidden:
            self._opaque(obj, slot, plan)

    def _thread_local(self, obj: Any, slot: int) -> None:
        """Name the attributes in all threads; reading `__dict__` would create one in this."""
        anchor = self._belongs_to(slot, self._plan(type(obj)))
        for threads in gc.get_referents(obj):
            if type(threads) is dict:
                self.seen.add(id(threads))
                for names in list(dict.values(threads)):
                    if type(names) is dict:
                        self.namespace(names, slot, anchor)

    def _belongs_to(self, slot: int, plan: Anatomy) -> str:
        """Return what attributes belong to: the class or, if it is anybody's, the place."""
        place = self.slots[slot]
        anybodys = plan.free or (plan.local and is_standard(plan.label))
        return (place.owner or place.path) if anybodys else plan.label

    def _attributes(self, obj: Any, slot: int, plan: Anatomy) -> None:
        for name, get in plan.slots:
            try:
                value = get(obj)
            except AttributeError:  # never assigned
                continue
            self._named(value, slot, plan.label, "." + name)
        names = plan.dict_of(obj) if plan.dict_of else None
        if names is not None:
            self._count_names(slot, dict.__len__(names))
            self.namespace(names, slot, self._belongs_to(slot, plan))

    def namespace(self, names: Any, slot: int, anchor: str, *, entered: int = NOWHERE) -> None:
        """Count what a dict of attributes holds, each under its name."""
        self.seen.add(id(names))
        if dict.__len__(names) > MAX_NAMES:
            self.seen.discard(id(names))
            self.push(names, self.slots.child(slot, anchor, ".__dict__"))
            return
        for name, value in list(dict.items(names)):
            label = f".{name}" if type(name) is str else ".?"
            self._named(value, slot, anchor, label, entered=entered)

    def _named(
        self, value: Any, slot: int, anchor: str, label: str, *, entered: int = NOWHERE
    ) -> None:
        if id(type(value)) not in INERT and id(value) not in self.seen:
            child = self.slots.child(slot, anchor, label)
            if entered != NOWHERE:
                self.slots.enter(child, entered)
            self.push(value, child)

    def _module(self, obj: Any, slot: int, _: Anatomy) -> None:
        names = names_of_module(obj)
        self.seen.add(id(names))
        label = self.slots.key(slot)
        self._count_names(slot, dict.__len__(names))
        for name, value in list(dict.items(names)):
            if name in _DULL or derives(type(value), types.ModuleType) or type(name) is not str:
                continue
            if type(value) is contextvars.ContextVar:
                self._variables[id(value)] = self.slots.child(slot, label, "." + name)
            self._named(value, slot, label, "." + name)

    def _type(self, obj: Any, slot: int, _: Anatomy) -> None:
        label = label_of(obj)
        names = names_of_type(obj)
        self._count_names(slot, len(names))
        for name, value in list(names.items()):
            if name not in _DULL:
                self._named(unwrapped(value), ANCHOR, label, "." + name)
        for base in mro_of(obj):
            self.push(base, slot)

    def _function(self, obj: Any, slot: int, _: Anatomy) -> None:
        code = obj.__code__
        label = code_label(code, obj.__globals__)
        for name, cell in zip(code.co_freevars, obj.__closure__ or (), strict=False):
            for value in gc.get_referents(cell):
                self._named(value, ANCHOR, label, "{" + name + "}", entered=slot)
            self.seen.add(id(cell))
        self.seen.update((id(obj.__closure__), id(obj.__defaults__), id(obj.__kwdefaults__)))
        defaults = obj.__defaults__ or ()
        # its names are asked for only if needed: Python keeps the tuple that it makes for that
        taken = code.co_varnames[: code.co_argcount] if defaults else ()
        for name, value in zip(taken[len(taken) - len(defaults) :], defaults, strict=False):
            self._named(value, ANCHOR, label, f"({name}=)", entered=slot)
        for name, value in (obj.__kwdefaults__ or {}).items():
            self._named(value, ANCHOR, label, f"({name}=)", entered=slot)
        self._function_names(obj, label, slot)

    def _function_names(self, obj: Any, label: str, slot: int) -> None:
        # reading `__dict__` would create it
        passed = (id(obj.__globals__), id(obj.__kwdefaults__))
        for value in gc.get_referents(obj):
            if type(value) is dict and id(value) not in passed and id(value) not in self.seen:
                self.namespace(value, ANCHOR, label, entered=slot)

    def _cache(self, obj: Any, slot: int, _: Anatomy) -> None:
        child = self.slots.child(slot, "", ITEM)
        for value in gc.get_referents(obj):
            if type(value) is dict and id(value) not in self.seen:
                self.seen.add(id(value))
                for held in gc.get_referents(value):
                    self.push(held, child)
            elif type(value) is types.FunctionType:
                self.push(value, slot)
            else:
                self.push(value, child)

    def _suspended(self, obj: Any, slot: int, plan: Anatomy) -> None:
        for name in ("gi_frame", "cr_frame", "ag_frame"):
            frame = getattr(obj, name, None)
            if frame is not None:
                self.frame(frame, slot)
        self._opaque(obj, slot, plan)

    def frame(self, frame: types.FrameType, entered: int = NOWHERE) -> None:
        """Name what the locals of a frame hold; `entered` is the slot of its generator."""
        label = code_label(frame.f_code, frame.f_globals)
        for name, value in read_locals(frame).items():
            self._named(value, ANCHOR, label, f"(){name}", entered=entered)

    def context(self, context: contextvars.Context) -> None:
        """Name what the variables of a context hold."""
        for variable, value in list(contextvars.Context.items(context)):
            root = self._variables.get(id(variable), NOWHERE)
            if root == NOWHERE:
                root = self.slots.root(f"contextvars.{variable.name}")
            self._holder = variable
            self.push(value, self.slots.child(root, "", "→value"))

    def _opaque(self, obj: Any, slot: int, _: Anatomy) -> None:
        if type(obj) is contextvars.Context:
            self.context(obj)
            return
        self._count_referents(obj, slot)
        for value in gc.get_referents(obj):
            if id(type(value)) in INERT or id(value) in self.seen:
                continue
            name = self._plan(type(value)).label.rpartition(".")[2]
            self.push(value, self.slots.child(slot, "", "→" + name))
