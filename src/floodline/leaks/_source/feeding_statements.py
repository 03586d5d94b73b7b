"""Finds the statements of a source file that feed a container."""

from __future__ import annotations

import ast

from floodline._python.mutations import GROWS_ANYTHING, SHRINKS_ANYTHING
from floodline._python.names import Function, functions, is_named, mentions
from floodline.leaks._source.definitions import file_of_module, tree_of
from floodline.leaks._source.place import Place


def feeding_place(module: str, name: str, *, home: str = "") -> Place | None:
    """Return the first line of a module that most clearly adds to what is called `name`.

    Lines of the function `home`, whose variable it may be, come first, and those of `__init__`
    last, because they create what others fill.
    """
    file, tree = file_of_module(module), tree_of(module, name)
    if file is None or tree is None:
        return None
    found = [
        (function.name == "__init__", function.name != home, strength, function, line)
        for function in functions(tree)
        for strength, line in feeding_lines(function, name)
    ]
    if not found:
        return None
    *_, function, line = min(found, key=lambda one: one[:3])
    return Place(file, line, function.name)


def feeding_lines(function: Function, name: str) -> list[tuple[int, int]]:
    """Return lines that may feed, each after a number: the lower, the clearer."""
    found = [
        (strength, getattr(node, "lineno", 0))
        for node in ast.walk(function)
        if (strength := _feeds(node, name)) is not None
    ]
    return sorted(found)


def _feeds(node: ast.AST, name: str) -> int | None:
    """Rate how clearly a piece of source adds: 0 it does, 1 it may, 2 it reads, 3 it replaces.

    A call made only for its effect may add to the object it is called on, or to an argument.
    """
    if isinstance(node, ast.Call):
        return _called_on(node, name)
    if isinstance(node, ast.AugAssign):
        return 0 if is_named(node.target, name) else None
    if isinstance(node, ast.Assign):
        named = [target for target in node.targets if is_named(target, name)]
        into = any(isinstance(target, ast.Subscript) for target in named)
        if named and (into or mentions(node.value, name)):
            return 0
        return 3 if named and isinstance(node.value, ast.Name) else None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return 1 if _may_feed(node.value, name) else None
    return 2 if isinstance(node, ast.Subscript) and is_named(node, name) else None


def _called_on(call: ast.Call, name: str) -> int | None:
    if isinstance(call.func, ast.Attribute):
        return 0 if call.func.attr in GROWS_ANYTHING and is_named(call.func.value, name) else None
    # keep what other readers of the same source have not read yet
    steps = isinstance(call.func, ast.Name) and call.func.id in ("next", "anext")
    return 1 if steps and call.args and is_named(call.args[0], name) else None


def _may_feed(call: ast.Call, name: str) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if isinstance(call.func, ast.Attribute) and call.func.attr not in SHRINKS_ANYTHING:
        given.append(call.func.value)
    return any(is_named(one, name) for one in given)
