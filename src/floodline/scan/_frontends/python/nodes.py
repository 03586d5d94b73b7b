"""The children of syntax tree nodes; used for every node, so it has to be fast."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from types import NoneType
from typing import Any

LEAVES = {ast.Name, ast.Constant, NoneType}
_OTHER = {"op", "ops", "ctx", "arg", "id", "attr", "kind", "conversion", "is_async", "value_kind"}
_TEXTS = {*_OTHER, "name", "asname", "names", "module", "rest", "kwd_attrs", "type_comment"}
_SEVERAL = {"args", "comparators", "elts", "generators", "ifs", "keys", "keywords", "values"}


def names_in(target: ast.expr) -> list[str]:
    """Return the names that an assignment to a target binds, however deep they stand."""
    if type(target) is ast.Name:
        return [target.id]
    if type(target) is ast.Starred:
        return names_in(target.value)
    if type(target) is ast.Tuple or type(target) is ast.List:
        return [name for part in target.elts for name in names_in(part)]
    return []


def constants_read(node: ast.AST, name: str) -> list[str]:
    """Return the constant keys under which something below a node reads a map of this name."""
    found: dict[str, None] = {}
    every: list[Any] = [node]
    for part in every:  # grows meanwhile
        kind = type(part)
        read = _EVERYTHING.get(kind) if kind not in LEAVES else None
        if read is None:
            continue
        every += read(part)
        key = None
        if type(part) is ast.Subscript:
            key = key_read(part.value, part.slice, name)
        elif type(part) is ast.Call and type(part.func) is ast.Attribute:
            reads = part.args and part.func.attr in ("get", "pop")
            key = key_read(part.func.value, part.args[0], name) if reads else None
        if key:
            found[key] = None
    return list(found)


def key_read(owner: ast.expr, key: ast.expr, name: str) -> str:
    """Return the constant key if the owner is of this name, else `""`."""
    named = type(owner) is ast.Name and owner.id == name
    return key.value if named and type(key) is ast.Constant and type(key.value) is str else ""


def captured(pattern: ast.pattern) -> list[str]:
    """Return the names that a pattern of a `match` binds."""
    bound = (
        getattr(part, "name", None) or getattr(part, "rest", None) for part in ast.walk(pattern)
    )
    return [name for name in bound if name]


def _reader(kind: type[ast.AST]) -> Callable[[ast.AST], Iterable[ast.AST | None]]:
    """Return a reader for the fields of a node type: mostly a single C call."""
    fields = [field for field in kind._fields if field not in _OTHER]
    if len(fields) == 1 and fields[0] in _SEVERAL:
        return attrgetter(fields[0])
    if len(fields) > 1 and not _SEVERAL.intersection(fields):
        return attrgetter(*fields)
    return _FREQUENT.get(kind) or partial(_mixed, fields)


def _mixed(fields: list[str], node: ast.AST) -> list[ast.AST | None]:
    found: list[ast.AST | None] = []
    for field in fields:
        inner = getattr(node, field)
        if type(inner) is list:
            found += inner
        else:
            found.append(inner)
    return found


# of both single nodes and lists
_FREQUENT: dict[type, Callable[[Any], Iterable[ast.AST | None]]] = {
    ast.Compare: lambda node: (node.left, *node.comparators),
    ast.Dict: lambda node: (*node.keys, *node.values),
    ast.comprehension: lambda node: (node.target, node.iter, *node.ifs),
    ast.Call: lambda node: (node.func, *node.args, *node.keywords),
    **dict.fromkeys(
        (ast.ListComp, ast.SetComp, ast.GeneratorExp), lambda node: (node.elt, *node.generators)
    ),
}
_KINDS = [kind for kind in vars(ast).values() if isinstance(kind, type)]
BELOW: dict[type, Callable[[ast.AST], Iterable[ast.AST | None]]] = {
    kind: _reader(kind)
    for kind in _KINDS
    if issubclass(kind, (ast.expr, ast.comprehension, ast.keyword))
}
# the same for all that has anything below it: statements, patterns, arguments
_EVERYTHING: dict[type, Callable[[ast.AST], Iterable[ast.AST | None]]] = {
    **{
        kind: partial(_mixed, [field for field in kind._fields if field not in _TEXTS])
        for kind in _KINDS
        if issubclass(kind, ast.AST) and kind._fields
    },
    **BELOW,
}
