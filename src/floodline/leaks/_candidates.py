"""Which slots grow of themselves, and not only because what holds them grows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from floodline.leaks._series import Series
from floodline.leaks._slots import Slot
from floodline.leaks._trend import FLAT, Trend, trend

MAX_CANDIDATES = 12
_LEAST = {"length": 8, "count": 8, "text": 256}


@dataclass(slots=True, frozen=True)
class Candidate:
    """A slot, which of its figures grows (`length`, `text` or `count`), and how."""

    slot: Slot
    column: str
    trend: Trend
    bytes_rate: float
    size: int


@dataclass(slots=True, frozen=True)
class Candidates:
    """Those that grow, and those that may yet turn out to grow or to be full."""

    growing: list[Candidate]
    rising: list[Candidate]


def find_candidates(series: Series) -> Candidates:
    """Judge each slot that changed, most bytes first, the names of the program before others."""
    changed = series.changed()
    tests = max(1, len(changed))
    below = _bytes_below(series, changed)
    counts = {index: _judge(series, index, "count", tests) for index in changed}
    found: list[Candidate] = []
    for index in changed:
        for column in ("length", "text"):
            figures = _judge(series, index, column, tests)
            if figures.kind != "flat" and not _explained(series, index, column, counts[index]):
                found.append(_candidate(series, index, column, figures, below))
    if not any(one.trend.kind == "growing" for one in found):
        found += _chains(series, counts, below, {one.slot.index for one in found})
    return Candidates(
        _ranked(found, "growing"), [c for c in _ranked(found, "rising") if _weighs(c)]
    )


def _judge(series: Series, index: int, column: str, tests: int) -> Trend:
    return trend(series.rounds, series.column(index, column), tests=tests)


def _explained(series: Series, index: int, column: str, count: Trend) -> bool:
    """Tell whether there is only more of it because there are more holders of the same kind."""
    if count.kind == "flat":
        return False
    values = series.column(index, column)
    holders = median(series.column(index, "count")[-3:])
    gained = (median(values[-3:]) - median(values[:3])) / max(1.0, median(values[-3:]))
    return count.gain / max(1.0, holders) >= 0.7 * gained


def _chains(
    series: Series, counts: dict[int, Trend], below: dict[int, float], known: set[int]
) -> Iterable[Candidate]:
    """Find objects that grow in number below a slot that does not: links of a chain, hooks."""
    for index, count in counts.items():
        slot = series.slots.all[index]
        parent = slot.parent
        if count.kind == "flat" or index in known:
            continue
        if parent is None or counts.get(parent.index, FLAT).kind == "flat":
            yield _candidate(series, index, "count", count, below)


def _candidate(
    series: Series, index: int, column: str, figures: Trend, below: dict[int, float]
) -> Candidate:
    slot, size = series.slots.all[index], series.last(index, column)
    return Candidate(slot, column, figures, below.get(index, 0.0), size)


def _bytes_below(series: Series, changed: list[int]) -> dict[int, float]:
    """Return how many bytes a round each slot gained, with all that hangs below it."""
    below: dict[int, float] = {}
    rounds = series.rounds
    span = max(1, median(rounds[-3:]) - median(rounds[:3]))
    for index in changed:
        values = series.column(index, "bytes")
        gain = (median(values[-3:]) - median(values[:3])) / span
        at: Slot | None = series.slots.all[index]
        while at is not None:
            below[at.index] = below.get(at.index, 0.0) + gain
            at = at.parent
    return below


def _ranked(found: list[Candidate], kind: str) -> list[Candidate]:
    chosen = [one for one in found if one.trend.kind == kind]
    chosen.sort(key=lambda c: (c.slot.head().standard, -c.bytes_rate, c.slot.depth))
    return chosen[:MAX_CANDIDATES]


def _weighs(one: Candidate) -> bool:
    return one.trend.gain >= _LEAST[one.column] and one.trend.rate >= _LEAST[one.column] / 160
