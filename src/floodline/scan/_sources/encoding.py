"""Turns facts into plain values that `marshal` can write, and back.

The shapes come from the annotations of the model, so a new field needs nothing here. Facts are
written in columns. What repeats in a file, like references and origins, is in one table per type,
and the columns of all fields and of other tables have its numbers.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from floodline.scan._facts.model import At, FileFacts
from floodline.scan._sources.comments import Comment
from floodline.scan._sources.shapes import (
    NUMBERS,
    OWN,
    PLACES,
    PLAIN,
    SAME,
    SAMES,
    Shape,
    maker,
    plan,
)

Values = Sequence[Any]
Table = dict[int, Any]  # by identity: equal values are mostly the same object, and hashing is slow
NUMBER = "i"
VERSION = 4  # of the format of marshal: every Python that can run this reads it
SMALL = 256  # tables up to this size have numbers of one byte
_NONE = id(None)
_NUMBERS = {_NONE: 0}  # of a table without values
_PLACE = maker(At)


def pack_facts(facts: FileFacts, comments: Iterable[Comment]) -> bytes:
    """Write what a file says, without its path and module."""
    fields, shapes = plan()
    tables: list[Table] = [{_NONE: None} for _ in shapes]
    split: list[tuple[Values, tuple[int, ...], list[Any]]] = []
    said: Values = facts[OWN:]
    for (make, parts), value in zip(fields, said, strict=True):
        if make is not None and not value:
            split.append(((), (), []))
            continue
        columns: Values = [value] if make is None else list(zip(*value, strict=True))
        split.append((_entered(columns, parts, tables), parts, []))
    for number, shape in enumerate(shapes):
        if len(tables[number]) == 1:
            split.append(((), (), []))
            continue
        values, more = _complete(shape, tables, number)
        columns = _columns(shape, values)
        split.append((_entered(columns, shape.parts, tables), shape.parts, more))
    numbers = [
        dict(zip(table, range(len(table)), strict=True)) if len(table) > 1 else _NUMBERS
        for table in tables
    ]
    packed: list[list[Any]] = []
    for number, (columns, parts, more) in enumerate(split, -len(fields)):
        written = _written(columns, parts, numbers, numbers[number]) if columns else []
        packed.append(written + more)
    notes = [(c.line, c.verb, c.codes, c.reason) for c in comments]
    return marshal.dumps((packed, notes), VERSION)


def _entered(columns: Values, parts: tuple[int, ...], tables: list[Table]) -> Values:
    """Enter the values of columns in the tables of their shapes, which have them by identity.

    Return the columns with these identities in the place of such values.
    """
    entered: list[Any] = []
    for column, part in zip(columns, parts, strict=False):
        if part >= 0:
            known = list(map(id, column))
            tables[part].update(zip(known, column, strict=True))
            entered.append(known)
        else:
            entered.append(column)
    return entered


def _columns(shape: Shape, values: Values) -> Values:
    """Return the columns of a table."""
    if shape.kind == "record":
        return list(zip(*values, strict=True))
    return [list(chain.from_iterable(values))] if shape.kind == "tuple" else []


def _complete(shape: Shape, tables: list[Table], number: int) -> tuple[Values, list[Any]]:
    """Return all values of a table, and what is written besides its columns."""
    values = list(tables[number].values())[1:]
    if shape.kind == "tuple":
        return values, [list(map(len, values))]
    if shape.kind == "set":
        told = shape.told
        return values, [
            [item if type(item) is str else (told.index(type(item)), *item) for item in value]
            for value in values
        ]
    if shape.inner < 0:
        return values, []
    levels = [level for level in _levels(values, tables[number], shape) if level]
    if len(levels) > 1:  # else they are in order
        values = list(chain.from_iterable(levels))
        tables[number] = {_NONE: None, **dict(zip(map(id, values), values, strict=True))}
    return values, [list(map(len, levels))]


def _levels(values: Values, table: Table, shape: Shape) -> Iterator[Values]:
    """Return values that contain others of their type after those others, by their depth.

    The others need not be in the table of these values yet.
    """
    place, single = shape.inner, shape.parts[shape.inner] == SAME
    deep = [value for value in values if value[place]]
    if not deep:
        yield values
        return
    level = [value for value in values if not value[place]]
    known = set(table)
    for value in deep:  # grows meanwhile
        for inner in (value[place],) if single else value[place]:
            if id(inner) not in known:
                known.add(id(inner))
                (deep if inner[place] else level).append(inner)
    yield level
    placed = set(map(id, level))
    while deep:
        level, later = list[Any](), list[Any]()
        for value in deep:
            held = (value[place],) if single else value[place]
            (level if placed.issuperset(map(id, held)) else later).append(value)
        yield level
        placed.update(map(id, level))
        deep = later


def _written(
    columns: Values, parts: tuple[int, ...], numbers: list[dict[int, int]], same: dict[int, int]
) -> list[Any]:
    written: list[Any] = []
    for column, part in zip(columns, parts, strict=False):
        if part == PLAIN:
            written.append(column)
        elif part == NUMBERS:
            written.append(array(NUMBER, column).tobytes())
        elif part == PLACES:
            written.append(array(NUMBER, chain.from_iterable(column)).tobytes())
        elif part == SAMES:
            flat = array(NUMBER, map(same.__getitem__, map(id, chain.from_iterable(column))))
            written.append((list(map(len, column)), flat.tobytes()) if flat else None)
        else:
            known = same if part == SAME else numbers[part]
            each = map(known.__getitem__, map(id, column) if part == SAME else column)
            small = len(known) <= SMALL
            written.append(bytes(each) if small else array(NUMBER, each).tobytes())
    return written


def unpack_facts(data: bytes, path: str, module: str) -> tuple[FileFacts, list[Comment]]:
    """Read it for a file with that content; data of another shape raises Python's own errors."""
    packed, notes = marshal.loads(data)
    fields, shapes = plan()
    tables: list[list[Any]] = [[None] for _ in shapes]
    for number in range(len(shapes) - 1, -1, -1):
        if written := packed[len(fields) + number]:
            _fill(tables[number], shapes[number], written, tables)
    values: list[Any] = []
    for (make, parts), written in zip(fields, packed[: len(fields)], strict=True):
        if make is not None:
            columns = _read(written, parts, tables)
            values.append(tuple(map(make, zip(*columns, strict=True))))
        elif parts[0] == PLAIN:
            values.append(written[0])
        else:
            values.append(tuple(_read(written, parts, tables)[0]))
    return FileFacts(path, module, *values), [Comment(path, *note) for note in notes]


def _fill(table: list[Any], shape: Shape, written: list[Any], tables: list[list[Any]]) -> None:
    """Read the values of a table."""
    if shape.kind == "set":
        told = shape.told
        table += [
            frozenset(item if type(item) is str else told[item[0]](*item[1:]) for item in value)
            for value in written
        ]
        return
    columns = _read(written, shape.parts, tables)
    if shape.kind == "tuple":
        flat = iter(columns[0])
        table += [tuple(islice(flat, length)) for length in written[-1]]
    elif shape.inner < 0:
        table += map(shape.make, zip(*columns, strict=True))
    else:
        _fill_by_levels(table, shape, columns, written[-1])


def _fill_by_levels(table: list[Any], shape: Shape, columns: Values, levels: list[int]) -> None:
    """Read values that contain others of the table, which come before them."""
    place = shape.inner
    inner: Iterator[Any]  # of a level: read when those before it are in the table
    if shape.parts[place] == SAME:
        small = sum(levels) < SMALL
        numbers = columns[place] if small else array(NUMBER, columns[place])
        inner = map(table.__getitem__, numbers)
    else:
        lengths, data = columns[place] or ([0] * sum(levels), b"")
        flat = map(table.__getitem__, array(NUMBER, data))
        inner = (tuple(islice(flat, length)) for length in lengths)
    rows = [iter(column) for column in (*columns[:place], inner, *columns[place + 1 :])]
    for length in levels:
        table += list(map(shape.make, islice(zip(*rows, strict=True), length)))


def _read(written: list[Any], parts: tuple[int, ...], tables: list[list[Any]]) -> list[Any]:
    """Read columns; those with values of the same table are left as they are."""
    columns: list[Any] = []
    for column, part in zip(written, parts, strict=False):
        if part >= 0:
            known = tables[part]
            numbers = column if len(known) <= SMALL else array(NUMBER, column)
            columns.append(list(map(known.__getitem__, numbers)))
        elif part == NUMBERS:
            columns.append(array(NUMBER, column))
        elif part == PLACES:
            each = iter(array(NUMBER, column))
            columns.append(list(map(_PLACE, zip(each, each, each, each, strict=True))))
        else:
            columns.append(column)
    return columns
