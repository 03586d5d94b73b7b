"""Names what a class keeps in a dict and offers as attributes: `app.state.inbox`."""

from __future__ import annotations

import ast
from typing import Any

from floodline.leaks._heap.slot_values import length
from floodline.leaks._heap.walk import Held
from floodline.leaks._objects.anatomy import derives, mro_of, names_of_type
from floodline.leaks._objects.territory import program_modules
from floodline.leaks._source.definitions import tree_of

MOST_NAMES = 64  # a dict of more is data


def stored_attribute(
    heads: list[Held], held: list[Held], home: str | None
) -> tuple[str, str] | None:
    """Return a module of the program and the attribute by which it knows what grows.

    `home` is the module that leads there, `heads` are dicts in attributes, `held` what they hold. A
    key is a name only if the class of the holder looks up attributes itself and the source of the
    program has it as one: other keys are data, which is never shown.
    """
    if not heads or not held or not _looks_up(heads[0].holder):
        return None
    names = heads[0].value
    if not derives(type(names), dict) or not 0 < dict.__len__(names) <= MOST_NAMES:
        return None
    fullest = max(held, key=lambda one: length(one.value)).value
    for key, value in list(dict.items(names)):
        if value is fullest and type(key) is str and key.isidentifier():
            module = module_with(key, home)
            return None if module is None else (module, key)
    return None


def _looks_up(holder: Any) -> bool:
    return any("__getattr__" in names_of_type(base) for base in mro_of(type(holder)))


def module_with(name: str, home: str | None) -> str | None:
    """Return the first module of the program whose source has such an attribute."""
    for module in ([home] if home else []) + program_modules():
        tree = tree_of(module, name)
        nodes = ast.walk(tree) if tree is not None else iter(())
        if any(isinstance(node, ast.Attribute) and node.attr == name for node in nodes):
            return module
    return None
