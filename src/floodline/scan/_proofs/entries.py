"""Which entries a removal takes: the very one that was put in, an old one, or all at once."""

from __future__ import annotations

from floodline._python.mutations import TAKES_NAMED_OF_MAP
from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._program.program import Held, Program


def encloses(function: str, change: Change, grown: list[tuple[FileFacts, Change]]) -> bool:
    """Return True if a function removes the very entry that functions inside it put in."""
    inside = f"{function}.<locals>."
    return bool(change.key_text) and all(
        f"{f.module}:{c.function}".startswith(inside) and c.key_text == change.key_text
        for f, c in grown
    )


def is_lazy(held: Held, file: FileFacts, change: Change, clocks: dict[str, int]) -> bool:
    """Return True if an entry is removed only where its age is checked, on a read of that entry."""
    named = change.op in TAKES_NAMED_OF_MAP and change.key_text
    if not named or change.marks & {"for", "while"}:
        return False
    asked = clocks.get(f"{file.module}:{change.function}")
    if asked is None or asked > change.at.line or not change.marks & {"branch", "aged"}:
        return False
    added = {c.key_text for _, c in held.changes if c.verb == "grow" and not c.depth
             and c.function == change.function}  # fmt: skip
    if not added:
        return True
    own = any(mark.kind == "ttl" and mark.function == change.function for _, mark in held.signs)
    return own and change.key_text in added  # if not, it makes room for another entry


def begins_anew(change: Change, growing: list[tuple[FileFacts, Change]]) -> bool:
    """Return True if the function that grows it first creates it again, each time."""
    return change.verb == "replace" and any(
        c.function == change.function and c.at.line > change.at.line and not change.marks - c.marks
        for _, c in growing
    )


def replaces_inherited(program: Program, held: Held, change: Change) -> bool:
    """Return True if a method sets anew what a base of its class has created."""
    if change.function.rpartition(".")[2] in MAKERS:
        return False
    owner, _, name = held.key.rpartition(".")
    above = program.names.order(owner)[1:] if owner in program.names.classes else ()
    return any(f"{kind}.{name}" in program.held for kind in above)
