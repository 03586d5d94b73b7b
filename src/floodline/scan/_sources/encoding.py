"""Facts as plain values that `marshal` writes, and back.

The shapes come from the annotations of the model, so a new field needs nothing here.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, get_args, get_type_hints

from floodline.scan._facts.model import At, FileFacts
from floodline.scan._sources.comments import Comment

Pack = Callable[[Any], Any]
OWN = 2  # path and module belong to the place of a file, and not to its content


def pack_facts(facts: FileFacts, comments: Iterable[Comment]) -> bytes:
    """Write what a file says, without its path and module."""
    rows = [pack(value) for value, (pack, _) in zip(facts[OWN:], _columns(), strict=True)]
    notes = [(c.line, c.verb, c.codes, c.reason) for c in comments]
    return marshal.dumps((rows, notes))


def unpack_facts(data: bytes, path: str, module: str) -> tuple[FileFacts, list[Comment]]:
    """Read it for a file of that content; data of another shape raises an error of Python's."""
    rows, notes = marshal.loads(data)
    columns = _columns()
    values = [unpack(value) for value, (_, unpack) in zip(rows, columns, strict=True)]
    return FileFacts(path, module, *values), [Comment(path, *note) for note in notes]


@cache
def _columns() -> list[tuple[Pack, Pack]]:
    """Return for each field of the facts how it is written and how it is read."""
    hints = get_type_hints(FileFacts)
    return [_column(get_args(hints[name])) for name in FileFacts._fields[OWN:]]


def _column(kinds: tuple[Any, ...]) -> tuple[Pack, Pack]:
    kind: Any = kinds[0] if kinds else None
    if not hasattr(kind, "_fields"):
        return _same, _same
    places = [n for n, hint in enumerate(get_type_hints(kind).values()) if hint is At]
    new = partial(tuple.__new__, kind)
    if not places:
        return (lambda items: list(map(tuple, items))), (lambda rows: tuple(map(new, rows)))
    at = places[0]
    return partial(_with_place, at, tuple), partial(_records, at, new)


def _same(value: Any) -> Any:
    return value


def _with_place(at: int, make: Pack, items: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(*item[:at], make(item[at]), *item[at + 1 :]) for item in items]


def _records(at: int, new: Pack, rows: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(map(new, _with_place(at, partial(tuple.__new__, At), rows)))
