"""What happens at a limit: which items are removed, or that new ones are refused."""

from __future__ import annotations

import ast
from enum import Enum

from floodline._python.mutations import HEAP_SHRINKS
from floodline._python.numbers import number
from floodline._python.selection import selected


class AtLimit(Enum):
    """What happens to the items when a container is full."""

    FIRST = "first"  # the one that came first leaves
    LAST = "last"
    LEAST = "least"  # the smallest by a key leaves
    ALL = "all"
    SOME = "some"  # which ones is unknown
    REJECT = "reject"  # a new item is refused
    BLOCK = "block"  # the caller that adds has to wait
    RENEWED = "recent"  # with FIRST: reading an item makes it the last


def taken(node: ast.AST, function: ast.AST) -> AtLimit:
    """Return which items a call, a `del` or an assignment removes from its container.

    `function` is where local names get their values.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _by_method(node, node.func.attr, function)
    if isinstance(node, ast.Subscript):
        return taken_by_index(node.slice, function)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return _by_replacement(node.value)
    return AtLimit.SOME


def _by_method(node: ast.Call, method: str, function: ast.AST) -> AtLimit:
    if method == "clear":
        return AtLimit.ALL
    if method == "popleft":
        return AtLimit.FIRST
    if method in HEAP_SHRINKS:
        return AtLimit.LEAST
    if method == "popitem":
        given = [*node.args, *(k.value for k in node.keywords if k.arg == "last")]
        front = bool(given) and isinstance(given[0], ast.Constant) and not given[0].value
        return AtLimit.FIRST if front else AtLimit.LAST
    if method == "pop":
        return taken_by_index(node.args[0], function) if node.args else AtLimit.LAST
    return AtLimit.SOME


def taken_by_index(index: ast.expr, function: ast.AST) -> AtLimit:
    """Return which items `del x[index]` and `x.pop(index)` remove."""
    if isinstance(index, ast.Slice):
        if index.lower is None:
            return AtLimit.ALL if index.upper is None else AtLimit.FIRST
        return AtLimit.SOME if index.upper is not None else AtLimit.LAST
    place = number(index)
    if place is not None:
        return {0: AtLimit.FIRST, -1: AtLimit.LAST}.get(place, AtLimit.SOME)
    found = selected(index, function)
    if found is None or not found.is_first:
        return AtLimit.SOME
    return AtLimit.LEAST if found.order.by_key is not None else AtLimit.FIRST


def _by_replacement(value: ast.expr | None) -> AtLimit:
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        part = value.slice
        if part.upper is None and isinstance(part.lower, ast.UnaryOp):
            return AtLimit.FIRST
        last = part.lower is None and part.upper is not None
        return AtLimit.LAST if last else AtLimit.SOME
    return AtLimit.ALL if is_empty(value) else AtLimit.SOME


def is_empty(value: ast.expr | None) -> bool:
    """Return True if an expression creates something empty: `[]`, `{}`, `set()`."""
    if isinstance(value, ast.Call):
        return not value.args and not value.keywords
    if isinstance(value, ast.List | ast.Set | ast.Tuple):
        return not value.elts
    return isinstance(value, ast.Dict) and not value.keys
