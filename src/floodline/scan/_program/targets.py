"""Finds the functions that a call may reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from typing import NamedTuple

from floodline.scan._facts.calls import INHERITED, METHOD, NAME, OWN_METHOD, Callee
from floodline.scan._facts.references import ANSWER, CLASS, MODULE, UNKNOWN_BASE
from floodline.scan._program.names import INSIDE, Names

COMMON = {
    "get", "pop", "append", "add", "update", "clear", "remove", "close", "items", "keys", "values",
    "run", "start", "stop", "send", "write", "read", "join", "set", "put", "copy", "format",
}  # fmt: skip
CANDIDATES = 3
OF_CLASSES = {"staticmethod", "classmethod"}
NOBODY: frozenset[str] = frozenset()
OWNERLESS = {MODULE, CLASS, UNKNOWN_BASE.kind}  # bases that mean the same in every function


class Target(NamedTuple):
    """What a call reaches: functions with their parameter shift, and the class it instantiates."""

    functions: tuple[tuple[str, int], ...]
    makes: str
    guessed: bool = False  # several methods have that name, and one of them is meant
    kin: bool = False  # all of them are in subclasses of one class that has it


NOTHING = Target((), "")


class Targets:
    """Finds targets, caching the answers for the current module: its calls are alike."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._callable = names.callable
        self._module = ""
        self._known: dict[tuple[str, Callee], Target] = {}
        self._owners: dict[str, str] = {}
        self._every: dict[str, dict[str, str]] = defaultdict(dict)  # the same for all modules
        self._symbols: dict[str, Target] = {}  # what keys mean, in every module
        self._kin: dict[str, bool] = {}
        self._inner: Set[str] = NOBODY

    def find(self, module: str, function: str, callee: Callee) -> Target:
        """Return what a call in a function of a module may reach.

        A plain name means the same in all functions without inner definitions; a method of what a
        module or a class names, everywhere; all else means the same in all methods of a class.
        """
        kind, name = callee.kind, callee.name
        if name not in self._callable:
            return NOTHING  # most: what is called is not in the program
        if module != self._module:
            self._enter(module)
        if kind == NAME:
            key = (function if name == "cls" or name in self._inner else "", callee)
        elif kind == METHOD and callee.base.kind in OWNERLESS:
            key = ("", callee)
        else:
            key = (self._owners.get(function) or self.owner(module, function), callee)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._find(module, function, callee)
        return known

    def _enter(self, module: str) -> None:
        self._module = module
        self._known = {}
        self._owners = self._every[module]
        self._inner = self._names.inner.get(module, NOBODY)

    def _find(self, module: str, function: str, callee: Callee) -> Target:
        kind, name, base = callee.kind, callee.name, callee.base
        if kind == NAME:
            return self._named(module, function, name)
        owner = self.owner(module, function)
        if kind in (OWN_METHOD, INHERITED):
            return self._on_class(f"{module}:{owner}", name, above=kind == INHERITED)
        found = self._names.base_class(module, owner, base)
        if found:
            target = self._on_class(found, name)
            unbound = base.kind == MODULE and self._names.resolve(module, base.name) == found
            return self._unbound(target) if unbound else target
        if base.kind == MODULE:
            source = self._names.resolve(module, base.name)
            if source.endswith(":"):
                return self._symbol(self._names.resolve(source[:-1], name))
            if not self._is_answer(source):
                return NOTHING
        alike = self._names.methods.get(name, ())
        if len(alike) > 1 and name not in COMMON:
            family = self._family(f"{module}:{owner}.{name}", alike, name)
            if family:
                return Target(tuple((key, 1) for key in family), "", guessed=True, kin=True)
        if len(alike) > CANDIDATES or name in COMMON or name.startswith("__"):
            return NOTHING
        outer = base.kind == ANSWER and self._names.is_outside(module, base.name)
        return Target(tuple((key, 1) for key in alike), "", guessed=outer or len(alike) > 1)

    def _is_answer(self, symbol: str) -> bool:
        """Return True if a name of a module means what a function of the program returns."""
        module, _, name = symbol.partition(":")
        made = self._names.globals.get(module, {}).get(name)
        return (
            made is not None
            and made.kind == ANSWER
            and not self._names.is_outside(module, made.name)
        )

    def _family(self, own: str, alike: list[str], name: str) -> list[str]:
        """Return all methods of a name, if they are of one family; the caller's own may not be.

        What each source is asked for in a method of that name is not the method that asks.
        """
        if self._are_kin(alike, name):
            return alike
        if own not in self._names.functions:
            return []  # most
        others = [key for key in alike if key != own]
        return others if len(others) < len(alike) and self._have_one_above(others, name) else []

    def _unbound(self, target: Target) -> Target:
        """Return what a call on the class itself reaches: a plain method gets no instance first."""
        plain = (
            (key, shift if OF_CLASSES & {*self._names.functions[key].decorators} else 0)
            for key, shift in target.functions
        )
        return target._replace(functions=tuple(plain))

    def _are_kin(self, methods: list[str], name: str) -> bool:
        """Return True if all methods of a name are in subclasses of one class that has it."""
        known = self._kin.get(name)
        if known is None:
            known = self._kin[name] = self._have_one_above(methods, name)
        return known

    def _have_one_above(self, methods: list[str], name: str) -> bool:
        first = methods[0].rpartition(".")[0]
        above = self._names.order(first) if first in self._names.classes else []
        top = next((kind for kind in reversed(above) if f"{kind}.{name}" in methods), "")
        family = {top, *self._names.children.get(top, ())}
        return bool(top) and all(method.rpartition(".")[0] in family for method in methods)

    def owner(self, module: str, function: str) -> str:
        """Return the class whose method a function is."""
        if module != self._module:
            self._enter(module)
        known = self._owners.get(function)
        if known is None:
            found = self._names.functions.get(f"{module}:{function}")
            known = found.owner if found else ""
            if found is None and function.endswith(":"):
                known = function.rstrip(":")
            self._owners[function] = known
        return known

    def _named(self, module: str, function: str, name: str) -> Target:
        scope = function if name in self._inner else ""
        while scope:
            key = f"{module}:{scope}{INSIDE}{name}"
            if key in self._names.functions:
                return Target(((key, 0),), "")
            scope = scope.rpartition(INSIDE)[0]
        if name == "cls" and (owner := self.owner(module, function)):
            return self._made(f"{module}:{owner}")
        return self._symbol(self._names.resolve(module, name))

    def _symbol(self, key: str) -> Target:
        known = self._symbols.get(key)
        if known is None:
            known = NOTHING
            if key in self._names.classes:
                known = self._made(key)
            elif key in self._names.functions:
                known = Target(((key, 0),), "")
            self._symbols[key] = known
        return known

    def _made(self, key: str) -> Target:
        found = self._names.method(key, "__init__") if key in self._names.classes else ""
        return Target(((found, 1),) if found else (), key)

    def _on_class(self, key: str, name: str, *, above: bool = False) -> Target:
        if key not in self._names.classes:
            return NOTHING
        if above:
            parents = self._names.order(key)[1:]
            found = next((m for p in parents if (m := self._names.method(p, name))), "")
            return Target(((found, 1),), "") if found else NOTHING
        own = self._names.method(key, name)
        if not own and name[:1].isupper():  # a class within the class
            return self._symbol(f"{key.partition(':')[0]}:{name}")
        reached = dict.fromkeys([own, *self._names.overrides(key, name)])
        return Target(tuple((item, 1) for item in reached if item), "")
