"""Finds again what a slot names, from its root down, without having kept a reference."""

from __future__ import annotations

import contextvars
import gc
import sys
import types
from collections.abc import Callable
from itertools import islice
from typing import Any

from floodline.leaks._heap.slots import KEYS, Slot
from floodline.leaks._heap.walk import Held
from floodline.leaks._objects.anatomy import (
    INERT,
    LruWrapper,
    derives,
    label_of,
    names_of_module,
    names_of_type,
    unwrapped,
)
from floodline.leaks._objects.frames import (
    READS_RUNNING,
    SEES_RUNNING,
    code_label,
    frame_of,
    frames_of,
    read_locals,
    variables_of,
)
from floodline.leaks._objects.items import some
from floodline.leaks._objects.outline import MISSING, Outlines

MOST_AT_A_STEP = 128
MOST_REFERENTS = 10_000
_HEADER = 8  # at most so many referents of a coroutine come before its variables


def suspended_locals(obj: Any) -> list[tuple[str, Any]]:
    """Return the variables of a suspended coroutine or generator, none for a running one.

    Before 3.13 the values are those that the collector sees, in the order of the names; if some
    are not assigned yet, values after them may get a neighbour's name.
    """
    code, waits = _state_of(obj)
    if code is None or not waits:
        return []
    if READS_RUNNING:  # pragma: no cover  # seen only there
        frame = frame_of(obj)
        return list(read_locals(frame).items()) if frame is not None else []
    held = gc.get_referents(obj)
    first = _after_header(held, code)
    names = (*code.co_varnames, *_own_cells(code), *code.co_freevars)
    return [(name, _inside(value)) for name, value in zip(names, held[first:], strict=False)]


def locals_of(obj: Any) -> list[tuple[str, Any]]:
    """Return the variables of a running frame, or of a suspended coroutine or generator."""
    if type(obj) is types.FrameType:
        return list(variables_of(obj).items()) if SEES_RUNNING else []
    return suspended_locals(obj)


def suspended_label(obj: Any) -> str:
    """Return the label of the root above the variables of a coroutine or generator."""
    code, _ = _state_of(obj)
    if code is None:
        return label_of(type(obj))
    for value in gc.get_referents(obj)[:_HEADER]:
        if type(value) is types.FunctionType and value.__code__ is code:
            return label_of_function(value)
    return code.co_qualname


def _after_header(held: list[Any], code: types.CodeType) -> int:
    found = [i for i, value in enumerate(held[:_HEADER]) if value is code]
    return found[-1] + 1 if found else len(held)


def _own_cells(code: types.CodeType) -> list[str]:
    return [name for name in code.co_cellvars if name not in code.co_varnames]


def _inside(value: Any) -> Any:
    if type(value) is not types.CellType:
        return value
    return next(iter(gc.get_referents(value)), None)


def _state_of(obj: Any) -> tuple[types.CodeType | None, bool]:
    """Return the code and whether it is suspended; reading the frame would create it."""
    kind = type(obj)
    if kind is types.GeneratorType:
        return obj.gi_code, obj.gi_suspended
    if kind is types.CoroutineType:
        return obj.cr_code, obj.cr_suspended
    if kind is types.AsyncGeneratorType:
        return obj.ag_code, not obj.ag_running
    return None, False


class Places:
    """The named roots, and the steps from an object to what one of its names holds."""

    def __init__(self, outlines: Outlines, anchors: dict[str, list[Callable[[], Any]]]) -> None:
        self._outlines, self._anchors = outlines, anchors
        self.met = 0  # objects on the way to what was asked for last

    def held(self, slot: Slot) -> list[Held]:
        """Return what is in a slot now, with its holders; only a part if there is a lot."""
        if slot.parent is None:
            return [Held(None, root) for root in self._roots(slot.label)]
        holders = self.values(slot.parent)
        if slot.parent.parent is None:
            holders += self._running(slot.parent.label, slot.label)
        pairs = (Held(one, value) for one in holders for value in self.take(one, slot.label))
        return list(islice(pairs, 2 * MOST_AT_A_STEP))

    def values(self, slot: Slot, *, most: int = MOST_AT_A_STEP, whole: bool = False) -> list[Any]:
        """Return what is in a slot now, each object once, at most so many.

        With `whole`, all of them or nothing.
        """
        root, *steps = slot.way
        found = self._roots(root)
        found += self._running(root, steps[0]) if steps else []
        self.met = 0
        for label in steps:
            holders, found = found, []
            for one in holders:
                taken = self.take(one, label, most)
                self.met += len(taken)
                found += taken
                if len(found) >= most:
                    found = _distinct(found)  # many may share what is below
                    if len(found) >= most:
                        break
            found = _distinct(found)
            if len(found) >= most and whole:
                return []
            del found[most:]
        return found

    def _roots(self, label: str) -> list[Any]:
        module = dict.get(sys.modules, label)
        if module is not None:
            return [module]
        known = [root for ref in self._anchors.get(label, ()) if (root := ref()) is not None]
        root = by_name(label)
        if root is not MISSING:
            known.append(root)
        return known

    def _running(self, label: str, step: str) -> list[Any]:
        """Return the frames of a function that runs, if the step is to one of its variables."""
        return list(frames_of(label)) if SEES_RUNNING and step.startswith("()") else []

    def take(self, holder: Any, label: str, most: int = MOST_AT_A_STEP) -> list[Any]:
        """Return what a step leads to: an attribute, a variable, items, referents of a type."""
        first, name = label[0], label[1:]
        if first == ".":
            return self._attribute(holder, name)
        if first == "[":
            return [] if label == KEYS else self._items(holder, most)
        if first == "{":
            return _cell(holder, name[:-1])
        if label.startswith("()"):
            return [value for local, value in locals_of(holder) if local == label[2:]]
        if first == "(":
            return _default(holder, name[:-2])
        return self._referents(holder, name)

    def _attribute(self, holder: Any, name: str) -> list[Any]:
        plan = self._outlines.of(type(holder))
        if name == "__dict__":
            names, _ = plan.rest(holder, []) if plan.base is None else (None, None)
            return [] if names is None else [names]
        if plan.kind == "module":
            value = dict.get(names_of_module(holder), name, MISSING)
        elif plan.kind == "type":
            value = unwrapped(names_of_type(holder).get(name, MISSING))
        elif plan.local:
            return [d[name] for d in thread_dicts(holder) if name in d]
        elif plan.kind in ("instance", "container", "text"):
            value = plan.attribute(holder, name)
            if value is MISSING:
                names, _ = plan.rest(holder, []) if plan.base is None else (None, None)
                value = dict.get(names, name, MISSING) if names is not None else MISSING
        else:
            found = [d[name] for d in own_dicts(holder) if name in d]
            value = found[0] if found else MISSING
        return [] if value is MISSING else [value]

    def _items(self, holder: Any, most: int) -> list[Any]:
        plan = self._outlines.of(type(holder))
        if plan.kind == "cache":
            return cached(holder)[:most]
        if plan.length is None or plan.kind != "container":
            return []
        items = some(holder, plan.base, plan.length(holder), most)
        return [item for item in items if id(type(item)) not in INERT]

    def _referents(self, holder: Any, name: str) -> list[Any]:
        if type(holder) is contextvars.Context:
            return list(contextvars.Context.values(holder))
        plan = self._outlines.of(type(holder))
        if plan.kind in ("container", "cache"):
            return []
        held = gc.get_referents(holder)[:MOST_REFERENTS]
        return [value for value in held if label_of(type(value)).rpartition(".")[2] == name]


def _distinct(found: list[Any]) -> list[Any]:
    return list({id(one): one for one in found}.values()) if len(found) > 1 else found


def by_name(label: str) -> Any:
    """Return the class or function that a module has under its own name, else `MISSING`."""
    name, module = label, None
    while name and module is None:
        name = name.rpartition(".")[0]
        module = dict.get(sys.modules, name or "builtins")
    if not derives(type(module), types.ModuleType):
        return MISSING
    names: Any = names_of_module(module)  # type: ignore[arg-type]  # a module, asked without its code
    *outer, last = label[len(name) + bool(name) :].split(".")
    for part in outer:
        inner = names.get(part)
        if not derives(type(inner), type):
            return MISSING
        names = names_of_type(inner)
    found = unwrapped(names.get(last, MISSING))
    return found.fget if type(found) is property else found


def cached(cache: Any) -> list[Any]:
    """Return what a `functools` cache holds, nothing if it has more than 10,000 results."""
    if LruWrapper.cache_info(cache).currsize > MOST_REFERENTS:
        return []
    held = gc.get_referents(cache)
    inner = [d for d in held if type(d) is dict and "__wrapped__" not in d]
    return [*(value for d in inner for value in gc.get_referents(d)), *held]


def is_function(anything: Any) -> bool:
    """Return True if it is exactly a plain function."""
    return type(anything) is types.FunctionType


def own_dicts(function: Any) -> list[dict[str, Any]]:
    """Return the dicts that a function owns: its attributes, its keyword defaults."""
    if not is_function(function):
        return []
    shared = id(function.__globals__), id(function.__builtins__)
    held = gc.get_referents(function)
    return [d for d in held if type(d) is dict and id(d) not in shared]


def thread_dicts(local: Any) -> list[dict[str, Any]]:
    """Return the attributes of a thread local, one dict per thread that has set any."""
    return [
        names
        for threads in gc.get_referents(local)
        if type(threads) is dict
        for names in list(dict.values(threads))
        if type(names) is dict
    ]


def _cell(function: Any, name: str) -> list[Any]:
    if type(function) is not types.FunctionType:
        return []
    pairs = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return [value for free, cell in pairs if free == name for value in gc.get_referents(cell)]


def _default(function: Any, name: str) -> list[Any]:
    if type(function) is not types.FunctionType:
        return []
    code, defaults = function.__code__, function.__defaults__ or ()
    taken = code.co_varnames[: code.co_argcount]
    pairs = dict(zip(taken[len(taken) - len(defaults) :], defaults, strict=False))
    pairs.update(function.__kwdefaults__ or {})
    return [pairs[name]] if name in pairs else []


def label_of_function(function: types.FunctionType) -> str:
    """Return the label of the root above a function's variables."""
    return code_label(function.__code__, function.__globals__)
