"""Names in expressions: `c` and `a.b.c` of `a.b.c`, and whether an expression means a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
PLAIN = {str, int, bool, bytes}  # constants that are written as their `repr`


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
    return _plain(node) or ast.unparse(node)


def _plain(node: ast.expr) -> str:
    """Return the text of names, constants, attributes, items and calls, `""` for all else."""
    if type(node) is ast.Name:
        return node.id
    if type(node) is ast.Constant:
        plain = type(node.value) in PLAIN and node.kind is None
        return repr(node.value) if plain else ""
    if type(node) is ast.Attribute:
        number = type(node.value) is ast.Constant and type(node.value.value) is not str
        owner = "" if number else _plain(node.value)  # `1 .real` needs its space
        return f"{owner}.{node.attr}" if owner else ""
    if type(node) is ast.Subscript:
        owner, key = _plain(node.value), _plain(node.slice)
        return f"{owner}[{key}]" if owner and key else ""
    return _plain_call(node) if type(node) is ast.Call else ""


def _plain_call(node: ast.Call) -> str:
    given = [_plain(item) for item in (node.func, *node.args)]
    for keyword in node.keywords:
        value = _plain(keyword.value)
        given.append(f"{keyword.arg}={value}" if keyword.arg and value else "")
    return f"{given[0]}({', '.join(given[1:])})" if all(given) else ""


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
