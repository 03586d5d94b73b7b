"""Which container is meant: a name of the module, an attribute of an object, or a local.

Both records are created by the functions below. Most cache them: a program says the same few
thousand things again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final, Literal

from floodline.scan._facts.records import Struct

MANY: Final = 8192  # cached per kind: more than a large file has

# kinds of references, and of the objects whose attribute is meant
MODULE: Final = "module"
INSTANCE: Final = "instance"
LOCAL: Final = "local"
OBJECT: Final = "object"
OWN: Final = "own"
CLASS: Final = "class"
ANSWER: Final = "answer"
INNER: Final = "inner"
NOBODY: Final = "nobody"


class Base(Struct, frozen=True, gc=False):
    """The object whose attribute or method is meant."""

    # instance: this one; own: what an attribute of it holds; module: what a (dotted) name of the
    # module means; class: one of this class; answer: what a function returns; inner: what an
    # attribute of another base holds; nobody: not known
    kind: Literal["instance", "own", "module", "class", "answer", "inner", "nobody"]
    name: str = ""
    inner: Base | None = None


SELF: Final = Base(INSTANCE)
UNKNOWN_BASE: Final = Base(NOBODY)


class Reference(Struct, frozen=True, gc=False):
    """A container, as a file names it; linking finds out which one it is."""

    kind: Literal["module", "instance", "local", "object"]
    name: str  # of the attribute or variable; "" is the instance itself
    base: Base = UNKNOWN_BASE  # of an attribute of another object
    function: str = ""  # of a local


ITSELF: Final = Reference(INSTANCE, "")


def _attribute(base: Base, name: str) -> Reference:
    return Reference(OBJECT, name, base)


def of_function(function: str, name: str) -> Reference:
    """Return a local; hardly any is asked for twice, as scopes keep those of their names."""
    return Reference(LOCAL, name, UNKNOWN_BASE, function)


def _inside(base: Base, name: str) -> Base:
    return Base(INNER, name, base)


def _references(kind: Literal["module", "instance"]) -> Callable[[str], Reference]:
    return lru_cache(MANY)(partial(Reference, kind))


def _bases(kind: Literal["module", "own", "class", "answer"]) -> Callable[[str], Base]:
    return lru_cache(MANY)(partial(Base, kind))


in_module: Final = _references(MODULE)
of_instance: Final = _references(INSTANCE)
of_object: Callable[[Base, str], Reference] = lru_cache(MANY)(_attribute)

base_in_module: Final = _bases(MODULE)
base_of_instance: Final = _bases(OWN)
base_of_class: Final = _bases(CLASS)
base_of_answer: Final = _bases(ANSWER)
base_inside: Callable[[Base, str], Base] = lru_cache(MANY)(_inside)
