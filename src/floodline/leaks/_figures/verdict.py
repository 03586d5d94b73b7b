"""Growing, bounded or undecided, and where the growth is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from floodline._units import format_size
from floodline.leaks._figures.suspect import Suspect
from floodline.leaks._figures.trend import LEAST_SAMPLES, Trend, trend
from floodline.leaks._heap.container_limit import below

LEAST_OBJECTS = 0.5  # a round
LEAST_BLOCKS = 4.0  # a round; free lists of the interpreter fill more slowly
HOOK = "no name leads to them: look at hooks (atexit, at-fork) and at C extensions"
LEAST_NATIVE = 512.0  # bytes a round
DWARFS = 4  # so many times what stays in use is free: the pins of fragments, and no leak
LEAST_STEP = 1 << 16  # bytes from one fifth of the run to the next
NATIVE_STEP = "run it under memray with --native to see which C call allocates"
FRAGMENT_STEP = "try MALLOC_ARENA_MAX=2, jemalloc, or malloc_trim at quiet times"


class Figures(Protocol):
    """What the whole process measured over rounds or seconds."""

    unit: str  # "round" or "second"
    least_resident: int  # bytes; below it, pages and arenas make steps
    least_native: int  # bytes that malloc has more at the end

    def __len__(self) -> int: ...

    @property
    def rounds(self) -> Sequence[float]:
        """When each sample was taken."""

    def process(self, name: str) -> list[int]:
        """Return one figure, one a sample."""


@dataclass(slots=True, frozen=True)
class Verdict:
    """The answer, where it grows, and for undecided what more is needed."""

    verdict: str
    where: str | None = None
    rounds: int | None = None
    why: str | None = None


def decide(series: Figures, growing: list[Suspect], rising: list[Suspect]) -> Verdict:
    """Judge the whole run; every reason against *bounded* is asked in turn."""
    total, unit = _total(series), series.unit
    if len(series) < LEAST_SAMPLES:
        return Verdict("undecided", "unknown", max(40, 4 * total), f"too few {unit}s to tell")
    sure = [one for one in growing if not may_fill(one)]
    if sure:
        return Verdict("growing", "python")
    if growing:
        return _filling(growing[0], total, unit)
    return _unnamed(series) or _native(series, total) or _unsure(rising, total, unit)


def _total(series: Figures) -> int:
    return round(series.rounds[-1]) if len(series) else 0


def may_fill(one: Suspect) -> bool:
    """Tell whether what grows has a cap that it has not reached."""
    return below(one.len, one.cap, capped=one.capped)


def _filling(one: Suspect, total: int, unit: str) -> Verdict:
    if one.cap is None:
        why = f"{one.owner} grows, and its code removes above a limit that was not reached"
        return Verdict("undecided", "python", 4 * total, why)
    left = max(1, round((one.cap - one.len) / max(one.per_round, 1e-9)))
    why = f"{one.owner} grows to a cap: full at {one.cap} in about {left} {unit}s"
    return Verdict("undecided", "python", total + 2 * left, why)


def _trend(series: Figures, name: str) -> Trend:
    return trend(series.rounds, series.process(name), tests=len(series))


def _unnamed(series: Figures) -> Verdict | None:
    """Find growth of Python objects that no named slot shows."""
    total, unit = _total(series), series.unit
    found = _trend(series, "objects")
    if found.kind == "growing" and found.rate >= LEAST_OBJECTS:
        why = f"{found.rate:.1f} more objects a {unit}; {HOOK}"
        return Verdict("growing", "python", total, why)
    found = _trend(series, "blocks")
    if found.kind == "growing" and found.rate >= LEAST_BLOCKS:
        why = f"{found.rate:.1f} more blocks of Python's allocator a {unit}; {HOOK}"
        return Verdict("undecided", "python", 3 * total, why)
    return None


def _native(series: Figures, total: int) -> Verdict | None:
    """Find memory that the process holds while its Python objects stay."""
    used = [a + b for a, b in _pairs(series, "malloc_used", "malloc_mapped")]
    native = trend(series.rounds, used, tests=len(series))
    resident, free = _trend(series, "rss"), _trend(series, "malloc_free")
    steady = resident.kind != "flat" or _climbs(series.process("rss"))
    rose = steady and resident.gain >= series.least_resident
    held = rose and free.gain >= resident.gain / 2 and free.gain > native.gain
    # one large block that came and went leaves a step: beside a sure leak only a climb counts
    climbs = free.kind != "flat" or _climbs(series.process("malloc_free"))
    dwarfed = held and climbs and free.gain >= DWARFS * native.gain
    enough = native.rate >= LEAST_NATIVE and native.gain >= series.least_native
    if native.kind == "growing" and enough and not dwarfed:
        pace = f"{format_size(native.rate)} more each {series.unit}"
        why = f"malloc holds {pace} while Python objects stay"
        return Verdict("growing", "native", total, f"{why}; {NATIVE_STEP}")
    if held:
        return Verdict("undecided", "fragmentation", 2 * total, _held(resident, "malloc"))
    if not rose:
        return None
    grown = f"resident memory rose by {format_size(resident.gain)} while Python objects stay"
    if native.gain >= resident.gain / 2:
        return Verdict("undecided", "native", 2 * total, f"{grown}: in use by C; {NATIVE_STEP}")
    if _arena_gain(series) >= resident.gain / 2:
        why = _held(resident, "Python's allocator")
        return Verdict("undecided", "fragmentation", 2 * total, why)
    if any(used):  # malloc told its figures, and they do not explain it
        why = f"{grown}: mapped outside malloc; look at /proc/PID/smaps, and {NATIVE_STEP}"
        sure = resident.kind == "growing"
        return Verdict("growing" if sure else "undecided", "native", 2 * total, why)
    return Verdict("undecided", "unknown", 2 * total, f"{grown}; run more {series.unit}s")


def _climbs(values: list[int]) -> bool:
    """Tell whether the lowest figure of each fifth of the run rises again and again, in steps."""
    size = len(values) // 5
    lows = [min(values[k * size : (k + 1) * size]) for k in range(5)]
    steps = [after - before >= LEAST_STEP for before, after in pairwise(lows)]
    return sum(steps) >= 3 and all(steps[-2:])


def _held(resident: Trend, holder: str) -> str:
    rose = f"resident memory rose by {format_size(resident.gain)} while Python objects stay"
    return f"{rose}: free, but held by {holder}; {FRAGMENT_STEP}"


def _arena_gain(series: Figures) -> float:
    arenas = _trend(series, "arenas")
    return arenas.gain if arenas.kind != "flat" or _climbs(series.process("arenas")) else 0.0


def _pairs(series: Figures, one: str, other: str) -> zip[tuple[int, int]]:
    return zip(series.process(one), series.process(other), strict=True)


def _unsure(rising: list[Suspect], total: int, unit: str) -> Verdict:
    if not rising:
        return Verdict("bounded")
    first = rising[0]
    why = f"{first.owner} rose by {first.per_round:g} a {unit}, not steadily enough to tell"
    return Verdict("undecided", "python", 3 * total, why)
