"""Which item an expression selects: the first, the smallest by a key, or an unknown one.

`next(iter(x))`, `min(x, key=times.get)`, `sorted(x)[:n]`, `list(x)[0]`, also through local names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from floodline._python.mutations import HEAP_SHRINKS
from floodline._python.names import last_name
from floodline._python.numbers import number

_SORTED = {"sorted", "nsmallest"}
_SAME_ORDER = {"list", "tuple", "iter", "enumerate", "islice", "keys", "items", "values", "copy"}
_COMPREHENSIONS = ast.ListComp | ast.GeneratorExp
DEEPEST = 6  # names that stand for names


class Order(NamedTuple):
    """In which order items come: as they were added or by a key, and from which end."""

    by_key: ast.expr | None = None  # what sorts them, None for the order in which they came
    forward: bool = True


class Selection(NamedTuple):
    """The item or items that an expression means, if they are the first of an order."""

    order: Order
    node: ast.expr

    @property
    def is_first(self) -> bool:
        """Return True if the oldest, or the smallest by a key, is meant."""
        return self.order.forward


def selected(node: ast.expr, function: ast.AST, depth: int = 0) -> Selection | None:
    """Return what an expression selects, None if that is unknown."""
    if depth > DEEPEST:
        return None
    if isinstance(node, ast.Name):
        found = (_bound(value, loop, function, depth) for value, loop in _values(node.id, function))
        return next(filter(None, found), None)
    if isinstance(node, ast.Subscript):
        return _indexed(node, function, depth)
    return _called(node, function, depth) if isinstance(node, ast.Call) else None


def _called(node: ast.Call, function: ast.AST, depth: int) -> Selection | None:
    name = last_name(node.func)
    if name in HEAP_SHRINKS:
        return Selection(Order(by_key=node), node)
    if name in ("popleft", "min", "max") or (name == "pop" and node.args):
        first = name != "pop" or number(node.args[0]) == 0
        order = Order() if name in ("popleft", "pop") else Order(node, name == "min")
        return Selection(_turned(order, node), node) if first else None
    if name == "next" and node.args:
        found = ordered(node.args[0], function, depth + 1)
        return Selection(found, node) if found else None
    return None


def _indexed(node: ast.Subscript, function: ast.AST, depth: int) -> Selection | None:
    order = ordered(node.value, function, depth + 1)
    place = number(node.slice) if not isinstance(node.slice, ast.Slice) else None
    if order is not None and place in (0, -1):
        return Selection(_flipped(order) if place else order, node)
    if order is not None and isinstance(node.slice, ast.Slice):
        part = ordered(node, function, depth + 1)
        return Selection(part, node) if part else None
    inner = selected(node.value, function, depth + 1)  # a part of an item: `min(pairs)[1]`
    return Selection(inner.order, inner.node) if inner and place is not None else None


def _bound(
    value: ast.expr, loop: ast.For | ast.AsyncFor | None, function: ast.AST, depth: int
) -> Selection | None:
    """Return what a local name means: what is assigned, or one item after another."""
    if loop is None:
        return selected(value, function, depth + 1)
    order = ordered(value, function, depth + 1)
    if order is None or not (_is_part(value, function) or _stops(loop)):
        return None  # a loop over everything removes everything, or what its tests select
    return Selection(order, value)


def _is_part(value: ast.expr, function: ast.AST, depth: int = 0) -> bool:
    """Return True if an iterable was cut to a number of items."""
    if isinstance(value, ast.Name) and depth < DEEPEST:
        values = [v for v, loop in _values(value.id, function) if loop is None]
        return any(_is_part(each, function, depth + 1) for each in values)
    if isinstance(value, _COMPREHENSIONS):
        return _is_part(value.generators[0].iter, function, depth)
    if isinstance(value, ast.Call):
        name = last_name(value.func)
        inner = any(_is_part(each, function, depth) for each in value.args[:1])
        return name in ("islice", "nsmallest") or inner
    return isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)


def _stops(loop: ast.For | ast.AsyncFor) -> bool:
    return any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(loop))


def ordered(node: ast.expr, function: ast.AST, depth: int = 0) -> Order | None:
    """Return the order in which an iterable gives its items, None if unknown."""
    if depth > DEEPEST:
        return None
    if isinstance(node, ast.Name):
        return _order_of_name(node.id, function, depth)
    if isinstance(node, ast.Attribute):
        return Order()
    if isinstance(node, _COMPREHENSIONS):
        first = node.generators[0]
        plain = len(node.generators) == 1 and not first.ifs
        return ordered(first.iter, function, depth + 1) if plain else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _cut(ordered(node.value, function, depth + 1), node.slice)
    return _order_of_call(node, function, depth) if isinstance(node, ast.Call) else None


def _order_of_name(name: str, function: ast.AST, depth: int) -> Order | None:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _sorts(node.func, name):
            return _turned(Order(by_key=node), node)
    values = [value for value, loop in _values(name, function) if loop is None]
    found = [ordered(value, function, depth + 1) for value in values]
    return next(filter(None, found), None) if values else Order()


def _sorts(called: ast.expr, name: str) -> bool:
    is_sort = isinstance(called, ast.Attribute) and called.attr == "sort"
    return is_sort and isinstance(called, ast.Attribute) and last_name(called.value) == name


def _order_of_call(node: ast.Call, function: ast.AST, depth: int) -> Order | None:
    name = last_name(node.func)
    if name in _SORTED:
        return _turned(Order(by_key=node), node)
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if node.args and (inner is None or name in ("islice", "nsmallest")):
        inner = node.args[0]
    if inner is None or name not in _SAME_ORDER | {"reversed"}:
        return None
    found = ordered(inner, function, depth + 1)
    return _flipped(found) if found and name == "reversed" else found


def _cut(order: Order | None, part: ast.Slice) -> Order | None:
    """Return the order of a part: `[:n]` keeps it, `[-n:]` is the other end."""
    if order is None or part.step is not None:
        return None
    if part.lower is None:
        negative = isinstance(part.upper, ast.UnaryOp)
        return None if negative and not order.forward else order
    from_end = part.upper is None and isinstance(part.lower, ast.UnaryOp)
    return _flipped(order) if from_end else None


def _flipped(order: Order) -> Order:
    return order._replace(forward=not order.forward)


def _turned(order: Order, node: ast.Call) -> Order:
    """Turn the order round if the call says `reverse=True`, or sorts by a negative key."""
    for keyword in node.keywords:
        reverse = keyword.arg == "reverse" and not _is_false(keyword.value)
        negative = keyword.arg == "key" and isinstance(keyword.value, ast.Lambda)
        if reverse or (negative and _is_negative(keyword.value)):
            order = _flipped(order)
    return order


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_negative(key: ast.expr) -> bool:
    body = key.body if isinstance(key, ast.Lambda) else key
    return isinstance(body, ast.UnaryOp) and isinstance(body.op, ast.USub)


def _values(
    name: str, function: ast.AST
) -> Iterator[tuple[ast.expr, ast.For | ast.AsyncFor | None]]:
    """Yield where a local name gets its values: from assignments and the heads of loops."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            if any(_sets(target, name) for target in node.targets):
                yield node.value, None
        elif isinstance(node, ast.NamedExpr) and node.target.id == name:
            yield node.value, None
        elif isinstance(node, ast.For | ast.AsyncFor) and _sets(node.target, name):
            yield node.iter, node


def _sets(target: ast.expr, name: str) -> bool:
    names = (n for n in ast.walk(target) if isinstance(n, ast.Name) and n.id == name)
    return any(isinstance(node.ctx, ast.Store) for node in names)
