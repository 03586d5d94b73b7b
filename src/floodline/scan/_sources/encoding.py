"""Turns facts into plain values that `marshal` can write, and back.

The shapes come from the annotations of the model, so a new field needs nothing here. Facts are
written in columns: what repeats in one, like references and origins, is written once.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import chain, count, islice
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from floodline.scan._facts.model import At, FileFacts
from floodline.scan._sources.comments import Comment

Values = Sequence[Any]
OWN = 2  # path and module belong to the location of a file, not to its content


class Codec(NamedTuple):
    """How the values of one column are written, and how they are read."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


def pack_facts(facts: FileFacts, comments: Iterable[Comment]) -> bytes:
    """Write what a file says, without its path and module."""
    values = zip(facts[OWN:], _fields(), strict=True)
    notes = [(c.line, c.verb, c.codes, c.reason) for c in comments]
    return marshal.dumps(([codec.pack(value) for value, codec in values], notes))


def unpack_facts(data: bytes, path: str, module: str) -> tuple[FileFacts, list[Comment]]:
    """Read it for a file with that content; data of another shape raises Python's own errors."""
    packed, notes = marshal.loads(data)
    values = [codec.unpack(value) for value, codec in zip(packed, _fields(), strict=True)]
    return FileFacts(path, module, *values), [Comment(path, *note) for note in notes]


def _same(values: Any) -> Any:
    return values


PLAIN = Codec(_same, _same)
_NONE = id(None)


@cache
def _fields() -> list[Codec]:
    """Return how each field of the facts is written and read."""
    hints = get_type_hints(FileFacts)
    return [_field(hints[name]) for name in FileFacts._fields[OWN:]]


def _field(hint: Any) -> Codec:
    kind = get_args(hint)[0] if get_args(hint) else hint
    codec = _column(kind)
    if codec is PLAIN:
        return PLAIN
    if _parts(kind):
        codec = Codec(partial(_pack_rows, kind), partial(_unpack_rows, kind))
    return Codec(codec.pack, lambda packed: tuple(codec.unpack(packed)))


@cache
def _column(hint: Any) -> Codec:
    """Return how a column of values of one type is written."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    if hint is At:
        return Codec(lambda values: list(map(tuple, values)), _places)
    if get_origin(hint) is frozenset:
        told = tuple(kind for kind in get_args(kinds[0]) if hasattr(kind, "_fields"))
        return Codec(partial(_pack_sets, told), partial(_unpack_sets, told)) if told else PLAIN
    if get_origin(hint) is tuple and kinds[-1] is ...:
        inner = _column(kinds[0])
        if inner is PLAIN:
            return PLAIN
        return Codec(partial(_pack_several, inner), partial(_unpack_several, inner))
    if len(kinds) == 1 and hasattr(kinds[0], "_fields"):
        hint = kinds[0]  # or None
    if _parts(hint):
        return Codec(partial(_pack_shared, hint), partial(_unpack_shared, hint))
    return PLAIN


@cache
def _parts(kind: Any) -> tuple[Any, ...]:
    """Return the types of a record's parts; `()` if it is not one, or marshal can write it."""
    if hasattr(kind, "_fields"):
        return tuple(get_type_hints(kind).values())
    fixed = get_args(kind) if get_origin(kind) is tuple and get_args(kind)[-1] is not ... else ()
    return fixed if any(_column(part) is not PLAIN for part in fixed) else ()


def _places(rows: Values) -> Values:
    return list(map(partial(tuple.__new__, At), rows))


@cache
def _columns(kind: Any) -> tuple[Codec, ...]:
    return tuple(map(_column, _parts(kind)))


def _pack_rows(kind: Any, records: Iterable[Values]) -> list[Any]:
    columns = zip(zip(*records, strict=True), _columns(kind), strict=False)
    return [values if codec is PLAIN else codec.pack(values) for values, codec in columns]


def _unpack_rows(kind: Any, columns: list[Any]) -> Values:
    if not columns:
        return []
    unpacked = [
        values if codec is PLAIN else codec.unpack(values)
        for values, codec in zip(columns, _columns(kind), strict=True)
    ]
    rows = zip(*unpacked, strict=True)
    return list(map(partial(tuple.__new__, kind), rows) if hasattr(kind, "_fields") else rows)


def _numbered(values: Values) -> tuple[Values, list[int]]:
    """Return each of the values once, and the numbers of all; that of `None` is -1.

    Equal values are mostly the same object, and hashing them would take ten times as long.
    """
    known = dict(zip(map(id, values), values, strict=True))
    known.pop(_NONE, None)
    numbers = dict(zip(known, count(), strict=False))
    numbers[_NONE] = -1
    return list(known.values()), list(map(numbers.__getitem__, map(id, values)))


def _pack_shared(kind: Any, values: Values) -> Any:
    """Write each value once, then their numbers; if all are `None`, only how many."""
    known, numbers = _numbered(values)
    return (_pack_rows(kind, known), numbers) if known else len(values)


def _unpack_shared(kind: Any, packed: Any) -> Values:
    if isinstance(packed, int):
        return [None] * packed
    known = [*_unpack_rows(kind, packed[0]), None]
    return [known[number] for number in packed[1]]


def _pack_several(inner: Codec, values: Values) -> Any:
    """Write each tuple of such values once, with the lengths; if all are empty, only how many."""
    if not any(values):
        return len(values)
    known, numbers = _numbered(values)
    return inner.pack(list(chain.from_iterable(known))), list(map(len, known)), numbers


def _unpack_several(inner: Codec, packed: Any) -> Values:
    if isinstance(packed, int):
        return [()] * packed
    flat = iter(inner.unpack(packed[0]))
    known = [tuple(islice(flat, length)) for length in packed[1]]
    return [known[number] for number in packed[2]]


def _pack_sets(told: tuple[Any, ...], values: Values) -> tuple[Any, ...]:
    """Write sets of words and records, each record with the number of its type."""
    known, numbers = _numbered(values)
    rows = [
        [item if type(item) is str else (told.index(type(item)), *item) for item in value]
        for value in known
    ]
    return rows, numbers


def _unpack_sets(told: tuple[Any, ...], packed: tuple[list[Any], list[int]]) -> Values:
    known = [
        frozenset(item if type(item) is str else told[item[0]](*item[1:]) for item in value)
        for value in packed[0]
    ]
    return [known[number] for number in packed[1]]
