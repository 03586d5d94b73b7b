"""Finds code that creates context variables at run time: each stays in its context forever."""

from __future__ import annotations

import ast
import contextvars
import sys
import types
from collections.abc import Iterator

from floodline.leaks._heap.slots import Slot
from floodline.leaks._heap.walk import Walk
from floodline.leaks._objects.anatomy import derives, is_standard
from floodline.leaks._objects.frames import own_module
from floodline.leaks._source.definitions import tree_of

PREFIX = "contextvars."
_MAKER = contextvars.ContextVar.__name__
Scope = tuple[str, ...]
_SCOPES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_variables(walk: Walk, context: contextvars.Context) -> None:
    """Count the variables of a context that nothing else leads to, by name."""
    for variable in list(contextvars.Context.keys(context)):
        if id(variable) not in walk.seen:
            walk.seen.add(id(variable))
            walk.lengthen(walk.slots.root(PREFIX + variable.name), 1)


def kind_of(slot: Slot) -> str:
    """Return what a slot counts for which there is no object to inspect."""
    return _MAKER if slot.parent is None and slot.label.startswith(PREFIX) else ""


def maker_of(variable: str) -> tuple[str, str] | None:
    """Return the owner to which a function assigns new variables of a name, and its home."""
    for module, found in list(sys.modules.items()):
        if not derives(type(found), types.ModuleType) or is_standard(module) or own_module(module):
            continue
        tree = tree_of(module, _MAKER)
        for scope, target, value in _assignments(tree, ()) if tree else ():
            if scope and _makes(value, variable):
                return _owner(module, scope, target)
    return None


def _assignments(node: ast.AST, scope: Scope) -> Iterator[tuple[Scope, ast.expr, ast.expr]]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Assign):
            yield scope, inner.targets[0], inner.value
        elif isinstance(inner, ast.AnnAssign) and inner.value is not None:
            yield scope, inner.target, inner.value
        name = (inner.name,) if isinstance(inner, _SCOPES) else ()
        yield from _assignments(inner, scope + name)


def _makes(value: ast.expr, variable: str) -> bool:
    if not isinstance(value, ast.Call) or not value.args:
        return False
    called = getattr(value.func, "attr", getattr(value.func, "id", None))
    first = value.args[0]
    return called == _MAKER and isinstance(first, ast.Constant) and first.value == variable


def _owner(module: str, scope: Scope, target: ast.expr) -> tuple[str, str]:
    while isinstance(target, ast.Subscript):
        target = target.value
    home = ".".join((module, *scope))
    if isinstance(target, ast.Attribute):
        made = ".".join((module, *scope[:-1]))
        return f"{made}.{target.attr}", made
    return f"{home}(){target.id if isinstance(target, ast.Name) else ''}", home
