"""Tells what a library keeps and never changes: constants, type variables, locks, patterns.

Large imports bring thousands of such objects. A slot for each would take most of the memory and of
the time that a watch has, and none of them can grow.
"""

from __future__ import annotations

import gc
from collections.abc import Container
from typing import Any

from floodline.leaks._heap.slot_lookup import by_name
from floodline.leaks._live.walk.outline_walk import is_dull
from floodline.leaks._objects.anatomy import label_of
from floodline.leaks._objects.outline import Outlines

MOST = 24  # objects below it
_MANAGED_DICT = 1 << 4  # of a type's flags: the dict of names comes last
_flags = type.__dict__["__flags__"].__get__
_FIXED = frozenset(map(id, (tuple, frozenset, str, bytes)))  # what is in them stays


def is_still(value: Any, outlines: Outlines, seen: Container[int]) -> bool:
    """Return True if nothing below an object can become longer; what was `seen` is left out.

    That is so until somebody gives it another attribute, which a later walk meets.
    """
    todo, met = [value], 0
    while todo:
        one = todo.pop()
        met += 1
        if met + len(todo) > MOST:
            return False
        if is_dull(one) or id(one) in seen:
            continue
        plan = outlines.of(type(one))
        if plan.kind == "type":
            if by_name(label_of(one)) is not one:
                return False
        elif plan.kind == "instance" and plan.dict_of:
            names, rest = plan.rest(one, [])
            todo += rest if names is None else [*rest, *dict.values(names)]
        elif _is_fixed(plan.kind, plan.base, grows=plan.grows or plan.local):
            todo += _below(one, has_names=plan.kind == "instance")
        elif plan.kind != "module":
            return False
    return True


def _below(one: Any, *, has_names: bool) -> list[Any]:
    """Return what an object refers to; a type variable of 3.12 keeps its names to itself."""
    held = [below for below in gc.get_referents(one) if below is not type(one)]
    if has_names and held and type(held[-1]) is dict and _flags(type(one)) & _MANAGED_DICT:
        held += dict.values(held.pop())
    return held


def _is_fixed(kind: str, base: type | None, *, grows: bool) -> bool:
    if grows or kind == "function":
        return False
    return id(base) in _FIXED or kind in ("instance", "opaque")
