"""Decides whether a series grows, without being fooled by a saw-tooth, a fill or a drift."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

LEVEL = 0.001
LEAST_SAMPLES = 8
LEAST_GAIN = 3.0
SLOWER = 2.3  # standard errors below zero: the pace falls, and not by chance
UNSURE = 1.65  # standard errors by which the pace may have fallen more than it seems
MOST_LOST = 0.9  # of the mean pace, from the start of the run to its end
EVEN = 0.1  # of the mean pace: if the second half keeps this much, it is not a fill
LATE = 0.1  # of the run: what decides whether it still rises
LATER = 1 / 3  # the same for one that has slowed down: there is noise in a tenth
LATE_CHANCE = 0.2  # that its second half is noise
STEADY = 0.75  # of the first half's pace: a leak keeps at least this much in the second half
SPARSE = 2 / 3  # of the steps: one that rises in fewer of them rises now and then
EXPECTED = 4  # rises that the late part of such a series should have seen
LEAST_RISES = 6  # of a series that rises now and then
SINGLE = 2  # items that such a rise brings at most, on average
SELDOM_LATE = 0.4  # of them: a set that fills up has fewer in its second half
LEAST_EVEN = 10.0  # items that must have come like clockwork
OFF = 1.35  # items between the samples farthest above and below the line; 1 is due to rounding


@dataclass(slots=True, frozen=True)
class Trend:
    """What a series does: `growing`, `rising` (perhaps a leak, perhaps a fill), or `flat`."""

    kind: Literal["growing", "rising", "flat"]
    rate: float = 0.0
    gain: float = 0.0
    last: float = 0.0


FLAT = Trend("flat")


def trend(at: Sequence[float], values: Sequence[float], *, tests: int = 1) -> Trend:
    """Judge a series of values at rounds, as one of `tests` series that are judged together.

    A series is growing if it rises beyond chance, never falls by more than half of its gain, still
    rises at half of its overall rate or more in the last tenth of the run, and does not slow down.
    """
    if len(values) < LEAST_SAMPLES or min(values) == max(values):
        return FLAT
    span = at[-1] - at[0]
    gain = median(values[-3:]) - median(values[:3])
    if span <= 0 or gain < LEAST_GAIN:
        return FLAT
    rate = gain / max(median(at[-3:]) - median(at[:3]), 1e-9)
    last = _last_rate(at, values)
    chance = min(_chance(at, values), _chance(*_minima(at, values))) * 2
    fell = _deepest_fall(values)
    steady = fell <= gain / 2 and last >= rate / 2
    if chance * tests < LEVEL and steady and not _may_fill(at, values):
        return Trend("growing", rate, gain, last)
    still = min(last, _slope_of_end(at, values, LATER))
    if chance < 0.05 and fell <= gain and still > rate / 10 and _rises_late(at, values):
        return Trend("rising", rate, gain, last)
    return Trend("flat", rate, gain, last)


def comes_evenly(at: Sequence[float], values: Sequence[float]) -> bool:
    """Return True if items come like clockwork: all samples lie on a line, but for rounding.

    Chance would bring some of them early and some late, and a set of keys that fills up would bring
    the last ones ever later. So a few items tell what takes many that come at random.
    """
    gain = values[-1] - values[0]
    if len(values) < LEAST_SAMPLES or gain < LEAST_EVEN or at[-1] <= at[0]:
        return False
    middle, mean = sum(at) / len(at), sum(values) / len(values)
    weight = sum((t - middle) ** 2 for t in at)
    rate = sum((t - middle) * (v - mean) for t, v in zip(at, values, strict=True)) / weight
    off = [v - rate * t for t, v in zip(at, values, strict=True)]
    return max(off) - min(off) <= OFF


def comes_seldom(at: Sequence[float], values: Sequence[float]) -> bool:
    """Return True if a series rises now and then, never falls, and has not stopped by the end.

    The last samples are so close together that they may all lie between two rises.
    """
    rises = [time for time, a, b in zip(at[1:], values, values[1:], strict=False) if b > a]
    single = values[-1] - values[0] <= SINGLE * len(rises)  # what fills up begins with more
    if len(rises) < LEAST_RISES or not single or _deepest_fall(values) > 0:
        return False
    pauses = [after - before for before, after in pairwise((at[0], *rises))]
    late = sum(time > (at[0] + at[-1]) / 2 for time in rises)
    return at[-1] - rises[-1] <= max(pauses) and late >= SELDOM_LATE * len(rises)


def _last_rate(at: Sequence[float], values: Sequence[float]) -> float:
    """Return the median slope over the last tenth of the run.

    In a series that rises only now and then, a tenth may have seen none: it takes more of the run.
    """
    return _slope_of_end(at, values, _late_share(values))


def _slope_of_end(at: Sequence[float], values: Sequence[float], share: float) -> float:
    begin = at[-1] - (at[-1] - at[0]) * share
    first = min(next(i for i, r in enumerate(at) if r >= begin), len(at) - 6)
    return typical_slope(at[first:], values[first:])


def _rises_late(at: Sequence[float], values: Sequence[float]) -> bool:
    """Return True if the second half rises by itself: what has filled up only has noise there."""
    half = len(values) // 2
    return half < LEAST_SAMPLES or _chance(at[half:], values[half:]) < LATE_CHANCE


def keeps_pace(at: Sequence[float], values: Sequence[float]) -> bool:
    """Return True if the second half rises nearly as fast as the first."""
    middle = bisect_left(at, (at[0] + at[-1]) / 2)
    before = (values[middle] - values[0]) / max(at[middle] - at[0], 1e-9)
    after = (values[-1] - values[middle]) / max(at[-1] - at[middle], 1e-9)
    return after >= STEADY * before


def rises_often(values: Sequence[float]) -> bool:
    """Return True if a series rises in most of its steps, not only now and then."""
    return _rises(values) >= SPARSE * (len(values) - 1)


def _rises(values: Sequence[float]) -> int:
    return sum(b > a for a, b in pairwise(values))


def _late_share(values: Sequence[float]) -> float:
    if rises_often(values):
        return LATE
    return min(0.5, max(LATE, EXPECTED / max(1, _rises(values))))


def typical_slope(at: Sequence[float], values: Sequence[float]) -> float:
    """Return the median slope between all pairs of samples, which single steps do not affect."""
    points = list(zip(at, values, strict=True))
    slopes = [
        (b[1] - a[1]) / (b[0] - a[0])
        for i, a in enumerate(points)
        for b in points[i + 1 :]
        if b[0] > a[0]
    ]
    return median(slopes) if slopes else 0.0


def _minima(at: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the lowest value of each of about ten blocks: what stays once work has drained."""
    size = max(1, len(values) // 10)
    starts = range(0, len(values) - size + 1, size)
    lows = [min(range(i, i + size), key=values.__getitem__) for i in starts]
    return [at[i] for i in lows], [values[i] for i in lows]


def _chance(at: Sequence[float], values: Sequence[float]) -> float:
    """Return the probability that a random walk without drift rises like this.

    The steps between samples are tested, not the values: values that are correlated from one sample
    to the next (a drifting population) would otherwise look like a certain rise.
    """
    steps = [
        (b - a, s - r) for a, b, r, s in zip(values, values[1:], at, at[1:], strict=False) if s > r
    ]
    if len(steps) < 5:
        return 1.0
    rate = sum(d for d, _ in steps) / sum(t for _, t in steps)
    # in a random walk the variance of a step is proportional to its duration
    free = len(steps) - 1
    spread = sum((d - rate * t) ** 2 / t for d, t in steps) / free
    if rate <= 0:
        return 1.0
    if spread == 0:
        return 0.1 ** len(steps)
    score = rate * math.sqrt(sum(t for _, t in steps) / spread)
    return max(_tail(score, free), 0.1 ** len(steps))


def _may_fill(at: Sequence[float], values: Sequence[float]) -> bool:
    """Return True if the pace falls, or is too uneven to rule that out.

    A finite set of keys fills like this: new ones become rare, and never stop all at once.
    """
    if not all(_slows(*_bend(*points)) for points in ((at, values), _minima(at, values))):
        return False
    half = len(values) // 2
    bend, error = _bend(at[half:], values[half:])
    return bend < -EVEN or UNSURE * error > EVEN  # otherwise only the first half was faster


def _slows(bend: float, error: float) -> bool:
    return bend < -SLOWER * error or bend - UNSURE * error < -MOST_LOST


def _bend(at: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Return the relative change in slope over the series, and its standard error."""
    steps = [
        (b - a, s - r, (r + s) / 2)
        for a, b, r, s in zip(values, values[1:], at, at[1:], strict=False)
        if s > r
    ]
    gain, span = sum(d for d, _, _ in steps), sum(t for _, t, _ in steps)
    if len(steps) < 3 or gain <= 0:
        return 0.0, math.inf
    rate, middle = gain / span, sum(t * m for _, t, m in steps) / span
    weight = sum(t * (m - middle) ** 2 for _, t, m in steps)
    bend = sum(d * (m - middle) for d, _, m in steps) / weight
    # the variance of a step is proportional to its duration, as above
    rest = sum((d - t * (rate + bend * (m - middle))) ** 2 / t for d, t, m in steps)
    error = math.sqrt(rest / (len(steps) - 2) / weight)
    # anything less is rounding, in a perfectly even series
    return bend * span / rate, max(error * span / rate, 1e-9)


def _tail(score: float, free: int) -> float:
    """Return the upper tail of Student's t, by Wallace's approximation."""
    bent = math.sqrt(free * math.log1p(score * score / free)) * (8 * free + 1) / (8 * free + 3)
    return 0.5 * math.erfc(bent / math.sqrt(2))


def _deepest_fall(values: Sequence[float]) -> float:
    highest, fall = values[0], 0.0
    for value in values:
        highest = max(highest, value)
        fall = max(fall, highest - value)
    return fall


def median(values: Iterable[float]) -> float:
    """Return the middle value; `statistics` would bring decimals and random numbers with it."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
