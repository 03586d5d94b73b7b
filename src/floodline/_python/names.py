"""Names in expressions: `c` and `a.b.c` of `a.b.c`, and whether an expression means a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef


def last_name(node: ast.AST | None) -> str:
    """Return the last part of a dotted name, `""` for anything else."""
    if type(node) is ast.Name:
        return node.id
    if type(node) is ast.Attribute:
        return node.attr
    if type(node) is ast.Subscript:
        return last_name(node.value)
    return ""


def dotted(node: ast.expr) -> str:
    """Return `a.b.c`, or `""` if it contains anything but names."""
    if type(node) is ast.Name:
        return node.id
    text = ""
    while type(node) is ast.Attribute:
        text = f".{node.attr}{text}"
        node = node.value
    return node.id + text if type(node) is ast.Name else ""


def written(node: ast.expr) -> str:
    """Return an expression as text, as `ast.unparse` does.

    Plain expressions, which are most of them, take a fraction of the time.
    """
    if type(node) is ast.Name:
        return node.id
    if type(node) is ast.Constant:
        plain = type(node.value) in (str, int) and node.kind is None
        return repr(node.value) if plain else ast.unparse(node)
    return (dotted(node) if type(node) is ast.Attribute else "") or ast.unparse(node)


def is_named(node: ast.AST | None, name: str) -> bool:
    """Return True if an expression ends in `name`, perhaps behind `[...]` or with an attribute."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr == name or is_named(node.value, name)
    return isinstance(node, ast.Name) and node.id == name


def mentions(node: ast.AST, name: str) -> bool:
    """Return True if the name occurs anywhere in a piece of source."""
    return any(is_named(inner, name) for inner in ast.walk(node))


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield all functions of a piece of source, inner ones too."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node
