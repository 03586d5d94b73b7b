"""Tests that compare a size with a limit, whichever way round."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from floodline._python.names import last_name


class Relation(Enum):
    """How the size relates to the limit where the test holds."""

    ABOVE = ">"
    AT_LEAST = ">="
    EXACTLY = "=="
    AT_MOST = "<="
    BELOW = "<"
    OTHER = "!="


_RELATIONS: dict[type[ast.cmpop], Relation] = {
    ast.Gt: Relation.ABOVE,
    ast.GtE: Relation.AT_LEAST,
    ast.Eq: Relation.EXACTLY,
    ast.LtE: Relation.AT_MOST,
    ast.Lt: Relation.BELOW,
}
_TURNED = {
    Relation.ABOVE: Relation.BELOW,
    Relation.AT_LEAST: Relation.AT_MOST,
    Relation.AT_MOST: Relation.AT_LEAST,
    Relation.BELOW: Relation.ABOVE,
}
_DENIED = {
    Relation.ABOVE: Relation.AT_MOST,
    Relation.AT_LEAST: Relation.BELOW,
    Relation.EXACTLY: Relation.OTHER,
    Relation.AT_MOST: Relation.ABOVE,
    Relation.BELOW: Relation.AT_LEAST,
    Relation.OTHER: Relation.OTHER,
}
_MEASURES = frozenset((ast.Call, ast.NamedExpr))
ORDERS = frozenset((ast.Gt, ast.GtE, ast.Lt, ast.LtE))
FULL = frozenset((Relation.ABOVE, Relation.AT_LEAST, Relation.EXACTLY))
ROOM = frozenset((Relation.AT_MOST, Relation.BELOW))


class SizeComparison(NamedTuple):
    """`len(container)` compared with `limit`; the relation is of the size to the limit."""

    container: ast.expr
    relation: Relation
    limit: ast.expr
    test: ast.Compare
    depends: bool = False  # another condition has to hold as well

    @property
    def is_range(self) -> bool:
        """Return True if the size is compared with two numbers: `5 < len(x) < 9`."""
        return len(self.test.ops) > 1


def measured(node: ast.expr) -> ast.expr | None:
    """Return the container whose size an expression is: `x` for `len(x)` and `x.qsize()`."""
    if type(node) is ast.NamedExpr:
        node = node.value
    if type(node) is not ast.Call:
        return None
    name = last_name(node.func)
    if name == "len" and node.args:
        return node.args[0]
    if name == "qsize" and type(node.func) is ast.Attribute:
        return node.func.value
    return None


def size_comparisons(
    test: ast.expr,
    *,
    denied: bool = False,
    depends: bool = False,
    measure: Callable[[ast.expr], ast.expr | None] = measured,
) -> Iterator[SizeComparison]:
    """Yield the size comparisons in a test, through `and`, `or` and `not`.

    `measure` returns what an expression is the size of, None for any other expression.
    """
    if isinstance(test, ast.Compare):
        yield from _compared(test, denied, depends, measure)
    elif isinstance(test, ast.BoolOp):
        depends = depends or isinstance(test.op, ast.Or if denied else ast.And)
        for part in test.values:
            yield from size_comparisons(part, denied=denied, depends=depends, measure=measure)
    elif isinstance(test, ast.UnaryOp):
        denied = denied != isinstance(test.op, ast.Not)
        yield from size_comparisons(test.operand, denied=denied, depends=depends, measure=measure)
    elif isinstance(test, ast.NamedExpr):
        yield from size_comparisons(test.value, denied=denied, depends=depends, measure=measure)


def outer_size_comparison(test: ast.expr) -> SizeComparison | None:
    """Return the first size comparison that is the test, or part of its `and` or `or`.

    The scan uses this one: anything deeper does not count as a limit for it yet.
    """
    for part in test.values if type(test) is ast.BoolOp else (test,):
        if type(part) is ast.Compare and _may_measure(part):
            for found in _compared(part):
                return found
    return None


def _may_measure(test: ast.Compare) -> bool:
    """Return True if a side of a comparison calls something; most do not."""
    return not _MEASURES.isdisjoint(map(type, (test.left, *test.comparators)))


def _compared(
    test: ast.Compare,
    denied: bool = False,
    depends: bool = False,
    measure: Callable[[ast.expr], ast.expr | None] = measured,
) -> Iterator[SizeComparison]:
    left = test.left
    for operator, right in zip(test.ops, test.comparators, strict=True):
        found, limit, turned = measure(left), right, False
        if found is None:
            found, limit, turned = measure(right), left, True
        if found is not None:  # rare: relations are looked up only then, as enums hash slowly
            relation = _RELATIONS.get(type(operator), Relation.OTHER)
            relation = _TURNED.get(relation, relation) if turned else relation
            relation = _DENIED[relation] if denied else relation
            yield SizeComparison(found, relation, limit, test, depends)
        left = right


def asks_whether_any(test: ast.Compare) -> bool:
    """Return True for a comparison with 0 or 1: it asks whether there is any, not how much."""
    sides = (test.left, *test.comparators)
    return any(isinstance(side, ast.Constant) and side.value in (0, 1) for side in sides)


def is_threshold(test: ast.expr) -> bool:
    """Return True if a test is an inequality or a modulo; any other is not a limit."""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return not isinstance(node.left, (ast.Constant, ast.JoinedStr))
        if isinstance(node, ast.Compare) and type(node.ops[0]) in ORDERS:
            return not asks_whether_any(node)
    return False
