"""Which items a removal takes: the first that came, the last, the smallest, all, or some."""

from __future__ import annotations

import ast

FIRST, LAST, LEAST, ALL, REJECT, SOME = "first", "last", "least", "all", "reject", "some"
SAYS = {
    FIRST: "removes the first that came",
    LAST: "removes the last that came",
    LEAST: "removes the smallest by a key",
    ALL: "empties it",
    REJECT: "refuses new items",
    SOME: "removes items",
}
FITS = {
    "lru": {FIRST, LEAST},
    "oldest": {FIRST, LEAST},
    "fifo": {FIRST, LEAST},
    "window": {FIRST, LEAST},
    "batch": {ALL},
    "reject": {REJECT},
}


def taken(node: ast.AST, function: ast.AST) -> str:
    """Return what a call, a `del` or an assignment takes from its container."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _by_method(node, node.func.attr, function)
    if isinstance(node, ast.Subscript):
        return _by_index(node.slice, function)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return _by_replacement(node.value)
    return SOME


def _by_method(node: ast.Call, method: str, function: ast.AST) -> str:
    if method == "clear":
        return ALL
    if method == "popleft":
        return FIRST
    if method == "heappop":
        return LEAST
    if method == "popitem":
        given = [*node.args, *(k.value for k in node.keywords if k.arg == "last")]
        front = bool(given) and isinstance(given[0], ast.Constant) and not given[0].value
        return FIRST if front else LAST
    if method == "pop":
        return _by_index(node.args[0], function) if node.args else LAST
    return SOME


def _by_index(index: ast.expr, function: ast.AST) -> str:
    if isinstance(index, ast.Slice):
        if index.lower is None:
            return ALL if index.upper is None else FIRST
        return SOME if index.upper is not None else LAST
    number = _number(index)
    if number is not None:
        return FIRST if number == 0 else LAST if number == -1 else SOME
    if isinstance(index, ast.Name):
        return next((k for v in _values(index.id, function) if (k := _key(v)) != SOME), SOME)
    return _key(index)


def _values(name: str, function: ast.AST) -> list[ast.expr]:
    """Where a local name gets its values from: assignments, and the head of a loop."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            heads = [n for t in node.targets for n in ast.walk(t)]
        elif isinstance(node, ast.For | ast.AsyncFor):
            heads = list(ast.walk(node.target))
        else:
            continue
        if any(isinstance(head, ast.Name) and head.id == name for head in heads):
            found.append(node.value if isinstance(node, ast.Assign) else node.iter)
    return found


def _key(node: ast.expr) -> str:
    """`next(iter(x))`, `list(x)[0]` and `islice` are the first; `min` and `sorted` the smallest."""
    calls = {_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    if calls & {"max", "reversed"} or any(
        isinstance(n, ast.keyword) and n.arg == "reverse" for n in ast.walk(node)
    ):
        return SOME
    if calls & {"min", "sorted", "nsmallest", "heappop"}:
        return LEAST
    if calls & {"next", "islice", "popleft"}:
        return FIRST
    if isinstance(node, ast.Subscript):
        return FIRST if _by_index(node.slice, node) == FIRST else SOME
    if isinstance(node, ast.Call) and _name(node.func) == "pop":
        return FIRST if node.args and _number(node.args[0]) == 0 else SOME
    return SOME


def _by_replacement(value: ast.expr | None) -> str:
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        part = value.slice
        if part.upper is None and isinstance(part.lower, ast.UnaryOp):
            return FIRST
        return LAST if part.lower is None and part.upper is not None else SOME
    empty_call = isinstance(value, ast.Call) and not value.args and not value.keywords
    empty = isinstance(value, ast.List | ast.Set | ast.Tuple) and not value.elts
    no_keys = isinstance(value, ast.Dict) and not value.keys
    return ALL if empty_call or empty or no_keys else SOME


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _number(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    return None
