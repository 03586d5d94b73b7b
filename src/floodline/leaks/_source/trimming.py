"""Limits that no test checks: a slice that is kept, keys that come round again, a timer."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from floodline._python.mutations import SHRINKS_ANYTHING
from floodline._python.names import Function, is_named, last_name

_BLOCKS = (ast.With, ast.AsyncWith, ast.Try)
_TIMERS = frozenset(("call_later", "call_at", "Timer", "enter", "enterabs"))


def trimmed(body: Iterable[ast.stmt], name: str) -> Iterator[ast.expr]:
    """Yield how much a body keeps whenever it runs: `x = x[-100:]`, `del x[:-100]`."""
    for statement in body:
        if isinstance(statement, _BLOCKS):
            yield from trimmed(statement.body, name)
        elif isinstance(statement, ast.Delete):
            cut = [_cut(target, name) for target in statement.targets]
            yield from (_size(at.upper, at.lower) for at in cut if at is not None)
        elif isinstance(statement, ast.Assign) and any(
            is_named(target, name) for target in statement.targets
        ):
            kept = _cut(statement.value, name)
            if kept is not None:
                yield _size(kept.lower, kept.upper)


def _cut(node: ast.expr, name: str) -> ast.Slice | None:
    """Return the part of `name` that an expression is, if it has one end only."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return None
    ends = node.slice.lower, node.slice.upper
    return node.slice if _is_whole(node.value, name) and ends.count(None) == 1 else None


def _is_whole(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and last_name(node) == name


def _size(counted_back: ast.expr | None, counted: ast.expr | None) -> ast.expr:
    """Return how many are kept; a number of the last ones is written with a minus."""
    if isinstance(counted_back, ast.UnaryOp) and isinstance(counted_back.op, ast.USub):
        return counted_back.operand
    return counted if counted is not None else ast.Constant(None)


def overwritten(function: Function, name: str) -> dict[int, ast.expr]:
    """Return the lines whose keys come round again, and how many: `ring[count % size] = value`."""
    nodes = list(ast.walk(function))
    turns = {
        target.id: value
        for node in nodes
        if isinstance(node, ast.Assign) and (value := _turn(node.value)) is not None
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[int, ast.expr] = {}
    for node in nodes:
        at = _written(node)
        if isinstance(at, ast.Subscript) and _is_whole(at.value, name):
            key = at.slice
            size = turns.get(key.id) if isinstance(key, ast.Name) else _turn(key)
            if size is not None:
                found[at.lineno] = size
    return found


def _written(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.AugAssign):
        return node.target
    return node.targets[0] if isinstance(node, ast.Assign) else None


def _turn(node: ast.expr) -> ast.expr | None:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod):
        return None
    return None if isinstance(node.left, ast.Constant | ast.JoinedStr) else node.right


def expires(function: Function, name: str) -> bool:
    """Return True if a function sets a timer that removes from `name`."""
    return any(
        isinstance(part, ast.Attribute)
        and part.attr in SHRINKS_ANYTHING
        and is_named(part.value, name)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and last_name(node.func) in _TIMERS
        for given in node.args
        for part in ast.walk(given)
    )
