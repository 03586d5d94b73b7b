"""The numbers that a file assigns to names: constants, attributes, parameter defaults."""

from __future__ import annotations

import ast

from floodline._python.assignments import (
    Assignment,
    assigned,
    assigned_on_self,
    class_of,
    parameters,
    value_of,
)
from floodline._python.numbers import number

LONGEST_CHAIN = 5  # names that refer to names; more are a cycle


class Constants:
    """The numbers of one file, as seen by an instance that `made` would create."""

    def __init__(self, tree: ast.Module, made: ast.Call | None = None) -> None:
        self._tree = tree
        self._made = made

    def of(self, node: ast.expr | None, owner: ast.ClassDef | None, depth: int = 0) -> int | None:
        """Return the value of an expression in a method of `owner`, None if unknown."""
        if depth > LONGEST_CHAIN:
            return None
        return number(node, lambda name: self._meaning(name, owner, depth + 1))

    def _meaning(self, node: ast.expr, owner: ast.ClassDef | None, depth: int) -> int | None:
        if isinstance(node, ast.Name):
            return self._named(node.id, owner, depth)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._attribute(node.value.id, node.attr, owner, depth)
        return None

    def _named(self, name: str, owner: ast.ClassDef | None, depth: int) -> int | None:
        """Look up a name: a constructor parameter hides a constant of the module."""
        if owner is not None and name in parameters(owner):
            return self.of(self._argument(name, owner), None, depth)
        return self._only(assigned(self._tree.body, name), owner, depth)

    def _attribute(
        self, base: str, name: str, owner: ast.ClassDef | None, depth: int
    ) -> int | None:
        if base not in ("self", "cls"):
            owner = class_of(self._tree, base)
        if owner is None:
            return None
        return self._only(assigned_on_self(owner, name) or assigned(owner.body, name), owner, depth)

    def _only(self, found: list[Assignment], owner: ast.ClassDef | None, depth: int) -> int | None:
        """Return the only value that is assigned; with several, none is certain."""
        return self.of(value_of(found[0]), owner, depth) if len(found) == 1 else None

    def _argument(self, name: str, owner: ast.ClassDef) -> ast.expr | None:
        """Return what `made` passes for a constructor parameter, else its default."""
        made, known = self._made, parameters(owner)
        if made is not None and isinstance(made.func, ast.Name) and made.func.id == owner.name:
            place = list(known).index(name)
            if place < len(made.args):
                return made.args[place]
            for keyword in made.keywords:
                if keyword.arg == name:
                    return keyword.value
        return known[name]
