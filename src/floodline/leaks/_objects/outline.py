"""What a type is made of, remembered only by names, so that a dropped class can be freed."""

from __future__ import annotations

import dis
import gc
import io
import sys
import types
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from floodline.leaks._objects.anatomy import (
    INERT,
    SIZES,
    Anatomy,
    basic_size,
    derives,
    mro_of,
    names_of_module,
    names_of_type,
)
from floodline.leaks._objects.frames import own_module
from floodline.leaks._objects.territory import is_program_file, program_modules

_weak_offset: Callable[[type], int] = type.__dict__["__weakrefoffset__"].__get__
MISSING: Any = type("Missing", (), {})()
MAX_NAMES = 120
MAX_STRANGERS = 15  # values per walk whose attribute is looked for in vain
MAX_USED = 2_000
_Module = types.ModuleType
_MUTABLE = frozenset(map(id, (dict, list, set, deque, bytearray, array, io.BytesIO, io.StringIO)))
MAX_OUTLINES = 20_000
_STORE, _EXTEND = dis.opmap["STORE_ATTR"], dis.opmap["EXTENDED_ARG"]


class Outline:
    """The anatomy of a type without a reference to it: its slots and attributes by name."""

    __slots__ = (
        *("base", "complete", "dict_of", "extra", "fixed", "free", "generic", "grows", "hidden"),
        *("kind", "label", "length", "local", "may_link", "names", "own", "ref", "size", "skipped"),
        "slots",
    )

    def __init__(
        self, kind: type, died: Callable[[weakref.KeyedRef[int, type]], object] | None = None
    ) -> None:
        plan = Anatomy(kind)
        self.ref = weakref.KeyedRef(kind, died, id(kind)) if died else weakref.ref(kind)
        self.base, self.kind = plan.base, plan.kind
        self.label, self.length, self.extra = plan.label, plan.length, plan.extra
        self.local, self.hidden, self.free = plan.local, plan.hidden, plan.free
        self.dict_of = plan.dict_of is not None
        self.own = own_module(plan.label)
        self.skipped = self.own or id(kind) in INERT
        self.size = SIZES[plan.base] if plan.base is not None else None
        self.fixed = 0 if plan.base is not None else basic_size(kind)
        self.grows = plan.kind == "cache" or id(plan.base) in _MUTABLE or plan.extra is not None
        # links of a chain without weak references cannot be found again far from a root
        self.may_link = plan.kind == "instance" and not _weak_offset(kind)
        self.complete = 0  # consecutive objects of this type whose attributes all had a known name
        mro = mro_of(kind)
        self.slots = tuple(_slots(mro)) if plan.slots else ()
        # a type that computes its attributes itself is skipped
        self.generic = not any(
            name in names_of_type(base)
            for base in mro
            if base is not object
            for name in ("__getattr__", "__getattribute__")
        )
        stored = _stored_names(mro) if self.dict_of and plan.kind != "module" else ()
        self.names = {name: f"{self.label}.{name}" for name in stored}

    def attribute(self, obj: Any, name: str) -> Any:
        """Return an attribute of the object itself without creating a `__dict__`."""
        if self.slots:
            mro = mro_of(type(obj))
            for index, slot in self.slots:
                if slot == name:
                    return _slot(mro, index, name, obj)
        if not self.dict_of or not _is_plain(mro_of(type(obj)), name):
            return MISSING
        return self._get(obj, name)

    def _get(self, obj: Any, name: str) -> Any:
        if self.generic:
            return getattr(obj, name, MISSING)
        try:
            return object.__getattribute__(obj, name)
        except AttributeError:
            return MISSING

    def attributes(self, obj: Any) -> list[tuple[str, Any]]:
        """Return the attributes that hold something, by the label of the type and their own."""
        found: list[tuple[str, Any]] = []
        if self.slots:
            mro = mro_of(type(obj))
            for index, name in self.slots:
                value = _slot(mro, index, name, obj)
                if id(type(value)) not in INERT and value is not MISSING:
                    found.append((f"{self.label}.{name}", value))
        if self.generic:
            for name, key in self.names.items():
                value = getattr(obj, name, MISSING)
                if id(type(value)) not in INERT and value is not MISSING:
                    found.append((key, value))
        else:
            for name, key in self.names.items():
                value = self._get(obj, name)
                if id(type(value)) not in INERT and value is not MISSING:
                    found.append((key, value))
        return found

    def rest(self, obj: Any, named: list[tuple[str, Any]]) -> tuple[Any, list[Any]]:
        """Return the `__dict__` if it already exists, and what has no known name."""
        known = {id(value) for _, value in named}
        names, rest = None, []
        for value in gc.get_referents(obj):
            if id(type(value)) in INERT or id(value) in known or value is type(obj):
                continue
            if names is None and type(value) is dict and self._is_namespace(obj, value):
                names = value
            else:
                rest.append(value)
        return names, rest

    def _is_namespace(self, obj: Any, names: Any) -> bool:
        if not self.dict_of:
            return False
        try:
            name = next(iter(names), None)
        except RuntimeError:  # another thread changed it meanwhile
            return False
        if type(name) is not str or not _is_plain(mro_of(type(obj)), name):
            return False
        value = dict.get(names, name, MISSING)
        return value is not MISSING and self._get(obj, name) is value


class Outlines:
    """The outlines of all types met, each for as long as its type lives."""

    def __init__(self) -> None:
        self.used: frozenset[str] = frozenset()  # names that the code of the program mentions
        self._modules = self._strangers = 0
        self.by_id: dict[int, Outline] = {}
        drop = self.by_id.pop
        self._died = lambda ref: drop(ref.key, None)

    def of(self, kind: type) -> Outline:
        """Return the outline of a type."""
        known = self.by_id.get(id(kind))
        if known is None:
            if len(self.by_id) >= MAX_OUTLINES:
                self.by_id.clear()
            known = self.by_id[id(kind)] = Outline(kind, self._died)
        return known

    def given(self, plan: Outline, obj: Any, value: Any) -> str | None:
        """Return the attribute by which an object holds a value, if the program mentions it.

        The class does not: other code gave it to the object. It is known from then on.
        """
        if not plan.dict_of or self._strangers >= MAX_STRANGERS or len(plan.names) >= MAX_NAMES:
            return None
        mro = mro_of(type(obj))
        for name in self.used:
            if name not in plan.names and _is_plain(mro, name) and plan._get(obj, name) is value:
                plan.names[name] = f"{plan.label}.{name}"
                return name
        self._strangers += 1
        return None

    def refresh(self) -> None:
        """Look again, in some objects of each type, for attributes that no code mentions."""
        if len(sys.modules) != self._modules:
            self._modules, self.used = len(sys.modules), _names_in_use()
        for known in list(self.by_id.values()):
            known.complete = 0
        self._strangers = 0


def _slots(mro: tuple[type, ...]) -> Iterator[tuple[int, str]]:
    for index, base in enumerate(mro):
        for name, value in list(names_of_type(base).items()):
            if type(value) is types.MemberDescriptorType and type(name) is str:
                flags: int = type.__dict__["__flags__"].__get__(base)
                if flags & (1 << 9):
                    yield index, name


def _slot(mro: tuple[type, ...], index: int, name: str, obj: Any) -> Any:
    descriptor = names_of_type(mro[index]).get(name) if index < len(mro) else None
    if type(descriptor) is not types.MemberDescriptorType:
        return MISSING
    try:
        return descriptor.__get__(obj)
    except (AttributeError, TypeError):  # never assigned
        return MISSING


def _is_plain(mro: tuple[type, ...], name: str) -> bool:
    """Return True if no descriptor of the class handles this name."""
    for base in mro:
        names = names_of_type(base)
        if name in names:
            kinds = mro_of(type(names[name]))
            return not any("__get__" in names_of_type(one) for one in kinds)
    return True


def _stored_names(mro: tuple[type, ...]) -> list[str]:
    """Return the attributes that the code and the annotations of a class mention."""
    found: dict[str, None] = {}
    for base in mro:
        names = names_of_type(base)
        for value in list(names.values()):
            for code in _codes(value):
                found.update(dict.fromkeys(_stores(code)))
        noted = names.get("__annotations__")
        if type(noted) is dict:
            found.update(dict.fromkeys(name for name in list(noted) if type(name) is str))
    usual = [name for name in found if not (name[:2] == "__" == name[-2:])]
    return [name for name in usual[: 4 * MAX_NAMES] if _is_plain(mro, name)][:MAX_NAMES]


def _codes(value: Any) -> Iterator[types.CodeType]:
    if type(value) is staticmethod or type(value) is classmethod:
        value = value.__func__
    if type(value) is property:
        value = value.fget
    if type(value) is types.FunctionType:
        todo = [value.__code__]
        while todo:
            code = todo.pop()
            yield code
            todo += [one for one in code.co_consts if type(one) is types.CodeType]


def _names_in_use() -> frozenset[str]:
    """Return the names that the functions of the program mention, the first of very many."""
    found: set[str] = set()
    for module in map(sys.modules.get, program_modules()):
        for value in list(names_of_module(module).values()) if type(module) is _Module else ():
            held = names_of_type(value).values() if derives(type(value), type) else (value,)
            for code in (code for one in list(held) for code in _codes(one)):
                if is_program_file(code.co_filename):
                    found.update(code.co_names)
            if len(found) >= MAX_USED:
                return frozenset(islice(found, MAX_USED))
    return frozenset(found)


def _stores(code: types.CodeType) -> Iterator[str]:
    extended, words = 0, code.co_code
    for at in range(0, len(words), 2):
        argument = words[at + 1] | extended
        extended = argument << 8 if words[at] == _EXTEND else 0
        if words[at] == _STORE and argument < len(code.co_names):
            yield code.co_names[argument]
