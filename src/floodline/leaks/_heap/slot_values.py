"""Reads what is in a place now: its value, its length, how often it was replaced."""

from __future__ import annotations

import contextvars
import gc
import types
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from floodline.leaks._heap.owner_names import isinstance_of_type
from floodline.leaks._heap.slot_lookup import thread_dicts
from floodline.leaks._heap.slots import Slot
from floodline.leaks._heap.walk import Held
from floodline.leaks._objects.anatomy import (
    Anatomy,
    LruWrapper,
    names_of_module,
    names_of_type,
    unwrapped,
)
from floodline.leaks._objects.frames import frame_of, frames_of, read_local
from floodline.leaks._objects.outline import Outline

_FAST: dict[int, Callable[[Any], int]] = {
    id(kind): kind.__len__ for kind in (dict, list, set, tuple, deque, str, bytes, bytearray)
}


def length(value: Any) -> int:
    """Return the length of a container, a text or a cache, 0 for anything else."""
    fast = _FAST.get(id(type(value)))
    if fast is not None:
        return fast(value)
    if type(value) is LruWrapper:
        cached: int = LruWrapper.cache_info(value).currsize
        return cached
    plan = Anatomy(type(value))
    measure = plan.length or plan.extra
    return measure(value) if measure else 0


def names_in(value: Any) -> Mapping[Any, Any] | None:
    """Return the attributes of an object without a length; no `__dict__` is created."""
    plan = Outline(type(value))
    if plan.kind == "module":
        return names_of_module(value)
    if plan.kind == "type":
        found: Mapping[Any, Any] = names_of_type(value)
        return found
    return plan.rest(value, [])[0] if plan.kind == "instance" and plan.dict_of else None


def length_in(held: Held, slot: Slot, column: str) -> Callable[[], int]:
    """Return a function that reads the length of what is in that place now."""
    plan = Anatomy(type(held.value))
    if column != "length" or plan.length is not None or plan.kind == "cache":
        now = value_in(held, slot)
        return lambda: length(now())
    value, names = held.value, _namespaces(held.value)
    if _keeps_more(plan):
        return lambda: len(gc.get_referents(value)) + sum(map(len, names))
    return lambda: sum(map(len, names))


def changes_in(held: Held, slot: Slot) -> Callable[[], int]:
    """Return a function that counts how often the head of a chain was replaced.

    What C code keeps below the head has no name, so everything the head refers to is counted.
    """
    now = value_in(held, slot)
    state: list[Any] = [id(held.value), 0, *_inside(held.value)]

    def count() -> int:
        value = now()
        if id(value) != state[0]:
            state[:] = [id(value), state[1] + 1, *_inside(value)]
        before = state[2]
        return int(state[1] + (len(gc.get_referents(value)) - before if state[3] else 0))

    return count


def _inside(value: Any) -> tuple[int, bool]:
    """Return how many objects C code keeps in a value, and whether it keeps any."""
    more = _keeps_more(Anatomy(type(value)))
    return (len(gc.get_referents(value)) if more else 0), more


def _keeps_more(plan: Anatomy) -> bool:
    return plan.kind == "opaque" or plan.hidden


def value_in(held: Held, slot: Slot) -> Callable[[], Any]:
    """Return a function that reads what is in that place now, even after a replacement."""
    holder, value, name = held.holder, held.value, slot.label[1:]
    if type(holder) is contextvars.ContextVar:
        return lambda: contextvars.ContextVar.get(holder, value)
    if slot.label[0] == "{" and type(holder) is types.FunctionType:
        return _in_cell(holder, name[:-1], value)
    if slot.label.startswith("()"):
        return _in_frame(holder, slot, value)
    if slot.label[0] == ".":
        for names in _namespaces(holder):
            if unwrapped(names.get(name)) is value:
                return lambda names=names: unwrapped(names.get(name))  # type: ignore[misc]  # bound now
        for known, get in Anatomy(type(holder)).slots:
            if known == name:
                return lambda get=get: get(holder)  # type: ignore[misc]  # bound now
    return lambda: value


def _in_cell(function: Any, name: str, value: Any) -> Callable[[], Any]:
    pairs = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    for free, cell in pairs:
        if free == name and any(one is value for one in gc.get_referents(cell)):
            return lambda cell=cell: next(iter(gc.get_referents(cell)), None)  # type: ignore[misc]  # bound now
    return lambda: value


def _in_frame(holder: Any, slot: Slot, value: Any) -> Callable[[], Any]:
    """Read a variable of a running or suspended frame; one that ended keeps its last value."""
    name, frame = slot.label[2:], frame_of(holder)
    frames = frames_of(slot.anchor) if frame is None else [frame]
    for at in frames:
        if read_local(at, name) is value:
            return lambda at=at: read_local(at, name)  # type: ignore[misc]  # bound now
    return lambda: value


def _namespaces(holder: Any) -> list[Any]:
    if holder is None:
        return []
    if isinstance_of_type(holder):
        return [names_of_type(holder)]
    plan = Anatomy(type(holder))
    if plan.kind == "module":
        return [names_of_module(holder)]
    if plan.local:
        return list(thread_dicts(holder))
    names = plan.dict_of(holder) if plan.dict_of else None
    return [] if names is None else [names]
