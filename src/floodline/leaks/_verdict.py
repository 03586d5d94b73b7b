"""Growing, bounded or undecided, and where the growth is."""

from __future__ import annotations

from dataclasses import dataclass

from floodline._units import format_size
from floodline.leaks._series import Series
from floodline.leaks._suspect import Suspect
from floodline.leaks._trend import LEAST_SAMPLES, Trend, trend

LEAST_NATIVE = 256.0  # bytes a round
LEAST_RESIDENT = 1 << 19  # bytes in all; below it, pages and arenas make steps
NATIVE_STEP = "run it under memray with --native to see which C call allocates"
FRAGMENT_STEP = "try MALLOC_ARENA_MAX=2, jemalloc, or malloc_trim at quiet times"


@dataclass(slots=True, frozen=True)
class Verdict:
    """The answer, where it grows, and for undecided what more is needed."""

    verdict: str
    where: str | None = None
    rounds: int | None = None
    why: str | None = None


def decide(series: Series, growing: list[Suspect], rising: list[Suspect]) -> Verdict:
    """Judge the whole run; every reason against *bounded* is asked in turn."""
    total = series.rounds[-1] if len(series) else 0
    if len(series) < LEAST_SAMPLES:
        return Verdict("undecided", "unknown", max(40, 4 * total), "too few rounds to tell")
    sure = [one for one in growing if not _may_fill(one)]
    if sure:
        return Verdict("growing", "python")
    if growing:
        return _filling(growing[0], total)
    return _unnamed(series) or _native(series, total) or _unsure(rising, total)


def _may_fill(one: Suspect) -> bool:
    return one.capped and (one.cap is None or one.len <= one.cap * 1.05)


def _filling(one: Suspect, total: int) -> Verdict:
    if one.cap is None:
        why = f"{one.owner} grows, and its code removes above a limit that was not reached"
        return Verdict("undecided", "python", 4 * total, why)
    left = max(1, round((one.cap - one.len) / max(one.per_round, 1e-9)))
    why = f"{one.owner} grows to a cap: full at {one.cap} in about {left} rounds"
    return Verdict("undecided", "python", total + 2 * left, why)


def _trend(series: Series, name: str) -> Trend:
    return trend(series.rounds, series.process(name), tests=len(series))


def _unnamed(series: Series) -> Verdict | None:
    """Find growth of Python objects that no named slot shows."""
    for name, least in (("objects", 0.5), ("blocks", 0.5)):
        found = _trend(series, name)
        if found.kind == "growing" and found.rate >= least:
            return Verdict("growing", "python")
    return None


def _native(series: Series, total: int) -> Verdict | None:
    """Find memory that the process holds while its Python objects stay."""
    used = [a + b for a, b in _pairs(series, "malloc_used", "malloc_mapped")]
    native = trend(series.rounds, used, tests=len(series))
    if native.kind == "growing" and native.rate >= LEAST_NATIVE:
        why = f"malloc holds {format_size(native.rate)} more each round while Python objects stay"
        return Verdict("growing", "native", total, f"{why}; {NATIVE_STEP}")
    resident, free = _trend(series, "rss"), _trend(series, "malloc_free")
    if resident.kind == "flat" or resident.gain < LEAST_RESIDENT:
        return None
    grown = f"resident memory rose by {format_size(resident.gain)} while Python objects stay"
    if free.gain >= resident.gain / 2:
        why = f"{grown}: free, but held by malloc; {FRAGMENT_STEP}"
        return Verdict("undecided", "fragmentation", 2 * total, why)
    if native.gain >= resident.gain / 2:
        return Verdict("undecided", "native", 2 * total, f"{grown}: in use by C; {NATIVE_STEP}")
    if resident.kind == "growing":
        why = f"{grown}: mapped outside malloc; look at /proc/PID/smaps, and {NATIVE_STEP}"
        return Verdict("growing", "native", 2 * total, why)
    return Verdict("undecided", "unknown", 2 * total, f"{grown}; run more rounds")


def _pairs(series: Series, one: str, other: str) -> zip[tuple[int, int]]:
    return zip(series.process(one), series.process(other), strict=True)


def _unsure(rising: list[Suspect], total: int) -> Verdict:
    if not rising:
        return Verdict("bounded")
    first = rising[0]
    why = f"{first.owner} rose by {first.per_round:g} a round, not steadily enough to tell"
    return Verdict("undecided", "python", 3 * total, why)
