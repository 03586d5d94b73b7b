"""Series of figures over time that stay short: older points are coarser."""

from __future__ import annotations

from statistics import median

MOST = 600
FEWER = 150  # of one process among many
WINDOW = 120.0  # seconds over which the current rate is measured
START = 10.0  # seconds in which a program and our probe load: not a trend
FEWEST = 10  # points, and seconds, below which there is no rate
LEAST_RATE = 1024.0  # bytes per second; below it there is no forecast


class Points:
    """At most 600 points `[at, value]`; when full, the older half is thinned out."""

    def __init__(self, series: int, most: int = MOST) -> None:
        self.series, self._most = series, most
        self.all: list[list[float]] = []
        self.peak = 0.0
        self._written = 0
        self._thinned = False

    def add(self, at: float, value: float) -> None:
        """Append; a point that is not after the last one replaces it."""
        if self.all and at <= self.all[-1][0]:
            at = self.all[-1][0]
            self.all.pop()
            if self._written > len(self.all):
                self._written, self._thinned = 0, True
        self.all.append([round(at, 3), value])
        self.peak = max(self.peak, value)
        if len(self.all) > self._most:
            half = len(self.all) // 2
            self.all[:half] = self.all[:half:2]
            self._written, self._thinned = 0, True

    def unwritten(self) -> tuple[bool, list[list[float]]]:
        """Return True if what is on disk must be replaced, and the points missing there."""
        new = self.all[self._written :]
        replace, self._thinned = self._thinned, False
        self._written = len(self.all)
        return replace, new

    def rewrite(self) -> None:
        """Mark all points as unwritten, after a failed write."""
        self._written, self._thinned = 0, True

    @property
    def last(self) -> float:
        """The newest value, 0 if there is none."""
        return self.all[-1][1] if self.all else 0.0

    def before(self, at: float) -> float:
        """Return the newest value that is older, or the newest of all if none is."""
        older = [value for when, value in self.all if when < at]
        return older[-1] if older else self.last

    def rate(self) -> float:
        """Return bytes per second over the last two minutes; neither a start nor a peak counts."""
        gain, seconds = self.gain()
        return gain / seconds if seconds else 0.0

    def gain(self) -> tuple[float, float]:
        """Return what was gained, and in how many seconds; zeros if it is too early to tell."""
        recent = self._recent()
        if not recent:
            return 0.0, 0.0
        third = len(recent) // 3
        before, after = recent[:third], recent[-third:]
        gain = median(value for _, value in after) - median(value for _, value in before)
        return gain, _apart(before, after)

    def rise(self) -> tuple[float, float]:
        """Return the same of what stays and still rises.

        What rose once and not since is no rise, and neither is what comes and goes: the lowest
        quarter counts.
        """
        recent = self._recent()
        if not recent:
            return 0.0, 0.0
        third = len(recent) // 3
        before, between, after = recent[:third], recent[third:-third], recent[-third:]
        low, middle, high = _lowest(before), _lowest(between), _lowest(after)
        return min(high - low, 2 * (high - middle)), _apart(before, after)

    def _recent(self) -> list[list[float]]:
        """Return the points of the last two minutes, none if it is too early to tell."""
        if not self.all:
            return []
        newest = self.all[-1][0]
        since = max(newest - WINDOW, self.all[0][0] + START)
        recent = [point for point in self.all if point[0] >= since]
        enough = len(recent) >= FEWEST and newest - recent[0][0] >= FEWEST
        return recent if enough else []


def _lowest(points: list[list[float]]) -> float:
    values = sorted(value for _, value in points)
    return values[len(values) // 4]


def _apart(before: list[list[float]], after: list[list[float]]) -> float:
    return median(at for at, _ in after) - median(at for at, _ in before)


def crosses_in(now: float, rate: float, line: float | None) -> float | None:
    """Return the seconds until the line is crossed at this rate; 0 above it, None if never."""
    if line is None:
        return None
    if now >= line:
        return 0.0
    return (line - now) / rate if rate >= LEAST_RATE else None
