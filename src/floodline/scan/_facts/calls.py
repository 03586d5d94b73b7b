"""What a call names, what it passes on, and where the instance it creates goes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final, Literal

from floodline.scan._facts.origins import CONSTANT, UNKNOWN, Origin
from floodline.scan._facts.records import Struct
from floodline.scan._facts.references import (
    INSTANCE,
    MANY,
    MODULE,
    OBJECT,
    UNKNOWN_BASE,
    Base,
    Reference,
    base_in_module,
    of_object,
)

NAME: Final = "name"
OWN_METHOD: Final = "own"
INHERITED: Final = "inherited"
METHOD: Final = "method"
UNPACKED: Final = "**"  # in the place of the name of a keyword: its map may have any of them


class Callee(Struct, frozen=True, gc=False):
    """What a call names."""

    # name: a plain name; own: a method of the instance; inherited: the same by `super()`; method:
    # that of another object
    kind: Literal["name", "own", "inherited", "method"]
    name: str
    base: Base = UNKNOWN_BASE  # of a method


def _method(base: Base, name: str) -> Callee:
    return Callee(METHOD, name, base)


def _callees(kind: Literal["name", "own", "inherited"]) -> Callable[[str], Callee]:
    return lru_cache(MANY)(partial(Callee, kind))


by_name: Final = _callees(NAME)
own_method: Final = _callees(OWN_METHOD)
inherited: Final = _callees(INHERITED)
method_of: Callable[[Base, str], Callee] = lru_cache(MANY)(_method)


def by_dotted(text: str) -> Callee:
    """Return the callee of a dotted name of the module."""
    head, _, tail = text.rpartition(".")
    return method_of(base_in_module(head), tail) if head else by_name(tail)


def named_by(ref: Reference) -> Callee | None:
    """Return what is called if a reference means a function; locals never do."""
    if ref.kind == MODULE:
        return by_name(ref.name)
    if ref.kind == INSTANCE:
        return own_method(ref.name)
    return method_of(ref.base, ref.name) if ref.kind == OBJECT else None


class Argument(Struct, frozen=True, gc=False):
    """An argument of a call: the origin of its value, and the container or function it is."""

    origin: Origin
    ref: Reference | None = None


@lru_cache(MANY)
def argument(origin: Origin, ref: Reference | None) -> Argument:
    """Return the argument of this origin that is this container or function, if it is any."""
    return Argument(origin, ref)


FIXED: Final = argument(CONSTANT, None)
UNSEEN: Final = argument(UNKNOWN, None)


class Kept(Struct, frozen=True, gc=False):
    """Where the instance that a call creates goes."""

    # slot: into a name or an attribute; body: into an attribute of the class; entry: into a
    # container that is known; item: into some other one; member: by a method that adds; default:
    # only if nothing else is given; main: made where a file is run
    how: Literal[
        "local", "argument", "returned", "dropped", "decorator", "with", "main",
        "slot", "body", "entry", "item", "member", "default",
    ]  # fmt: skip
    ref: Reference | None = None  # of a slot, of the container of an entry, of an item by its name

    def in_slot(self, *kinds: str) -> bool:
        """Return True if it goes into a slot of one of these kinds of references."""
        return self.how == "slot" and self.ref is not None and self.ref.kind in kinds


HERE: Final = Kept("local")
GIVEN: Final = Kept("argument")
RETURNED: Final = Kept("returned")
DROPPED: Final = Kept("dropped")
DECORATING: Final = Kept("decorator")
ENTERED: Final = Kept("with")
IN_MAIN: Final = Kept("main")
IN_BODY: Final = Kept("body")
ADDED: Final = Kept("member")
DEFAULT: Final = Kept("default")
IN_ITEM: Final = Kept("item")


def in_item(name: str) -> Kept:
    """Return what is kept in some container, under a constant name or `""`."""
    return Kept("item", of_object(UNKNOWN_BASE, name)) if name else IN_ITEM


def in_slot(ref: Reference) -> Kept:
    """Return what is kept by a name or an attribute."""
    return Kept("slot", ref)


def in_entry(ref: Reference) -> Kept:
    """Return what is kept in a container."""
    return Kept("entry", ref)
