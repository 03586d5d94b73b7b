"""Finds the containers that a claim's symbol means, and all that the file does with them."""

from __future__ import annotations

import ast
from typing import NamedTuple

from floodline._python.assignments import class_of
from floodline._python.kinds import BASES
from floodline.scan._facts.model import Change, Limit
from floodline.scan._facts.references import (
    INSTANCE,
    ITSELF,
    MODULE,
    Reference,
    in_module,
    of_instance,
)
from floodline.scan._facts.vocabulary import MAKERS
from floodline.verify._source.claimed_code import Source, base_name


class Container(NamedTuple):
    """A place that holds items, with the classes whose methods may use it."""

    ref: Reference
    classes: list[str]
    open_base: bool  # a base class is not in this file, and may add to it too

    @property
    def name(self) -> str:
        """Return what people call it: `Class.attribute`."""
        return ".".join(filter(None, (*self.classes[:1], self.ref.name)))


class Containers:
    """Finds the containers of one file."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def of(self, symbol: str) -> list[Container] | None:
        """Return the containers of a class, function or attribute; None if there is none."""
        facts, source = self._source.facts, self._source
        if any(c.name == symbol for c in facts.classes):
            return self._of_class(symbol)
        if symbol in source.owners:
            return self._of_function(symbol)
        owner, _, attribute = symbol.rpartition(".")
        if any(c.name == owner for c in facts.classes):
            classes, unknown = source.chain(owner)
            found = [Container(of_instance(attribute), classes, unknown)]
        else:
            found = [Container(in_module(symbol), [], False)]
        return found if source.makings(found[0].ref, found[0].classes) else None

    def _of_class(self, name: str) -> list[Container]:
        classes, unknown = self._source.chain(name)
        refs = [
            c.ref
            for c in self._source.facts.containers
            if c.ref.kind == INSTANCE and self._owner(c.function) in classes
        ]
        refs += [c.ref for c in self._source.facts.changes if self._owner(c.function) in classes]
        for each in classes:
            for node in ast.walk(class_of(self._source.tree, each) or self._source.tree):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    refs.append(of_instance(node.attr))
        bases = {
            base_name(base)
            for c in self._source.facts.classes
            if c.name in classes
            for base in c.bases
        }
        own = [Container(ITSELF, classes, unknown)] if bases & BASES else []
        found = [Container(ref, classes, unknown) for ref in dict.fromkeys(refs) if ref.name]
        return own + [c for c in found if self._is_container(c)]

    def _of_function(self, name: str) -> list[Container]:
        owner = self._owner(name)
        classes, unknown = self._source.chain(owner) if owner else ([], False)
        inside = self._source.reached(name)
        touched = [c.ref for c in self._source.facts.changes if c.function in inside]
        touched += [c.ref for c in self._source.facts.limits if c.function in inside]
        found = [
            Container(ref, classes if ref.kind == INSTANCE else [], unknown)
            for ref in dict.fromkeys(touched)
        ]
        return [c for c in found if self._is_container(c)]

    def _is_container(self, container: Container) -> bool:
        """Return True if something is added to it, or it was created with a bound."""
        if container.ref.kind not in (INSTANCE, MODULE):
            return False
        known = {c.ref for c in self._source.facts.containers}
        made = self._source.made_bounds(container.ref, container.classes)
        return bool(made) or container.ref in known

    def _owner(self, function: str) -> str:
        return self._source.owners.get(function, function.rstrip(":"))

    def changes(self, container: Container) -> list[Change]:
        """Return what adds to a container and takes from it."""
        return [c for c in self._source.facts.changes if self._is_of(container, c)]

    def limits(self, container: Container) -> list[Limit]:
        """Return the comparisons of its size."""
        return [limit for limit in self._source.facts.limits if self._is_of(container, limit)]

    def twin_limits(self, container: Container, changes: list[Change]) -> list[Limit]:
        """Return the comparisons of a twin's size: it gets every key that this container gets.

        What their branches remove here counts for this container, as two maps by the same key
        that lose the same keys are equally long.
        """
        added = _keys(growth(changes))
        if not added:
            return []
        refs = {limit.ref for limit in self._source.facts.limits if not limit.depth}
        twins = [container._replace(ref=ref) for ref in refs - {container.ref}]
        return [
            limit
            for twin in twins
            if _keys(growth(self.changes(twin))) == added
            for limit in self.limits(twin)
        ]

    def _is_of(self, container: Container, fact: Change | Limit) -> bool:
        if fact.depth or fact.ref != container.ref:
            return False
        return fact.ref.kind == MODULE or self._owner(fact.function) in container.classes

    def feeders(self, changes: list[Change]) -> list[str]:
        """Return the functions that outside code calls to add to a container."""
        return [name for change in growth(changes) for name in self._entries(change.function)]

    def _entries(self, function: str) -> list[str]:
        """Return the public functions that call a private one, or the function itself."""
        if not is_private(function):
            return [function]
        calling = [f for f in self._source.owners if function in self._source.reached(f)]
        return [f for f in calling if not is_private(f)] or [function]


def _keys(grows: list[Change]) -> set[tuple[str, str]]:
    """Return the keys that are set, with the functions that set them; `set()` if not all are."""
    plain = all(c.op == "[]=" and c.key_text for c in grows)
    return {(c.function, c.key_text) for c in grows} if plain else set()


def is_private(function: str) -> bool:
    """Return True if a function's name says that others should not call it."""
    return function.rpartition(".")[2].startswith("_")


def growth(changes: list[Change]) -> list[Change]:
    """Return what adds to a container after it was set up."""
    return [
        c
        for c in changes
        if c.verb == "grow"
        and c.function.rpartition(".")[2] not in MAKERS
        and c.function
        and c.function[-1] != ":"
    ]
