"""Decides between growing, bounded and undecided, and says where the growth is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Protocol

from floodline.leaks._figures import reasons
from floodline.leaks._figures.own_holders import OwnHolders
from floodline.leaks._figures.reasons import Reason
from floodline.leaks._figures.suspect import Suspect, below
from floodline.leaks._figures.trend import LEAST_SAMPLES, Trend, keeps_pace, trend
from floodline.leaks._vocabulary import Outcome, Step, Where

LEAST_OBJECTS = 0.5  # per round
LEAST_BLOCKS = 4.0  # per round; the interpreter's free lists fill more slowly
BLOCKS_PER_OBJECT = 4
OWN_BLOCKS = 0.02  # of all
LEAST_NATIVE = 512.0  # bytes per round
DWARFS = 4  # so many times as much free as in use: fragmentation, not a leak
LEAST_STEP = 1 << 16  # bytes from one fifth of the run to the next


class Figures(Protocol):
    """Figures of the whole process over rounds or seconds."""

    unit: Step
    least_resident: int  # bytes; below this, pages and arenas cause steps
    least_native: int  # bytes that malloc must have gained by the end
    least_growth: float  # objects without a name that must have been gained, steadily
    least_rise: float  # the same if they were not gained steadily
    holders: OwnHolders

    @property
    def may_be_garbage(self) -> bool:
        """True if new objects may be cycles that wait for a full pass of the collector."""

    @property
    def garbage_waits(self) -> bool:
        """True if so many objects wait for it that their memory may explain what is gained."""

    def __len__(self) -> int: ...

    @property
    def counted(self) -> reasons.Counted | None:
        """All objects by type, if they were counted."""

    @property
    def rounds(self) -> Sequence[float]:
        """When each sample was taken."""

    def process(self, name: str) -> list[int]:
        """Return one figure, one value per sample."""


@dataclass(slots=True, frozen=True)
class Verdict:
    """The verdict, where the growth is, and what else an undecided one needs."""

    verdict: Outcome
    where: Where | None = None
    rounds: int | None = None
    reason: Reason | None = None

    @property
    def why(self) -> str | None:
        """The reason in words."""
        return self.reason.text if self.reason is not None else None


def decide(series: Figures, growing: list[Suspect], rising: list[Suspect]) -> Verdict:
    """Judge the whole run; every reason against *bounded* is checked in turn."""
    total, unit = _total(series), series.unit
    if len(series) < LEAST_SAMPLES:
        return _undecided(Where.UNKNOWN, max(40, 4 * total), reasons.too_few(unit))
    sure = [one for one in growing if not may_fill(one)]
    if sure:
        return Verdict(Outcome.GROWING, Where.PYTHON)
    own = series.holders.filling()
    if own:
        reason = reasons.holder_fills(own[0], unit)
        return _undecided(Where.PYTHON, total + 2 * own[0].left, reason)
    if growing:
        return _filling(growing[0], total, unit)
    return _unnamed(series) or _waiting(series, total) or _unsure(rising, total, unit)


def _undecided(where: Where, rounds: int, reason: Reason) -> Verdict:
    return Verdict(Outcome.UNDECIDED, where, rounds, reason)


def _total(series: Figures) -> int:
    return round(series.rounds[-1]) if len(series) else 0


def may_fill(one: Suspect) -> bool:
    """Return True if what grows has a cap that it has not reached."""
    return below(one.len, one.cap, capped=one.capped)


def _filling(one: Suspect, total: int, unit: Step) -> Verdict:
    if one.cap is None:
        return _undecided(Where.PYTHON, 4 * total, reasons.may_be_limited(one))
    left = max(1, round((one.cap - one.len) / max(one.per_round, 1e-9)))
    reason = reasons.filling(one, one.cap, left, unit)
    return _undecided(Where.PYTHON, total + 2 * left, reason)


def _trend(series: Figures, name: str) -> Trend:
    return trend(series.rounds, series.process(name), tests=len(series))


def _unnamed(series: Figures) -> Verdict | None:
    """Find growth of Python objects that no named slot shows."""
    total, unit = _total(series), series.unit
    found, sure = _trend(series, "objects"), series.least_growth
    waits = series.may_be_garbage
    reason = reasons.unnamed_objects(found.rate, unit, series.counted, may_be_garbage=waits)
    if _is_sure(series, found) and found.rate >= LEAST_OBJECTS and found.gain >= sure:
        outcome = Outcome.UNDECIDED if waits else Outcome.GROWING
        return Verdict(outcome, Where.PYTHON, 2 * total if waits else total, reason)
    if _rises(found, series.least_rise) or _multiply(series):
        return _undecided(Where.PYTHON, 2 * total, reason)
    found, sure = _trend(series, "blocks"), BLOCKS_PER_OBJECT * series.least_growth
    if sure:  # a live watch takes the more of them itself, the more there are
        sure = max(sure, OWN_BLOCKS * max(series.process("blocks"), default=0))
    if found.kind == "growing" and found.rate >= LEAST_BLOCKS and found.gain >= sure:
        return _undecided(Where.PYTHON, 3 * total, reasons.unnamed_blocks(found.rate, unit))
    return None


def _is_sure(series: Figures, objects: Trend) -> bool:
    """Return True if objects multiply for certain; a live watch adds some of its own at first."""
    if objects.kind != "rising" or not series.least_growth:
        return objects.kind == "growing"
    return keeps_pace(series.rounds, series.process("objects"))


def _rises(found: Trend, least: float) -> bool:
    """Return True if it rises by so much, or steadily by a part of it."""
    return (found.kind == "rising" and found.gain >= least) or (
        found.kind == "growing" and found.gain >= least / 3
    )


def _multiply(series: Figures) -> bool:
    """Return True if there are always more objects in each third of the run, at half the pace.

    Counts are noisy, so this proves no leak, only that they are not flat.
    """
    counts = series.process("objects")
    size = len(counts) // 3
    thirds = [counts[k * size : (k + 1) * size] for k in range(3)]
    first, second, third = (median(one) for one in thirds)
    apart = min(thirds[2]) > max(thirds[0]) and third - first >= series.least_rise
    return apart and third - second >= (second - first) / 2


def _waiting(series: Figures, total: int) -> Verdict | None:
    """Find growing native memory, undecided while garbage that may hold it waits."""
    found = _native(series, total)
    if found is None or found.reason is None or not series.garbage_waits:
        return found
    reason = Reason(found.reason.cause, f"{found.reason.text}; or {reasons.WAITING}")
    return replace(found, verdict=Outcome.UNDECIDED, reason=reason)


def _native(series: Figures, total: int) -> Verdict | None:
    """Find memory that the process gains while its Python objects do not grow."""
    used = [a + b for a, b in _pairs(series, "malloc_used", "malloc_mapped")]
    native = trend(series.rounds, used, tests=len(series))
    resident, free = _trend(series, "rss"), _trend(series, "malloc_free")
    steady = resident.kind != "flat" or _climbs(series.process("rss"))
    rose = steady and resident.gain >= series.least_resident
    held = rose and free.gain >= resident.gain / 2 and free.gain > native.gain
    # one large block that came and went leaves a step: next to a sure leak only a climb counts
    climbs = free.kind != "flat" or _climbs(series.process("malloc_free"))
    dwarfed = held and climbs and free.gain >= DWARFS * native.gain
    enough = native.rate >= LEAST_NATIVE and native.gain >= series.least_native
    if native.kind == "growing" and enough and not dwarfed:
        reason = reasons.malloc_grows(native.rate, series.unit)
        return Verdict(Outcome.GROWING, Where.NATIVE, total, reason)
    if held:
        reason = reasons.held_by_malloc(resident.gain)
        return _undecided(Where.FRAGMENTATION, 2 * total, reason)
    if not rose:
        return None
    # malloc is asked seldom where that is slow: then its figures rise in steps
    steadily = Outcome.GROWING if resident.kind == "growing" else Outcome.UNDECIDED
    if native.gain >= resident.gain / 2:
        return Verdict(steadily, Where.NATIVE, 2 * total, reasons.in_use_by_c(resident.gain))
    if _arena_gain(series) >= resident.gain / 2:
        reason = reasons.held_by_arenas(resident.gain)
        return _undecided(Where.FRAGMENTATION, 2 * total, reason)
    if any(used):  # malloc reported its figures, and they do not explain it
        return Verdict(steadily, Where.NATIVE, 2 * total, reasons.mapped(resident.gain))
    reason = reasons.resident(resident.gain, series.unit)
    return _undecided(Where.UNKNOWN, 2 * total, reason)


def _climbs(values: list[int]) -> bool:
    """Return True if the lowest figure of each fifth of the run keeps rising, in steps."""
    size = len(values) // 5
    lows = [min(values[k * size : (k + 1) * size]) for k in range(5)]
    steps = [after - before >= LEAST_STEP for before, after in pairwise(lows)]
    return sum(steps) >= 3 and all(steps[-2:])


def _arena_gain(series: Figures) -> float:
    arenas = _trend(series, "arenas")
    return arenas.gain if arenas.kind != "flat" or _climbs(series.process("arenas")) else 0.0


def _pairs(series: Figures, one: str, other: str) -> zip[tuple[int, int]]:
    return zip(series.process(one), series.process(other), strict=True)


def _unsure(rising: list[Suspect], total: int, unit: Step) -> Verdict:
    return unsteady(rising, total, unit) if rising else Verdict(Outcome.BOUNDED)


def unsteady(rising: list[Suspect], total: float, unit: Step = "second") -> Verdict:
    """Return undecided: these rose, but perhaps they only fill."""
    return _undecided(Where.PYTHON, 3 * round(total), reasons.unsteady(rising[0], unit))
