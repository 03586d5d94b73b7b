"""What is in memory now, in words: the answer of `floodline attach --now`, and parts for others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from floodline._units import format_size
from floodline.leaks._suspect_record import HoldingRecord, SplitRecord
from floodline.recorder._snapshot import HoldingState, Snapshot

ESTIMATED = "sizes are estimated and include what is below"


def split_parts(split: SplitRecord) -> list[tuple[str, int]]:
    """Return the parts of resident memory with their names, leaving out those that are empty."""
    sizes: list[tuple[str, int]] = [
        ("Python objects", split["python"]),
        ("malloc in use", split["malloc"]),
        ("malloc free but held", split["malloc_free"]),
        ("mapped by malloc", split["mapped"]),
        ("unexplained (code, stacks, other mappings)", split["unexplained"]),
    ]
    return [(name, size) for name, size in sizes if size]


def split_words(split: SplitRecord) -> str:
    """Write how resident memory is split, in one line."""
    return ", ".join(f"{name} {format_size(size)}" for name, size in split_parts(split))


def held_words(one: HoldingRecord) -> str:
    """Write what a place is and what it is part of."""
    items = f", {one['items']:,} items" if one["items"] else ""
    inside = f", part of {one['within']}" if one["within"] else ""
    return f"{one['type']}{items}{inside}"


class HeldDocument(TypedDict):
    """The answer of `attach --now` in JSON; `memory` says who manages the resident memory."""

    schema: int
    tool: str
    python: str
    errors: list[str]
    pid: int
    command: str
    objects: int | None
    holders: list[HoldingState]
    memory: SplitRecord | None


def held_document(state: Snapshot, pid: int) -> HeldDocument:
    """Return the answer for one process as a JSON document."""
    process = next(one for one in state["processes"] if one["pid"] == pid)
    return {
        "schema": state["schema"],
        "tool": state["tool"],
        "python": process["python"] or state["python"],
        "errors": state["errors"],
        "pid": pid,
        "command": process["command"],
        "objects": process["objects"],
        "holders": [one for one in state["holders"] if one["pid"] == pid],
        "memory": process["split"],
    }


def held_text(state: Snapshot, pid: int) -> str:
    """Return the answer for one process: the largest holders, then who manages the memory."""
    return "\n".join(_lines(state, pid))


def _lines(state: Snapshot, pid: int) -> Iterator[str]:
    process = next(one for one in state["processes"] if one["pid"] == pid)
    holders = [one for one in state["holders"] if one["pid"] == pid]
    resident = format_size(process["rss"] or process["peak"])
    looked = f", {process['objects']:,} objects inspected" if process["objects"] else ""
    yield f"{resident} resident{looked}; {ESTIMATED}"
    for one in holders:
        size = f"{format_size(one['bytes']):>9}  {one['share']:>4.0%}"
        yield f"  {size}  {one['owner']}  ({held_words(one)})"
    if not holders:
        yield "  no single place holds much"
    if split := process["split"]:
        yield f"  who manages it: {split_words(split)}"
    for text in process["blind_spots"]:
        if text.startswith(("paused", "there was no time")):
            yield f"  {text}"
