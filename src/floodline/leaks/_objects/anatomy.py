"""Inspects an object without running a line of its code.

Only `type()`, the slots of builtin types and `gc.get_referents` are used: a class may lie about its
length, its class and its attributes, so it is not asked.
"""

from __future__ import annotations

import _thread
import functools
import io
import struct
import sys
import types
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any

mro_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
names_of_type: Callable[[type], Any] = type.__dict__["__dict__"].__get__
names_of_module: Callable[[types.ModuleType], dict[str, Any]] = (
    type.__dict__["__dict__"].__get__(types.ModuleType)["__dict__"].__get__
)
basic_size: Callable[[type], int] = type.__dict__["__basicsize__"].__get__
module_of_type: Callable[[type], object] = type.__dict__["__module__"].__get__
_qualname: Callable[[type], object] = type.__dict__["__qualname__"].__get__

LruWrapper = type(functools.lru_cache(lambda: None))

TEXT = (str, bytes, bytearray, array, io.BytesIO, io.StringIO)
# they hold nothing that a program could make grow
INERT = frozenset(
    id(kind)
    for kind in (
        *(int, float, complex, bool, type(None), type(...), type(NotImplemented), range, slice),
        *(types.CodeType, types.WrapperDescriptorType, types.MethodDescriptorType),
        *(types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType),
    )
)


def _array_bytes(obj: Any) -> int:
    size: int = _itemsize(obj)
    return size * array.__len__(obj)


def _position(tell: Callable[[Any], int]) -> Callable[[Any], int]:
    """Return a function that reads how far a buffer was written; a closed one holds nothing."""

    def position(obj: Any) -> int:
        try:
            return tell(obj)
        except ValueError:
            return 0

    return position


_itemsize: Callable[[Any], int] = vars(array)["itemsize"].__get__
_LENGTHS: tuple[tuple[type, Callable[[Any], int]], ...] = (
    (dict, dict.__len__),
    (list, list.__len__),
    (tuple, tuple.__len__),
    (set, set.__len__),
    (frozenset, frozenset.__len__),
    (deque, deque.__len__),
    (str, str.__len__),
    (bytes, bytes.__len__),
    (bytearray, bytearray.__len__),
    (array, _array_bytes),
    (io.BytesIO, _position(io.BytesIO.tell)),
    (io.StringIO, _position(io.StringIO.tell)),
)
_ITEMS: dict[type, Callable[[Any], Any]] = {
    list: list.__iter__,
    tuple: tuple.__iter__,
    set: set.__iter__,
    frozenset: frozenset.__iter__,
    deque: deque.__iter__,
}
SIZES: dict[type, Any] = {base: base.__sizeof__ for base, _ in _LENGTHS}


def label_of(kind: type) -> str:
    """Return `module.Class` as its class statement has it."""
    try:
        module, name = module_of_type(kind), _qualname(kind)
    except AttributeError:  # a class that removed its own `__module__`
        return "?"
    name = name if type(name) is str else "?"
    return f"{module}.{name}" if type(module) is str and module != "builtins" else name


def derives(kind: type, base: type) -> bool:
    """Return True if a class has another among its bases, without asking its metaclass."""
    return any(one is base for one in mro_of(kind))


def is_standard(label: str) -> bool:
    """Return True if a dotted name starts in the standard library or the interpreter."""
    first = label.split(".", 1)[0]
    return first in sys.stdlib_module_names or (
        "." not in label and isinstance(__builtins__, dict) and first in __builtins__
    )


class Anatomy:
    """What one type is made of: its kind, how to count and list it, and its named attributes."""

    __slots__ = (
        *("base", "dict_of", "extra", "free", "hidden", "kind", "label", "length", "local"),
        "slots",
    )

    def __init__(self, kind: type) -> None:
        mro = mro_of(kind)
        bases = set(map(id, mro))  # a metaclass may define `==`
        self.label = label_of(kind)
        self.local = id(_thread._local) in bases
        self.length = next((count for base, count in _LENGTHS if id(base) in bases), None)
        self.base = next((base for base, _ in _LENGTHS if id(base) in bases), None)
        self.kind = _kind_of(kind, bases, self.base)
        # state in C that only the collector sees; a container's is its items
        self.hidden = self.base is None and any(
            base is not object and not _made_in_python(base) for base in mro
        )
        # a namespace: its attributes are those of whoever made it
        self.free = self.kind == "instance" and not _is_heap(kind)
        self.extra = _extra(mro) if self.kind in ("instance", "opaque") else None
        self.dict_of: Callable[[Any], Any] | None = None
        self.slots: list[tuple[str, Callable[[Any], Any]]] = []
        if self.kind in ("instance", "container", "text", "module"):
            self._find_attributes(mro)

    def _find_attributes(self, mro: tuple[type, ...]) -> None:
        for base in mro:
            for name, value in list(names_of_type(base).items()):
                if name == "__dict__" and type(value) in _DESCRIPTORS:
                    self.dict_of = value.__get__
                elif type(value) is types.MemberDescriptorType and _is_heap(base):
                    self.slots.append((name, value.__get__))

    def items(self, obj: Any) -> list[Any]:
        """Return what a container holds; for a dict, its values."""
        for _ in range(3):
            try:
                if self.base is dict:
                    return list(dict.values(obj))
                return list(_ITEMS[self.base](obj)) if self.base in _ITEMS else []
            except RuntimeError:  # another thread changed it meanwhile
                continue
        return []


def _extra(mro: tuple[type, ...]) -> Callable[[Any], int] | None:
    """Return a function that reads the extra memory of a C type's object, if it reports any."""
    for base in mro:
        size = names_of_type(base).get("__sizeof__")
        if size is not None:
            if type(size) is not types.MethodDescriptorType or base is object:
                return None
            fixed = basic_size(mro[0])
            return lambda obj: max(0, size(obj) - fixed)
    return None


def _is_heap(kind: type) -> bool:
    flags: int = type.__dict__["__flags__"].__get__(kind)
    return bool(flags & (1 << 9))


def _made_in_python(kind: type) -> bool:
    """Return True if a class adds nothing to its base but slots, a dict and weak references."""
    if not _is_heap(kind):
        return False
    base: type = type.__dict__["__base__"].__get__(kind)
    names = names_of_type(kind)
    slots = sum(type(value) is types.MemberDescriptorType for value in names.values())
    own = slots + ("__dict__" in names) + ("__weakref__" in names)
    return basic_size(kind) - basic_size(base) <= own * struct.calcsize("P")


_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_KINDS: tuple[tuple[type, str], ...] = (
    (type, "type"),
    (types.ModuleType, "module"),
    (types.FunctionType, "function"),
    (LruWrapper, "cache"),
    (types.FrameType, "frame"),
    (types.GeneratorType, "suspended"),
    (types.CoroutineType, "suspended"),
    (types.AsyncGeneratorType, "suspended"),
)


def _kind_of(kind: type, bases: set[int], base: type | None) -> str:
    if base is not None:
        return "text" if base in TEXT else "container"
    for known, name in _KINDS:
        if id(known) in bases:
            return name
    # a type in C that lets its objects have any attributes, and does nothing else
    free = type(names_of_type(kind).get("__dict__")) is types.MemberDescriptorType
    return "instance" if free or _is_heap(kind) else "opaque"


def unwrapped(value: Any) -> Any:
    """Return the function inside a static method or class method, else the value itself."""
    return value.__func__ if type(value) is staticmethod or type(value) is classmethod else value


def size_of(obj: Any, base: type | None) -> int:
    """Return the bytes of one object alone, by the builtin that defines its memory layout."""
    size: int = SIZES[base](obj) if base is not None else basic_size(type(obj))
    return size
