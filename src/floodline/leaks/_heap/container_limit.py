"""Finds the limit of a container: its own, its holder's, or one that code mentions."""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from floodline._python.bounds import LIBRARY_WORDS
from floodline._python.numbers import number
from floodline.leaks._heap.slot_values import length
from floodline.leaks._heap.walk import Held
from floodline.leaks._objects.anatomy import (
    LruWrapper,
    derives,
    mro_of,
    names_of_module,
    names_of_type,
)
from floodline.leaks._objects.outline import MISSING, Outline

_maxlen: Callable[[Any], int | None] = vars(deque)["maxlen"].__get__


def shown_limit(held: list[Held], heads: list[Held]) -> int | None:
    """Return the limit that an object shows: of a deque, a cache, or an attribute next to it."""
    together = _together(held)
    if together is not None:
        return together
    for value in (one.value for one in heads):
        limit = _own_limit(value)
        if limit is not None:
            return limit * (len(held) if derives(type(value), deque) else 1)
    holders = {id(one.holder): one.holder for one in held}
    return _beside(next(iter(holders.values()))) if len(holders) == 1 else None


def _together(held: list[Held]) -> int | None:
    """Return how much all containers of a slot may hold, unless most is in unlimited ones."""
    most = free = total = 0
    for value in (one.value for one in held):
        limit, size = _own_limit(value), length(value)
        total += size
        if limit is None:
            free += size
        else:
            most += limit
    return most + free if most and 2 * free <= total else None


def _own_limit(value: Any) -> int | None:
    if type(value) is LruWrapper:
        return _maxsize(value)
    return _maxlen(value) if derives(type(value), deque) else None


def _maxsize(cache: Any) -> int | None:
    most: int | None = LruWrapper.cache_info(cache).maxsize
    return most


def _beside(holder: Any) -> int | None:
    """Return an attribute named as libraries name a limit: `maxsize`, `_max_len`."""
    plan = Outline(type(holder))
    if plan.kind != "instance":
        return None
    for name in (*plan.names, *(slot for _, slot in plan.slots)):
        if name.rpartition("__")[2].replace("_", "").lower() in LIBRARY_WORDS:
            value = plan.attribute(holder, name)
            if type(value) is int and value > 0:
                return value
    return None


def room(held: list[Held]) -> int | None:
    """Return the capacity of the one container that holds all the items."""
    holders = {id(one.holder): one.holder for one in held}
    return length(next(iter(holders.values()))) or None if len(holders) == 1 else None


def read_numbers(limits: Iterable[ast.expr], holder: Any, module: str | None) -> list[int]:
    """Return the limits that are written as numbers, or as names with a known value."""
    found = (number(limit, lambda node: _known(node, holder, module)) for limit in limits)
    return [each for each in found if each is not None]


def _known(limit: ast.expr, holder: Any, module: str | None) -> int | None:
    """Return the current number of a name or an attribute."""
    value: Any = None
    if isinstance(limit, ast.Attribute):
        value = _attribute(holder, limit.attr)
        if value is None:
            spaces = map(names_of_type, mro_of(type(holder)))
            value = next((names[limit.attr] for names in spaces if limit.attr in names), None)
    elif isinstance(limit, ast.Name) and module:
        value = dict.get(names_of_module(sys.modules[module]), limit.id)
    return value if type(value) is int else None


def _attribute(holder: Any, name: str) -> Any:
    """Return an attribute of an instance or a module without creating a `__dict__`."""
    plan = Outline(type(holder))
    if plan.kind == "module":
        return dict.get(names_of_module(holder), name)
    value = plan.attribute(holder, name)
    return None if value is MISSING else value
