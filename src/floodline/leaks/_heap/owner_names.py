"""Names that a developer can search for: the class or module that creates the container."""

from __future__ import annotations

import _thread
import ast
import re
import sys
import types
from typing import Any

from floodline.leaks._heap.context_variables import PREFIX, kind_of, maker_of
from floodline.leaks._heap.roots import THREAD_LOCAL
from floodline.leaks._heap.slots import Slot
from floodline.leaks._heap.walk import Held
from floodline.leaks._objects.anatomy import (
    derives,
    is_standard,
    label_of,
    mro_of,
    names_of_module,
)
from floodline.leaks._objects.frames import own_module
from floodline.leaks._source.definitions import class_assigns, file_of_module, module_assigns
from floodline.leaks._source.excerpt import tree_about


def owner_of(slot: Slot, held: list[Held]) -> tuple[str, str]:
    """Return the owner's name and that of the class, module or function that defines it."""
    if slot.parent is None:
        made = maker_of(slot.label.removeprefix(PREFIX)) if kind_of(slot) else None
        return made or (slot.label, slot.label)
    attr = slot.label[1:]
    if slot.anchor == THREAD_LOCAL:
        return _thread_local(attr)
    if slot.label[0] != ".":
        return slot.owner, slot.anchor
    holder = held[0].holder if held else None
    if derives(type(holder), types.ModuleType):
        module = _home(slot.anchor, attr, held[0].value)
        return f"{module}.{attr}", module
    kind: type = holder if isinstance_of_type(holder) else type(holder)  # type: ignore[assignment]  # a class, asked without its code
    if held and label_of(kind) == slot.anchor:
        anchor, attr = written(kind, attr)
        return f"{anchor}.{attr}", anchor
    return slot.owner, slot.anchor


def isinstance_of_type(obj: Any) -> bool:
    """Return True if an object is a class, whatever it claims to be."""
    return derives(type(obj), type)


def written(kind: type, attr: str) -> tuple[str, str]:
    """Return the class and the name of an attribute as the source writes them.

    What a class `Box` writes as `self.__rows` is stored as `_Box__rows`, which no source shows.
    """
    for base in mro_of(kind):
        label = label_of(base)
        mangled = f"_{label.rpartition('.')[2].lstrip('_')}__"
        if attr.startswith(mangled) and mangled != "___" and not attr.endswith("__"):
            return label, attr[len(mangled) - 2 :]
    return defining_class(kind, attr), attr


def defining_class(kind: type, attr: str) -> str:
    """Return the class of the mro whose source assigns the attribute, else the class itself."""
    for base in mro_of(kind):
        label = label_of(base)
        module = _module_above(label)
        if module and class_assigns(module, label[len(module) + 1 :], attr):
            return label
    return label_of(kind)


def module_of(name: str) -> str | None:
    """Return the imported module that a dotted name is, or is in."""
    return _module_above(f"{name}.")


def _module_above(label: str) -> str | None:
    """Return the longest imported module name that a dotted name is in."""
    parts = label.split(".")
    for end in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:end])
        if name in sys.modules:
            return name
    return None


def _home(module: str, name: str, value: Any) -> str:
    """Return the module that creates a global, out of all that have it under that name."""
    if module_assigns(module, name):
        return module
    for other, found in list(sys.modules.items()):
        if not derives(type(found), types.ModuleType) or own_module(other):
            continue
        if dict.get(names_of_module(found), name) is value and module_assigns(other, name):
            return other
    return module


def _thread_local(attr: str) -> tuple[str, str]:
    """Find the thread local whose attribute some code uses; its dict leads nowhere."""
    local = _thread._local
    for module, found in list(sys.modules.items()):
        if not derives(type(found), types.ModuleType) or is_standard(module):
            continue
        file = file_of_module(module)
        for name, value in list(dict.items(names_of_module(found))):
            if derives(type(value), local) and file and _uses(file, f"{name}.{attr}"):
                return f"{module}.{name}.{attr}", f"{module}.{name}"
    return f"threading.local.{attr}", "threading.local"


def _uses(file: str, expression: str) -> bool:
    tree = tree_about(file, expression.rpartition(".")[2])
    if tree is None:
        return False
    return any(
        isinstance(node, ast.Attribute) and ast.unparse(node).endswith(expression)
        for node in ast.walk(tree)
    )


def last_name(owner: str) -> str:
    """Return the word that source code uses for an owner's container."""
    return re.split(r"[.{(]", owner.rstrip("}=)"))[-1].lstrip(")")
