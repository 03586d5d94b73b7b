"""Turns facts into bytes and back: pickles that know the records of the model and nothing else.

Records are written once per file, however often they are used. Rows of the facts are written as
columns, so that only what they refer to takes the time that a record takes.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from io import BytesIO
from itertools import starmap
from typing import Any, Final

from floodline.scan._facts import calls, circumstances, model, origins, references
from floodline.scan._facts.model import FileFacts
from floodline.scan._facts.records import Struct, astuple
from floodline.scan._sources.comments import Comment

PROTOCOL: Final = 5  # every Python that can run this reads it
OWN: Final = 2  # path and module belong to the location of a file, not to its content

_RECORDS: Final = {
    (kind.__module__, kind.__name__): kind
    for module in (model, calls, circumstances, origins, references)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Struct) and kind is not Struct
}
_REDUCERS: Final[dict[type, Callable[[Any], Any]]] = {
    kind: kind.__reduce__ for kind in _RECORDS.values()
}


class _Unpickler(pickle.Unpickler):
    """Reads records, and refuses everything else that a pickle can name."""

    def find_class(self, module: str, name: str) -> type[Struct]:
        return _RECORDS[module, name]


def pack_facts(facts: FileFacts, comments: Iterable[Comment]) -> bytes:
    """Write what a file says, without its path and module."""
    columns = [_split(value) for value in facts[OWN:]]
    stream = BytesIO()
    pickler = pickle.Pickler(stream, PROTOCOL)
    pickler.dispatch_table = _REDUCERS
    pickler.dump((columns, [comment[1:] for comment in comments]))
    return stream.getvalue()


def _split(value: Any) -> Any:
    """Return rows as a list: what they are, and their columns."""
    if type(value) is tuple and value and type(value[0]) in _REDUCERS:
        return [type(value[0]), *zip(*map(astuple, value), strict=True)]
    return value


def unpack_facts(data: bytes, path: str, module: str) -> tuple[FileFacts, list[Comment]]:
    """Read it for a file with that content; data of another shape raises a `ValueError`."""
    try:
        columns, notes = _Unpickler(BytesIO(data)).load()
        facts = FileFacts(path, module, *map(_joined, columns))
        return facts, [Comment(path, *note) for note in notes]
    except Exception as error:
        raise ValueError(f"these facts are damaged: {error!r}") from error


def _joined(value: Any) -> Any:
    if type(value) is list:
        make, *columns = value
        return tuple(starmap(make, zip(*columns, strict=True)))
    return value
