"""The calls that a front end marked, with everything else their file calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from floodline.scan._facts.model import Call, FileFacts, Mark, Sign
from floodline.scan._proofs.judge import Judge


def marked_calls(judge: Judge, kind: Sign) -> Iterator[tuple[FileFacts, Mark, Call, set[str]]]:
    """Yield every marked call, and the last names of all calls of its file."""
    for file, marks in groupby(judge.marks(kind), key=lambda found: found[0]):
        calls = {(c.function, c.line, c.callee): c for c in file.calls if not c.again}
        names = {call.callee.name for call in file.calls}
        for _, mark in marks:
            call = calls.get((mark.function, mark.at.line, mark.callee)) if mark.callee else None
            if call:
                yield file, mark, call, names
