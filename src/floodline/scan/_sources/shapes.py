"""The shapes of facts, taken from the annotations of the model: what their columns hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from floodline.scan._facts.model import At, FileFacts

OWN: Final = 2  # path and module belong to the location of a file, not to its content

# How a column is written: as it is, as numbers, or as four numbers each. A number from 0 means that
# its values are in the table of that shape; the last two, in the same table: one each, or a tuple.
PLAIN: Final = -1
NUMBERS: Final = -2
PLACES: Final = -3
SAME: Final = -4
SAMES: Final = -5


class Shape(NamedTuple):
    """Values that are written once per file, in a table of their own."""

    kind: str  # record, tuple or set
    make: Callable[[Any], Any]  # from a plain tuple of the parts
    parts: tuple[int, ...]  # how the columns of a record are written, or the items of a tuple
    inner: int = -1  # the column of a record that holds values of the same table
    told: tuple[Any, ...] = ()  # the types of the records in a set


class Field(NamedTuple):
    """A field of the facts: rows of columns, one column, or a plain value."""

    make: Callable[[Any], Any] | None  # of a row; None for a single column
    parts: tuple[int, ...]


class Plan(NamedTuple):
    """How a file is written; a shape only refers to shapes that come later, and to itself."""

    fields: tuple[Field, ...]
    shapes: tuple[Shape, ...]


@cache
def plan() -> Plan:
    """Return how the facts of a file are written."""
    found = _Finder()
    hints = get_type_hints(FileFacts)
    fields = [found.field(hints[name]) for name in FileFacts._fields[OWN:]]
    last = len(found.shapes) - 1
    shapes = [shape._replace(parts=_turned(shape.parts, last)) for shape in found.shapes[::-1]]
    return Plan(
        tuple(field._replace(parts=_turned(field.parts, last)) for field in fields), tuple(shapes)
    )


def _turned(parts: tuple[int, ...], last: int) -> tuple[int, ...]:
    """Number shapes from the end: inner ones are found first."""
    return tuple(last - part if part >= 0 else part for part in parts)


class _Finder:
    """Numbers shapes as they are completed."""

    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self._known: dict[Any, int] = {}
        self._open: list[Any] = []

    def field(self, hint: Any) -> Field:
        if get_origin(hint) is not tuple:
            return Field(None, (PLAIN,))
        kind = get_args(hint)[0]
        if not _is_record(kind) and get_origin(kind) is not tuple:
            return Field(None, (self._part(kind),))
        parts = tuple(map(self._part, _parts(kind)))
        if not _is_record(kind) and all(part in (PLAIN, NUMBERS) for part in parts):
            return Field(None, (PLAIN,))
        return Field(maker(kind), parts)

    def _part(self, hint: Any) -> int:
        """Return how a column of values of one type is written."""
        if hint is int:
            return NUMBERS
        if hint is At:
            return PLACES
        several = get_origin(hint) is tuple
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        if len(kinds) == 1 and _is_record(kinds[0]) and not several:
            hint = kinds[0]  # or None
        if hint in self._open:
            return SAME
        if several and kinds[0] in self._open:
            return SAMES
        if hint not in self._known:
            shape = self._shape(hint)
            if shape is None:
                return PLAIN
            self._known[hint] = len(self.shapes)
            self.shapes.append(shape)
        return self._known[hint]

    def _shape(self, hint: Any) -> Shape | None:
        origin, kinds = get_origin(hint), get_args(hint)
        if origin is frozenset:
            told = tuple(kind for kind in get_args(kinds[0]) if _is_record(kind))
            return Shape("set", frozenset, (), -1, told) if told else None
        if origin is tuple and kinds[-1] is ...:
            item = self._part(kinds[0])
            return None if item in (PLAIN, NUMBERS) else Shape("tuple", tuple, (item,))
        if not _is_record(hint) and origin is not tuple:
            return None
        self._open.append(hint)
        parts = tuple(map(self._part, _parts(hint)))
        self._open.pop()
        if not _is_record(hint) and all(part in (PLAIN, NUMBERS) for part in parts):
            return None
        inner = next((n for n, part in enumerate(parts) if part in (SAME, SAMES)), -1)
        return Shape("record", maker(hint), parts, inner)


def _is_record(kind: Any) -> bool:
    return hasattr(kind, "_fields")


def _parts(kind: Any) -> tuple[Any, ...]:
    """Return the types of a record's parts."""
    return tuple(get_type_hints(kind).values()) if _is_record(kind) else get_args(kind)


def maker(kind: Any) -> Callable[[Any], Any]:
    """Return what makes a record from a plain tuple."""
    return partial(tuple.__new__, kind) if _is_record(kind) else tuple
