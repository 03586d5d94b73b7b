"""Where a file assigns values to names: in its body, in a class, on `self`, by default."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Assignment = ast.Assign | ast.AnnAssign
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


def targets(node: ast.AST) -> list[ast.expr]:
    """Return what a statement assigns to, `[]` if it assigns nothing."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else []


def value_of(node: Assignment) -> ast.expr:
    """Return the value that a statement found here assigns."""
    assert node.value is not None  # only bare annotations have no value, and they are left out
    return node.value


def assigned(body: list[ast.stmt], name: str) -> list[Assignment]:
    """Return the statements of a body that assign to a name; blocks are not entered."""
    return [
        node
        for node in body
        if isinstance(node, Assignment) and node.value is not None
        if any(isinstance(target, ast.Name) and target.id == name for target in targets(node))
    ]


def assigned_on_self(owner: ast.ClassDef, attribute: str) -> list[Assignment]:
    """Return the statements anywhere in a class that set an attribute of `self`."""
    return [
        node
        for node in statements_in(owner)
        if isinstance(node, Assignment) and node.value is not None
        if any(_is_of_self(target, attribute) for target in targets(node))
    ]


def _is_of_self(target: ast.expr, attribute: str) -> bool:
    return (
        isinstance(target, ast.Attribute)
        and target.attr == attribute
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    )


def class_of(tree: ast.Module, name: str) -> ast.ClassDef | None:
    """Return the class of that name, anywhere in the file."""
    return next((n for n in classes_in(tree) if n.name == name), None)


def classes_in(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Yield the classes of a file, outer ones first."""
    return (node for node in statements_in(tree) if isinstance(node, ast.ClassDef))


def statements_in(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a tree and the statements in it as `ast.walk` does, without their expressions.

    These are most of a file, and have no statements.
    """
    found = [tree]
    for node in found:  # grows meanwhile
        yield node
        for name in _BLOCKS:
            found += getattr(node, name, ())


def parameters(owner: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Return the constructor's parameters without `self`, in order, with their defaults."""
    for statement in owner.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            given = statement.args
            names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
            missing: list[ast.expr | None] = [None] * (len(names) - len(given.defaults))
            found = dict(zip(names, [*missing, *given.defaults], strict=True))
            found.update(zip((a.arg for a in given.kwonlyargs), given.kw_defaults, strict=True))
            return dict(list(found.items())[1:])
    return {}
