"""Two questions that are asked for every node: what stands below it, and how a call stands."""

from __future__ import annotations

import ast


def standing(marks: frozenset[str]) -> tuple[str, str, str]:
    """Return how a call stands: in which loop, in which arms of choices, behind which guard."""
    repeats = next((mark for mark in ("once", "while", "for") if mark in marks), "")
    if repeats == "while" and any(mark[:8] == "forever:" for mark in marks):
        repeats = "forever"
    guard = next((mark for mark in ("finally", "except", "branch") if mark in marks), "")
    arm = ""
    if "branch" in marks:
        arm = "\n".join(sorted(mark for mark in marks if mark[:4] == "arm:"))
    return repeats, arm, guard


def below(node: ast.AST, kind: type[ast.AST]) -> list[ast.AST]:
    """Return what stands below a node, in its order; operators and contexts are nothing."""
    found: list[ast.AST] = []
    for field in _FIELDS[kind]:
        inner = getattr(node, field)
        if type(inner) is list:
            found += inner if kind is not ast.Dict else [item for item in inner if item is not None]
        elif inner is not None:
            found.append(inner)
    return found


_OTHER = {"op", "ops", "ctx", "arg", "id", "attr", "kind", "conversion", "is_async", "value_kind"}
_FIELDS = {
    kind: tuple(field for field in kind._fields if field not in _OTHER)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
