"""The numbers that source assigns to names: constants, attributes, settings, parameter defaults."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from floodline._python.assignments import (
    Assignment,
    assigned,
    assigned_on_self,
    class_of,
    parameters,
    value_of,
)
from floodline._python.names import dotted, functions, last_name
from floodline._python.numbers import is_none, number

LONGEST_CHAIN = 8  # names that refer to names; more are a cycle
_FIELDS = {"field", "Field"}  # `x: int = field(default=50)`
_ENVIRONMENT = {"os.getenv", "getenv", "os.environ.get", "environ.get"}
_CHOICES = {"min": min, "max": max}
Others = Callable[[str, int], "Constants | None"]  # a module's name, and the dots before it


def _alone(_name: str, _dots: int) -> Constants | None:
    return None


class Scope(NamedTuple):
    """Where a dotted name leads: a module, or a class of it with the call that creates one."""

    constants: Constants
    owner: ast.ClassDef | None
    made: ast.Call | None = None


class Constants:
    """The numbers of one file, as seen by an instance that `made` would create.

    `others` finds the constants of the modules that this one imports. Nothing is imported.
    """

    def __init__(
        self, tree: ast.Module, made: ast.Call | None = None, others: Others = _alone
    ) -> None:
        self._tree = tree
        self._made = made
        self._others = others

    def of(self, node: ast.expr | None, owner: ast.ClassDef | None, depth: int = 0) -> int | None:
        """Return the value of an expression in a method of `owner`, None if unknown."""
        if depth > LONGEST_CHAIN:
            return None
        return number(node, lambda name: self._meaning(name, owner, depth + 1))

    def _meaning(self, node: ast.expr, owner: ast.ClassDef | None, depth: int) -> int | None:
        if isinstance(node, ast.Name):
            return self._named(node.id, owner, depth)
        if isinstance(node, ast.Attribute):
            if node.attr == "value" and (inner := self.of(node.value, owner, depth)) is not None:
                return inner  # the member of an enum
            found = self.scope(node.value, owner, depth)
            return found.constants.member(found, node.attr, depth) if found else None
        if isinstance(node, ast.Subscript):
            return self._entry(node.value, node.slice, owner, depth)
        if isinstance(node, ast.Call):
            return self._called(node, owner, depth)
        if isinstance(node, ast.BoolOp | ast.IfExp):
            return self.of(self._chosen(node, owner), owner, depth)
        return None

    def _named(self, name: str, owner: ast.ClassDef | None, depth: int) -> int | None:
        """Look up a name: a constructor parameter hides a constant of the module."""
        if depth > LONGEST_CHAIN:
            return None
        if owner is not None and name in parameters(owner):
            return self.of(self._argument(name, owner), None, depth)
        found = assigned(self._tree.body, name)
        if not found and (origin := self._imported(name)) is not None:
            other, inner = origin
            return other._named(inner, None, depth + 1) if inner else None
        return self._only(found, owner, depth)

    def _called(self, node: ast.Call, owner: ast.ClassDef | None, depth: int) -> int | None:
        name, given = last_name(node.func), node.args
        if name == "int" and len(given) == 1:
            return self._converted(given[0], owner, depth)
        if name in _CHOICES and len(given) > 1 and not node.keywords:
            numbers = [self.of(each, owner, depth) for each in given]
            known = [each for each in numbers if each is not None]
            return _CHOICES[name](known) if len(known) == len(numbers) else None
        if name in _FIELDS:
            default = next((k.value for k in node.keywords if k.arg == "default"), None)
            return self.of(default or next(iter(given), None), owner, depth)
        if name == "get" and given and isinstance(node.func, ast.Attribute):
            entry = self._entry(node.func.value, given[0], owner, depth)
            if entry is not None:
                return entry
        return self.of(self._default(node), owner, depth)

    def _converted(self, node: ast.expr, owner: ast.ClassDef | None, depth: int) -> int | None:
        """Return what `int(node)` is."""
        text = self._default(node) or node
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            return int(text.value) if text.value.isdecimal() else None
        return self.of(text, owner, depth)

    def _default(self, node: ast.expr) -> ast.expr | None:
        """Return what `os.getenv("SIZE", 50)` is where the environment says nothing."""
        if not isinstance(node, ast.Call) or dotted(node.func) not in _ENVIRONMENT:
            return None
        return node.args[1] if len(node.args) > 1 else None

    def _entry(
        self, table: ast.expr, key: ast.expr, owner: ast.ClassDef | None, depth: int
    ) -> int | None:
        """Return the value of `SETTINGS["size"]`, if the map is written out."""
        while isinstance(table, ast.Name):
            found = assigned(self._tree.body, table.id)
            if len(found) != 1:
                return None
            table = value_of(found[0])
        if not isinstance(table, ast.Dict) or not isinstance(key, ast.Constant):
            return None
        for name, value in zip(table.keys, table.values, strict=True):
            if isinstance(name, ast.Constant) and name.value == key.value:
                return self.of(value, owner, depth)
        return None

    def _chosen(self, node: ast.BoolOp | ast.IfExp, owner: ast.ClassDef | None) -> ast.expr | None:
        """Return the part that counts in `size or 50` and `50 if size is None else size`."""
        if isinstance(node, ast.BoolOp):
            *first, last = node.values
            given = next((each for each in first if not self._is_absent(each, owner)), last)
            return given if isinstance(node.op, ast.Or) else None
        parts = [node.body, node.orelse]
        named = [each for each in parts if self._is_absent(each, owner)]
        if len(named) == 1:
            parts.remove(named[0])
            return parts[0]
        asked = node.test.left if isinstance(node.test, ast.Compare) else node.test
        return next((p for p in parts if ast.dump(p) == ast.dump(asked)), None)

    def _is_absent(self, node: ast.expr, owner: ast.ClassDef | None) -> bool:
        """Return True for `None` and for a parameter that is None by default."""
        if isinstance(node, ast.Name) and owner is not None and node.id in parameters(owner):
            return is_none(self._argument(node.id, owner))
        return is_none(node)

    # where dotted names lead

    def scope(self, node: ast.expr, owner: ast.ClassDef | None, depth: int = 0) -> Scope | None:
        """Return the class or module that an expression stands for: `self`, `settings`."""
        if depth > LONGEST_CHAIN:
            return None
        if isinstance(node, ast.Name):
            return self._scope_of_name(node.id, owner, depth + 1)
        if isinstance(node, ast.Attribute):
            found = self.scope(node.value, owner, depth + 1)
            if found is None or node.attr == "__class__":
                return found
            return found.constants._inner_scope(found, node.attr, depth + 1)
        if isinstance(node, ast.BoolOp | ast.IfExp):
            chosen = self._chosen(node, owner)
            return self.scope(chosen, owner, depth + 1) if chosen is not None else None
        return self._scope_of_call(node, owner, depth + 1) if isinstance(node, ast.Call) else None

    def _scope_of_name(self, name: str, owner: ast.ClassDef | None, depth: int) -> Scope | None:
        if depth > LONGEST_CHAIN:
            return None
        if name in ("self", "cls"):
            return Scope(self, owner) if owner is not None else None
        if owner is not None and name in parameters(owner):
            given = self._argument(name, owner)
            return self.scope(given, None, depth) if given is not None else None
        if (known := class_of(self._tree, name)) is not None:
            return Scope(self, known)
        found = assigned(self._tree.body, name)
        if len(found) == 1:
            return self.scope(value_of(found[0]), None, depth)
        origin = self._imported(name)
        if origin is None:
            return None
        other, inner = origin
        return other._scope_of_name(inner, None, depth + 1) if inner else Scope(other, None)

    def _inner_scope(self, found: Scope, name: str, depth: int) -> Scope | None:
        if found.owner is None:
            return self._scope_of_name(name, None, depth)
        inner = (n for n in found.owner.body if isinstance(n, ast.ClassDef) and n.name == name)
        nested = next(inner, None)
        if nested is not None:
            return Scope(self, nested)
        made = self._members(found.owner, name)
        return self.scope(value_of(made[0]), found.owner, depth) if len(made) == 1 else None

    def _scope_of_call(
        self, node: ast.Call, owner: ast.ClassDef | None, depth: int
    ) -> Scope | None:
        if last_name(node.func) == "type" and len(node.args) == 1:
            return self.scope(node.args[0], owner, depth)
        found = self.scope(node.func, owner, depth)
        if found is not None:
            return found._replace(made=node) if found.owner is not None else None
        if not isinstance(node.func, ast.Name):
            return None
        other, name = self._imported(node.func.id) or (self, node.func.id)
        return other._returned(name, depth)

    def _returned(self, name: str, depth: int) -> Scope | None:
        """Return what a function such as `get_settings()` returns."""
        for function in functions(self._tree):
            if function.name == name:
                given = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
                only = given[0] if len(given) == 1 else None
                return self.scope(only, None, depth) if only is not None else None
        return None

    # the members of a class

    def member(self, found: Scope, name: str, depth: int) -> int | None:
        """Return the number of an attribute: given when created, set on `self`, or in the class."""
        owner = found.owner
        if owner is None:
            return self._named(name, None, depth)
        made = found.made or self._made
        if made is not None and last_name(made.func) == owner.name and not parameters(owner):
            given = next((k.value for k in made.keywords if k.arg == name), None)
            if given is not None:  # a dataclass or a model
                return self.of(given, None, depth)
        return Constants(self._tree, made, self._others)._only(
            self._members(owner, name), owner, depth
        )

    def _members(
        self, owner: ast.ClassDef, name: str, seen: frozenset[str] = frozenset()
    ) -> list[Assignment]:
        found = assigned_on_self(owner, name) or assigned(owner.body, name)
        for base in owner.bases if not found else ():
            known = class_of(self._tree, last_name(base))
            if known is not None and known.name not in seen:
                found = found or self._members(known, name, seen | {owner.name})
        return found

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

    # other modules

    def _imported(self, name: str) -> tuple[Constants, str] | None:
        """Return the module that a name was imported from, and its name there, `""` for itself."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._from(node, alias.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        other = self._others(alias.name, 0)
                        return (other, "") if other is not None else None
        return None

    def _from(self, node: ast.ImportFrom, name: str) -> tuple[Constants, str] | None:
        module = node.module or ""
        inner = self._others(f"{module}.{name}" if module else name, node.level)
        if inner is not None:
            return inner, ""  # `from package import module`
        other = self._others(module, node.level)
        return (other, name) if other is not None else None
