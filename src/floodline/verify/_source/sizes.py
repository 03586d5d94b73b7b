"""Writes out sizes that a test reads from a local name: `n = len(x)`, then `if n > 10`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from floodline._python.assignments import targets
from floodline._python.comparisons import measured
from floodline._python.names import functions, last_name, mentions
from floodline._python.removals import QUIET


def write_out_sizes(tree: ast.Module) -> None:
    """Put the size in place of its name in tests, so that they read as comparisons of a size.

    Only where the container cannot have changed in between. Positions stay as they are.
    """
    for function in functions(tree):
        for body in _bodies(function):
            for place, statement in enumerate(body):
                if isinstance(statement, ast.If | ast.While):
                    known = dict(_sizes(function, body[:place]))
                    statement.test = _Test(known).visit(statement.test)
                    if isinstance(statement, ast.If) and isinstance(statement.test, ast.Compare):
                        statement.test = _without_excess(statement.test)


def _bodies(function: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


def _sizes(function: ast.AST, before: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that stand for a size, from the statements just before a test."""
    passed: list[ast.stmt] = []
    for statement in reversed(before):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name, value = statement.targets[0].id, statement.value
            container = _container(value)
            steady = container is not None and _times_set(function, name) == 1
            if steady and not any(_may_change(each, last_name(container)) for each in passed):
                yield name, value
        passed.append(statement)


def _container(value: ast.expr) -> ast.expr | None:
    """Return the container of `len(x)` and of `len(x) - limit`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub):
        value = value.left
    return measured(value)


def _times_set(function: ast.AST, name: str) -> int:
    stored = (n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name)
    return sum(isinstance(node.ctx, ast.Store | ast.Del) for node in stored)


def _may_change(statement: ast.stmt, name: str) -> bool:
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    if any(last_name(call.func) not in QUIET for call in calls):
        return True
    touched = [t for n in ast.walk(statement) for t in targets(n)]
    touched += [t for n in ast.walk(statement) if isinstance(n, ast.Delete) for t in n.targets]
    return any(mentions(target, name) for target in touched)


class _Test(ast.NodeTransformer):
    def __init__(self, known: dict[str, ast.expr]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._known.get(node.id)
        return node if value is None else ast.copy_location(_copy(value), node)


def _copy(value: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(value), mode="eval").body


def _without_excess(test: ast.Compare) -> ast.Compare:
    """Turn `len(x) - limit > 0` into `len(x) > limit`."""
    left, right = test.left, test.comparators[0]
    zero = isinstance(right, ast.Constant) and right.value == 0 and len(test.ops) == 1
    if zero and isinstance(left, ast.BinOp) and _container(left) is not None:
        return ast.copy_location(ast.Compare(left.left, test.ops, [left.right]), test)
    return test
