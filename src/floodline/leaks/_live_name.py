"""Naming a live suspect: its owner, its cap, what it holds and, from the source, what feeds it."""

from __future__ import annotations

from floodline.leaks._candidates import Candidate
from floodline.leaks._inspect import Close, chain_head
from floodline.leaks._live_place import Places
from floodline.leaks._naming import last_name, module_of
from floodline.leaks._source import feeding_place
from floodline.leaks._suspect import Suspect

MOST_ITEMS = 256


def name(one: Candidate, places: Places) -> Suspect | None:
    """Return the record of a candidate, None if it is not found any more."""
    head = one.slot.head() if one.column != "count" else chain_head(one.slot)
    held, heads = places.held(one.slot), places.held(head)
    if not held and not heads:
        return None
    close = Close(one, held, heads, most=MOST_ITEMS)
    return _with_line(close.suspect(1), close)


def _with_line(suspect: Suspect, close: Close) -> Suspect:
    code = close.definition()
    if code is not None:
        return suspect.but(
            file=code.co_filename, line=code.co_firstlineno, line_source="static",
            function=code.co_name,
        )  # fmt: skip
    module = module_of(suspect.defined_in + ".x")
    place = feeding_place(module, last_name(suspect.owner)) if module else None
    if place is None:
        return suspect
    return suspect.but(
        file=place.file, line=place.line, line_source="static", function=place.function
    )


def renewed(suspect: Suspect, one: Candidate, rank: int) -> Suspect:
    """Return a named suspect with the figures of now."""
    return suspect.but(
        rank=rank,
        verdict="growing" if one.trend.kind == "growing" else "undecided",
        len=one.size,
        per_round=round(one.trend.rate, 3),
        bytes_per_round=round(max(one.bytes_rate, 0.0), 1),
    )
