"""What one file says, or why it cannot be read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from floodline.scan._facts.reasons import Reason
from floodline.scan._sources.comments import Comment, comments
from floodline.scan._sources.files import Skip, decoded

if TYPE_CHECKING:
    from floodline.scan._facts.model import FileFacts

MANY_BYTES = 8 * 1024 * 1024
MANY_ITEMS = 400_000  # a data table: its tree would take 100 MB and say nothing


class RefusedError(Exception):
    """A file is not worth reading."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


UNREADABLE = (
    RefusedError, SyntaxError, RecursionError, MemoryError, OSError, ValueError, LookupError,
)  # fmt: skip


def content_of(path: Path) -> bytes:
    """Return the content of a file, unless it is too large to be read."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 -- `path.open` takes twice as long
        size = os.fstat(file.fileno()).st_size
        if size > MANY_BYTES:
            raise RefusedError(Skip.TOO_LARGE(str(size), str(MANY_BYTES)))
        data = file.read()
    if size > MANY_ITEMS and (items := data.count(b",")) > MANY_ITEMS:
        raise RefusedError(Skip.TABLE(str(items), str(MANY_ITEMS)))
    return data


def facts_of(data: bytes, path: str, module: str) -> tuple[FileFacts, list[Comment]]:
    """Read a file's facts and comments from its content; raises one of `UNREADABLE`."""
    # a cached report is shown without this, and importing it takes longer
    from floodline.scan._frontends.python.reader import read

    text = decoded(data)
    return read(text, path, module), comments(path, text)


def why_unreadable(error: BaseException) -> Reason:
    """Return why a file cannot be read."""
    if isinstance(error, RefusedError):
        return error.reason
    if isinstance(error, SyntaxError):
        if error.lineno:
            return Skip.SYNTAX_IN_LINE(str(error.lineno), error.msg)
        return Skip.SYNTAX(error.msg)
    if isinstance(error, RecursionError | MemoryError):
        return Skip.TOO_DEEP()
    if isinstance(error, UnicodeDecodeError):
        return Skip.ENCODING(error.encoding, error.reason, str(error.start))
    if isinstance(error, OSError):
        return Skip.SYSTEM(error.strerror or str(error))
    return Skip.NOT_SOURCE(str(error))
