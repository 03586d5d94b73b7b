"""Finds code that empties a container again and again: in a loop, or on a timer that restarts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from floodline._python.names import Function, functions, is_named, last_name, mentions
from floodline._python.removals import emptied

_BLOCKS = (ast.With, ast.AsyncWith, ast.Try)
_NESTED = (ast.While, ast.For, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef)


def emptiers_in(tree: ast.AST, name: str) -> frozenset[str]:
    """Return the functions that drop everything at once, or drain it in a loop."""
    found = (f for f in functions(tree) if f.name != "__init__")
    return frozenset(f.name for f in found if any(_Emptying(f, name).always(f.body)))


def emptied_regularly(
    tree: ast.AST, name: str, emptiers: frozenset[str], text: str
) -> Iterator[ast.expr]:
    """Yield what empties `name` each time around a loop, or whenever its own timer fires.

    The loop itself must not be what drains it, and nothing but whether there are any items may
    decide if it is emptied. What the file never refers to does not count.
    """
    for function in functions(tree):
        if len(re.findall(rf"\b{function.name}\b", text)) < 2:
            continue
        emptying = _Emptying(function, name, emptiers)
        for node in ast.walk(function):
            if isinstance(node, ast.While) and not mentions(node.test, name):
                yield from emptying.always(node.body)
        if _hands_itself_on(function):
            yield from emptying.always(function.body)


class _Emptying:
    """What a function does to a container; its own variables of that name are something else."""

    def __init__(
        self, function: Function, name: str, emptiers: frozenset[str] = frozenset()
    ) -> None:
        self._function, self._name, self._emptiers = function, name, emptiers
        self._is_local = _has_variable(function, name)

    def always(self, body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
        """Yield what empties it in a body, whatever else is the case."""
        for statement in body:
            if isinstance(statement, _BLOCKS):
                yield from self.always(statement.body)
                yield from self.always(getattr(statement, "finalbody", ()))
            elif isinstance(statement, ast.If):
                test = statement.test
                if mentions(test, self._name) and not _is_missing(test, self._name):
                    yield from self.always(statement.body)
            elif self._drains(statement):
                yield ast.Constant(None)
            elif not isinstance(statement, _NESTED):
                yield from self._in_statement(statement)

    def _in_statement(self, statement: ast.stmt) -> Iterator[ast.expr]:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and last_name(node.func) in self._emptiers:
                yield node
            elif self._empties(node):
                yield ast.Constant(None)

    def _drains(self, node: ast.AST) -> bool:
        loops = isinstance(node, ast.While) and is_named(node.test, self._name)
        return loops and not self._is_local

    def _empties(self, node: ast.AST) -> bool:
        found = emptied(node, self._name)
        return found is not None and not (self._is_local and isinstance(found, ast.Name))


def _is_missing(test: ast.expr, name: str) -> bool:
    """Return True for a test that holds where there is no container yet, or nothing in it."""
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.Is | ast.NotIn)
    return isinstance(test, ast.UnaryOp) and is_named(test.operand, name)


def _has_variable(function: Function, name: str) -> bool:
    """Return True if a function assigns a variable of its own of that name."""
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in nodes):
        return False
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in nodes
    )


def _hands_itself_on(function: Function) -> bool:
    """Return True if it refers to itself, as for a timer; a plain call of itself is recursion."""
    called = {id(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    return any(
        id(node) not in called and last_name(node) == function.name
        for node in ast.walk(function)
        if isinstance(node, ast.Name | ast.Attribute)
    )
