"""Names a live suspect: its owner, cap and contents and, from the source, what feeds it."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.suspect import Suspect, outcome_of
from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._objects.anatomy import INERT, SIZES, Anatomy, basic_size, derives, is_standard
from floodline.leaks._objects.items import part

if TYPE_CHECKING:
    from floodline.leaks._closeup.closeup import Close

MOST_ITEMS = 256
WEIGHED = 16
MOST_BELOW = 64
SAME_PACE = 0.2  # of it, by which two may differ: one was read between walks, the other was not
_SHARED = frozenset(("type", "module", "function", "suspended", "frame", "cache"))


@dataclass(slots=True, frozen=True)
class Named:
    """A suspect, the weight of one of its items, and the identities of some of them."""

    suspect: Suspect
    weight: float
    ids: frozenset[int]
    kinds: tuple[tuple[str, float], ...]  # the commonest item types, and their shares
    points: bool = False  # it holds nothing but weak references
    places: int = 1  # containers for which its cap stands, all together


def name(one: Candidate, places: Places) -> Named:
    """Return a candidate's record; if no path leads back to it, it is named after its slot."""
    # they read and parse source: a program without a suspect does without them
    from floodline.leaks._closeup.closeup import Close
    from floodline.leaks._closeup.suspect_line import with_static_line

    close = Close(one, places.held, most=MOST_ITEMS)
    items = [item for at in close.held[-WEIGHED:] for item in list(close.items_of(at.value))]
    weight = _mean_weight(items[-WEIGHED:]) if one.column != "text" else 0.0
    if one.column == "length":
        weight += _room(close)
    kinds = close.kinds()
    shares = tuple((kind, count / kinds.total()) for kind, count in kinds.most_common(2))
    found = with_static_line(close.suspect(1), close)
    counted = shares if one.column == "length" else ()
    capped = max(1, len(close.held))
    return Named(found, weight, frozenset(close.ids()), counted, close.points(), capped)


def _mean_weight(items: list[Any]) -> float:
    """Return the bytes of one item, including what it alone holds."""
    return sum(map(_weight, items)) / len(items) if items else 0.0


def _room(close: Close) -> float:
    """Return the bytes that a container takes for each of its items, including their keys."""
    size = count = 0
    for value in (one.value for one in close.held[-WEIGHED:]):
        plan = Anatomy(type(value))
        if plan.length is not None and plan.base is not None:
            size += SIZES[plan.base](value)
            count += plan.length(value)
    tables = [one.value for one in close.held[:1] if derives(type(one.value), dict)]
    keys = [key for table in tables for key in part(table, dict, 0, WEIGHED, keys=True)]
    return (size / count if count else 0.0) + _mean_weight(keys)


def _weight(item: Any) -> int:
    total, todo, seen = 0, [item], set[int]()
    while todo and len(seen) < MOST_BELOW:
        at = todo.pop()
        if id(type(at)) in INERT or id(at) in seen:
            continue
        seen.add(id(at))
        plan = Anatomy(type(at))
        if plan.kind in _SHARED:
            continue
        total += SIZES[plan.base](at) if plan.base is not None else basic_size(type(at))
        total += plan.extra(at) if plan.extra is not None else 0
        small = plan.length is None or plan.length(at) <= MOST_BELOW
        todo += gc.get_referents(at) if small and plan.kind != "text" else []
    return total


def renewed(named: Named, one: Candidate, rank: int, *, places: int = 1) -> Suspect:
    """Return a named suspect with current figures; `places` is how many containers it has now."""
    # what is below was weighed when it was named: the figures of its slots may have it too
    weight = one.trend.rate * named.weight or max(one.bytes_rate, 0.0)
    if one.column == "text":  # characters or bytes, also those that C code keeps in an object
        weight = max(weight, one.trend.rate)
    return named.suspect.but(
        rank=rank,
        verdict=outcome_of(one.trend),
        len=one.size,
        per_round=round(one.trend.rate, 3),
        bytes_per_round=round(weight, 1),
        holds=_holds(named, one.size),
        cap=_cap(named, one, places),
    )


def _cap(named: Named, one: Candidate, places: int) -> int | None:
    """Return the cap of all containers: it was read from those that were inspected then."""
    cap = named.suspect.cap
    if cap is None or one.column == "count":
        return cap
    return max(cap, round(cap * places / named.places))


def _holds(named: Named, size: int) -> str:
    """Return what it holds now, estimated from the items inspected when it was named."""
    if not named.kinds:
        return named.suspect.holds
    return ", ".join(f"{kind} ×{max(1, round(share * size))}" for kind, share in named.kinds)


def echoes_of(one: Named, mine: Suspect, other: Named, theirs: Suspect) -> bool:
    """Return True if one holds what the other holds, or is a library's and grows in step."""
    same_pace = abs(mine.per_round - theirs.per_round) <= SAME_PACE * max(
        mine.per_round, theirs.per_round
    )
    if same_pace and is_standard(mine.owner) and not is_standard(theirs.owner):
        return True
    return bool(one.ids) and len(one.ids & other.ids) > len(one.ids) / 2
