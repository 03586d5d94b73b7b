"""Keys that were refused, or are there already: what comes before a key is put in."""

from __future__ import annotations

from floodline.scan._link import Program
from floodline.scan._model import Change, FileFacts
from floodline.scan._proof import ASSUMED, REFUTED


def refusal(program: Program, file: FileFacts, change: Change) -> tuple[str, str] | None:
    """Say what narrows the keys that reach a change, `None` if nothing is seen to.

    An item that is only replaced where the key is there makes nothing grow. A key that another
    table has to have, or a call that is given it has to know, comes with the event and may still
    be one of a few.
    """
    for mark in file.marks:
        if mark.kind == "refused" and _is_before(mark.function, mark.at.line, change):
            if mark.detail != change.key:
                continue
            own = program.key(file, change.function, change.ref)
            if mark.name and own == program.key(file, mark.function, mark.name):
                return REFUTED, "only keys that are there already"
            return ASSUMED, "others are refused before"
    if "answer" in change.marks:
        return ASSUMED, "and a call that is given it may refuse it"
    for other in file.changes:
        asks = other.verb == "lookup" and other.key == change.key and other.ref != change.ref
        if asks and _is_before(other.function, other.at.line, change):
            return ASSUMED, "and has to be in another table first"
    return None


def _is_before(function: str, line: int, change: Change) -> bool:
    return function == change.function and line < change.at.line
