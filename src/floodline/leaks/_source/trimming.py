"""Limits other than its own length: a slice, keys that come round, a timer, another container."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from floodline._python.mutations import HEAP_SHRINKS, SHRINKS_ANYTHING, TAKES_UNNAMED
from floodline._python.names import Function, is_named, last_name
from floodline._python.numbers import number

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


def taken_along(body: Iterable[ast.stmt], name: str) -> bool:
    """Return True if a body removes from `name` the keys that it takes out of another container.

    As in `oldest = order.popleft(); del table[oldest]`.
    """
    nodes = [node for statement in body for node in ast.walk(statement)]
    taken = {
        part.id
        for node in nodes
        if isinstance(node, ast.Assign) and any(map(_takes, ast.walk(node.value)))
        for target in node.targets
        for part in ast.walk(target)
        if isinstance(part, ast.Name)
    }
    keys = (key for node in nodes for key in _removed_keys(node, name))
    return any(isinstance(key, ast.Name) and key.id in taken for key in keys)


def _takes(node: ast.AST) -> bool:
    """Return True for a call that takes whatever comes first or last."""
    if not isinstance(node, ast.Call):
        return False
    method = last_name(node.func)
    if method == "pop":
        return not node.args or number(node.args[0]) is not None
    return method in HEAP_SHRINKS or method in TAKES_UNNAMED


def _shrinks(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in SHRINKS_ANYTHING and _is_whole(node.func.value, name)


def _removed_keys(node: ast.AST, name: str) -> Iterator[ast.expr]:
    if isinstance(node, ast.Delete):
        found = (target for target in node.targets if isinstance(target, ast.Subscript))
        yield from (one.slice for one in found if _is_whole(one.value, name))
    elif _shrinks(node, name):
        yield from node.args[:1]
