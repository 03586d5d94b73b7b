"""Two questions that are asked for every node: what stands below it, and how a call stands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter


def standing(marks: frozenset[str]) -> tuple[str, str, str]:
    """Return how a call stands: in which loop, in which arms of choices, behind which guard."""
    repeats = next((mark for mark in ("once", "while", "for") if mark in marks), "")
    if repeats == "while" and any(mark[:8] == "forever:" for mark in marks):
        repeats = "forever"
    elif repeats == "while" and "serves" in marks:
        repeats = "serves"
    elif repeats == "for":
        repeats = next((mark for mark in marks if mark[:5] == "over:"), repeats)
    guard = next((mark for mark in ("finally", "except", "branch") if mark in marks), "")
    arm = ""
    if "branch" in marks:
        arm = "\n".join(sorted(mark for mark in marks if mark[:4] == "arm:"))
    return repeats, arm, guard


def below(node: ast.AST, kind: type) -> Iterable[ast.AST | None]:
    """Return what stands below a node, in its order; operators and contexts are nothing."""
    return _BELOW[kind](node)


_OTHER = {"op", "ops", "ctx", "arg", "id", "attr", "kind", "conversion", "is_async", "value_kind"}
_SEVERAL = {"args", "comparators", "elts", "generators", "ifs", "keys", "keywords", "values"}


def _reader(kind: type[ast.AST]) -> Callable[[ast.AST], Iterable[ast.AST | None]]:
    """Return what reads the fields of a kind of node: mostly one call of C."""
    fields = [field for field in kind._fields if field not in _OTHER]
    if len(fields) == 1 and fields[0] in _SEVERAL:
        return attrgetter(fields[0])
    if len(fields) > 1 and not _SEVERAL.intersection(fields):
        return attrgetter(*fields)
    return partial(_mixed, fields)


def _mixed(fields: list[str], node: ast.AST) -> list[ast.AST | None]:
    found: list[ast.AST | None] = []
    for field in fields:
        inner = getattr(node, field)
        if type(inner) is list:
            found += inner
        else:
            found.append(inner)
    return found


_BELOW: dict[type, Callable[[ast.AST], Iterable[ast.AST | None]]] = {
    kind: _reader(kind)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, (ast.expr, ast.comprehension, ast.keyword))
}
