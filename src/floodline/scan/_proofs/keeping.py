"""Where instances go that are created, as their files say it: into slots, entries or loops."""

from __future__ import annotations

from floodline.scan._facts.calls import Kept
from floodline.scan._facts.circumstances import details
from floodline.scan._facts.references import MODULE, OBJECT
from floodline.scan._program.edges import Making
from floodline.scan._program.program import Held


def is_kept(kept: Kept) -> bool:
    """Return True if something goes where it stays: into a name of the module, or a class."""
    return kept.in_slot(MODULE) or kept.how == "body"


def is_of_module(kept: Kept) -> bool:
    """Return True if something goes into an attribute of a module-level object."""
    return kept.in_slot(OBJECT) and kept.ref is not None and kept.ref.base.kind == MODULE


def settled(makings: list[Making]) -> list[Making]:
    """Drop locals that go somewhere after all: they outlive their call."""
    moved = {m.function for m in makings if m.again and m.kept.how != "argument"}
    stays = {m.function for m in makings if m.again and m.kept.how in ("slot", "entry")}
    return [
        m
        for m in makings
        if (m.again or m.kept.how != "local" or m.function not in moved)
        and (m.kept.how != "returned" or m.function not in stays)
    ]


def endless(held: Held) -> bool:
    """Return True if a local container is created before an endless loop, and grows in it."""
    lines = [made.at.line for made in held.made]
    return any(
        mark.line > max(lines)
        for _, change in held.changes
        if change.verb == "grow" and change.function == held.made[0].function
        for mark in details(change.marks, "endless")
    )
