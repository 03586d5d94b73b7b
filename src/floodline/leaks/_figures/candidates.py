"""Finds the slots that grow by themselves, not merely because their holders multiply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from floodline.leaks._figures.own_holders import is_internal
from floodline.leaks._figures.trend import FLAT, Trend, comes_evenly, comes_seldom, median, trend
from floodline.leaks._heap.slots import NOWHERE, Slot, Slots, is_placeholder
from floodline.leaks._vocabulary import Column

MAX_CANDIDATES = 12
_LEAST: dict[Column, int] = {"length": 8, "count": 8, "text": 256}
_JUDGED: tuple[Column, ...] = ("length", "text")


class Figures(Protocol):
    """Figures of slots over rounds or seconds: the series of a soak, or live tracks."""

    slots: Slots

    def changed(self) -> list[int]:
        """Return the indices of the slots that have changed."""

    def at(self, index: int) -> Sequence[float]:
        """Return the times at which a slot was measured."""

    def column(self, index: int, column: str) -> list[int]:
        """Return one figure of a slot at these times."""

    def last(self, index: int, column: str) -> int:
        """Return the newest figure of a slot."""


@dataclass(slots=True, frozen=True)
class Candidate:
    """A slot, which of its figures grows (`length`, `text` or `count`), and its trend."""

    slot: Slot
    column: Column
    trend: Trend
    bytes_rate: float
    size: int


@dataclass(slots=True, frozen=True)
class Candidates:
    """Slots that grow, and slots that may turn out to grow or to fill up."""

    growing: list[Candidate]
    rising: list[Candidate]


def find_candidates(
    series: Figures, *, tests: int | None = None, paced: bool = False
) -> Candidates:
    """Judge each slot that changed, most bytes first, the program's names before others.

    `tests` is how many slots are judged together, if more than these. With `paced`, samples are
    taken at rounds of work: what comes evenly then comes from the work, not from a clock.
    """
    changed = series.changed()
    internal = {index for index in changed if is_internal(series.slots[index])}
    tests = max(1, tests or len(changed))
    below = _bytes_below(series, changed)
    counts = {index: _judge(series, index, "count", tests) for index in changed}
    found: list[Candidate] = []
    seldom: set[int] = set()
    for index in changed:
        for column in () if index in internal else _JUDGED:
            figures = _judge(series, index, column, tests)
            if paced and column == "length":
                figures = _by_pace(series, index, figures, seldom)
            if figures.kind != "flat" and not _explained(series, index, column, counts[index]):
                found.append(_candidate(series, index, column, figures, below))
    if not any(one.trend.kind == "growing" and _is_named(one.slot) for one in found):
        known = {one.slot.index for one in found} | internal
        found += _chains(series, counts, below, known)
    rising = [c for c in _ranked(found, "rising") if _weighs(c) or c.slot.index in seldom]
    return Candidates(_ranked(found, "growing"), rising)


def _judge(series: Figures, index: int, column: Column, tests: int) -> Trend:
    return trend(series.at(index), series.column(index, column), tests=tests)


def _by_pace(series: Figures, index: int, figures: Trend, seldom: set[int]) -> Trend:
    """Return a trend that also counts what comes like clockwork, or `seldom` and stays."""
    at, values = series.at(index), series.column(index, "length")
    if figures.kind != "growing" and comes_seldom(at, values):
        seldom.add(index)
        figures = replace(figures, kind="rising")
    if figures.kind == "rising" and comes_evenly(at, values):
        return replace(figures, kind="growing")
    return figures


def _explained(series: Figures, index: int, column: Column, count: Trend) -> bool:
    """Return True if there is more of it only because there are more holders of the same kind."""
    if count.kind == "flat":
        return False
    values = series.column(index, column)
    holders = median(series.column(index, "count")[-3:])
    gained = (median(values[-3:]) - median(values[:3])) / max(1.0, median(values[-3:]))
    return count.gain / max(1.0, holders) >= 0.7 * gained


def _chains(
    series: Figures, counts: dict[int, Trend], below: dict[int, float], known: set[int]
) -> Iterable[Candidate]:
    """Find objects that multiply below a slot that does not grow: links of a chain, hooks."""
    for index, count in counts.items():
        parent = series.slots.parents[index]
        if count.kind == "flat" or index in known:
            continue
        if parent != NOWHERE and is_internal(series.slots[parent]):
            continue  # there are more of them because there are more of our entries
        if parent not in known and counts.get(parent, FLAT).kind == "flat":
            yield _candidate(series, index, "count", count, below)


def _candidate(
    series: Figures, index: int, column: Column, figures: Trend, below: dict[int, float]
) -> Candidate:
    slot, size = series.slots[index], series.last(index, column)
    return Candidate(slot, column, figures, below.get(index, 0.0), size)


def _bytes_below(series: Figures, changed: list[int]) -> dict[int, float]:
    """Return the bytes per round that each slot gained, including everything below it."""
    below: dict[int, float] = {}
    for index in changed:
        rounds = series.at(index)
        span = max(1, median(rounds[-3:]) - median(rounds[:3]))
        values = series.column(index, "bytes")
        gain = (median(values[-3:]) - median(values[:3])) / span
        at = index
        while at != NOWHERE:
            below[at] = below.get(at, 0.0) + gain
            at = series.slots.parents[at]
    return below


def _ranked(found: list[Candidate], kind: Literal["growing", "rising"]) -> list[Candidate]:
    chosen = [one for one in found if one.trend.kind == kind]
    chosen.sort(key=lambda c: (*_distance(c.slot.head()), -c.bytes_rate, c.slot.depth))
    return chosen[:MAX_CANDIDATES]


def _distance(head: Slot) -> tuple[bool, bool]:
    """Order the program's names before the library's, and those before unnamed slots."""
    return is_placeholder(head.label), head.standard


def _is_named(slot: Slot) -> bool:
    """Return True if the program itself has a name for it."""
    return not any(_distance(slot.head()))


def _weighs(one: Candidate) -> bool:
    return one.trend.gain >= _LEAST[one.column] and one.trend.rate >= _LEAST[one.column] / 160
