"""The whole number that an expression stands for: `10_000`, `1 << 20`, `50 * 2`, known names."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

Known = Callable[[ast.expr], int | None]
LARGEST_POWER = 64  # of two: anything larger is not a limit, and may take forever to calculate
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}
_STEEP = (ast.LShift, ast.Pow)


def number(node: ast.expr | None, known: Known | None = None) -> int | None:
    """Return the whole number that an expression stands for, None if unknown.

    `known` is asked for everything that is not written as a number: names, attributes, calls.
    """
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand, known)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp):
        return _calculated(node, known)
    return known(node) if known is not None and node is not None else None


def _calculated(node: ast.BinOp, known: Known | None) -> int | None:
    operation = _OPERATIONS.get(type(node.op))
    left, right = number(node.left, known), number(node.right, known)
    if operation is None or left is None or right is None:
        return None
    if isinstance(node.op, _STEEP) and not 0 <= right <= LARGEST_POWER:
        return None
    if isinstance(node.op, ast.Pow) and left.bit_length() > LARGEST_POWER:
        return None
    if isinstance(node.op, ast.FloorDiv) and not right:
        return None
    return operation(left, right)


def is_none(node: ast.expr | None) -> bool:
    """Return True if an expression is the constant `None`."""
    return isinstance(node, ast.Constant) and node.value is None
