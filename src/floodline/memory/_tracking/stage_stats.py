"""The figures of a tracker, and of one stage over all its runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from heapq import nlargest
from operator import attrgetter, itemgetter
from typing import Any

from floodline.memory._tracking.allocation_lines import AllocationLine
from floodline.memory._tracking.span import Span
from floodline.telemetry import Stats

MIB = 1 << 20

_size = attrgetter("bytes")


@dataclass(slots=True, frozen=True)
class StageStats:
    """One stage: how often it ran and how memory changed meanwhile; sizes are bytes.

    `growth` and `own` are totals over all runs, `largest` is the biggest growth in one, `peak` the
    highest resident size in any. `overlapped` counts the runs whose growth may be others'.
    """

    name: str
    count: int
    growth: int
    own: int
    largest: int
    peak: int
    seconds: float
    failed: int
    overlapped: int
    lines: tuple[AllocationLine, ...] = ()

    @property
    def mean_growth(self) -> float:
        """Bytes of growth per run."""
        return self.growth / self.count

    @property
    def mean_seconds(self) -> float:
        """Seconds per run."""
        return self.seconds / self.count

    @property
    def growth_mb(self) -> float:
        """Growth of all runs in MiB."""
        return self.growth / MIB

    @property
    def peak_mb(self) -> float:
        """The highest resident size in MiB."""
        return self.peak / MIB

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain values, including the means."""
        means = {"mean_growth": self.mean_growth, "mean_seconds": self.mean_seconds}
        return asdict(self) | means


@dataclass(slots=True, frozen=True, kw_only=True)
class TrackerStats(Stats):
    """`items` are kept samples, `bytes` the last resident size."""

    samples: int
    stages: int
    open: int
    peak: int
    growth: int


class Tally:
    """Adds up the runs of one stage; its caller holds the lock."""

    __slots__ = (
        "_lines",
        "_name",
        "_top",
        "count",
        "failed",
        "growth",
        "largest",
        "overlapped",
        "own",
        "peak",
        "seconds",
    )

    def __init__(self, name: str, top: int) -> None:
        self._name, self._top = name, top
        self._lines: dict[tuple[str, int], int] = {}
        self.count = self.growth = self.own = self.peak = self.failed = self.overlapped = 0
        self.largest: int | None = None
        self.seconds = 0.0

    def add(self, run: Span, lines: dict[tuple[str, int], int]) -> None:
        """Count one run, and the lines that grew in it."""
        self.count += 1
        self.growth += run.growth
        self.own += run.own
        self.largest = run.growth if self.largest is None else max(self.largest, run.growth)
        self.peak = max(self.peak, run.peak)
        self.seconds += run.seconds
        self.failed += run.failed
        self.overlapped += run.overlapped
        for line, size in lines.items():
            self._lines[line] = self._lines.get(line, 0) + size
        if len(self._lines) > 8 * self._top:
            self._lines = dict(nlargest(4 * self._top, self._lines.items(), key=itemgetter(1)))

    def stats(self) -> StageStats:
        """Return the current figures."""
        lines = (AllocationLine(file, n, size) for (file, n), size in self._lines.items())
        return StageStats(
            self._name,
            self.count,
            self.growth,
            self.own,
            self.largest or 0,
            self.peak,
            self.seconds,
            self.failed,
            self.overlapped,
            tuple(nlargest(self._top, lines, key=_size)),
        )
