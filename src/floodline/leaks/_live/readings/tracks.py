"""The figures of slots over time, each with its own clock, in bounded memory."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import pairwise
from math import inf
from struct import Struct
from typing import Any

from floodline.leaks._figures.own_holders import OwnHolders
from floodline.leaks._figures.series import COLUMNS, PROCESS
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.readings import listed_objects
from floodline.leaks._live.readings.type_census import TypeCensus
from floodline.leaks._vocabulary import Step

MAX_POINTS = 48
MAX_SPACING = 64.0  # seconds between two points; beyond that the oldest half is forgotten
MAX_TRACKS = 2_000
RECENT = 3  # counts of all objects that must agree before they are called flat
SPARSE = 45.0  # seconds that these span where counting is rare
EVEN = 0.6  # of the fastest pace: what the watch itself adds comes once, not evenly
Row = tuple[int, int, int, int]
_RECORDS = {width: Struct("d" + "q" * width) for width in (len(COLUMNS), len(PROCESS))}


class Track:
    """The points of one slot: a time and the columns of a walk, one record of bytes each.

    When it is full, every other point is dropped and new ones come half as often.
    """

    __slots__ = ("_points", "_record", "_spacing", "latest", "moved", "quiet")

    def __init__(self, width: int = len(COLUMNS)) -> None:
        self._record = _RECORDS[width]
        self._points = b""
        self.latest: tuple[int, ...] = (0,) * width
        self.quiet = 0
        self.moved = False
        self._spacing = 0.0

    def __len__(self) -> int:
        return len(self._points) // self._record.size

    def add(self, at: float, row: tuple[int, ...]) -> None:
        """Record a point, unless the last one is too recent."""
        first = not self._points
        same = first or row == self.latest
        self.quiet = 0 if first or not same else self.quiet + 1
        self.moved = self.moved or not same
        self.latest = row
        if not first and at - self._at(-1)[0] < self._spacing * 0.9:
            return
        self._points += self._record.pack(at, *row)
        if len(self) >= MAX_POINTS:
            self._thin()

    def _at(self, index: int) -> tuple[Any, ...]:
        return self._record.unpack_from(self._points, index % len(self) * self._record.size)

    def _thin(self) -> None:
        size, count = self._record.size, len(self)
        if self._spacing >= MAX_SPACING:
            self._points = self._points[MAX_POINTS // 2 * size :]
            return
        kept = range((count + 1) % 2, count, 2)  # the newest stays
        self._points = b"".join(self._points[at * size : (at + 1) * size] for at in kept)
        self._spacing = self.span / (len(self) - 1)

    @property
    def times(self) -> list[float]:
        """The times of the points."""
        return [point[0] for point in self._record.iter_unpack(self._points)]

    def column(self, number: int) -> list[int]:
        """Return one figure at these times."""
        return [point[1 + number] for point in self._record.iter_unpack(self._points)]

    @property
    def gains(self) -> tuple[int, ...]:
        """The gain of each figure from the first point to the last."""
        return tuple(new - old for old, new in zip(self._at(0)[1:], self._at(-1)[1:], strict=True))

    @property
    def span(self) -> float:
        """The seconds from the first point to the last."""
        return float(self._at(-1)[0] - self._at(0)[0]) if self._points else 0.0

    def rises(self, since: float, *, counted: bool = False) -> bool:
        """Return True if it has gained since then, and keeps more than half of its highest.

        What counts is its items and its text or, with `counted`, how many objects there are.
        """
        points = list(self._record.iter_unpack(self._points))
        if not points:
            return False
        before = [row for row in points if row[0] <= since] or points[:1]
        figures = (0,) if counted else (1, 2)
        now, most = self.latest, [max(row[1 + one] for row in points) for one in figures]
        gained = any(now[one] > before[-1][1 + one] for one in figures)
        return gained and all(2 * now[one] >= high for one, high in zip(figures, most, strict=True))

    @property
    def changes(self) -> bool:
        """True if the figures have ever changed."""
        if not self.moved or not self._points:
            return False
        _, *first = self._at(0)
        return any(row != first for _, *row in self._record.iter_unpack(self._points))


class Tracks:
    """Tracks by the index of their slot; `find_candidates` reads them like the series of a soak."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.by_index: dict[int, Track] = {}

    def add(self, index: int, at: float, row: Row) -> None:
        """Record a point of a slot."""
        track = self.by_index.get(index)
        if track is None:
            if len(self.by_index) >= MAX_TRACKS and not self._make_room():
                return
            track = self.by_index[index] = Track()
        track.add(at, row)

    def _make_room(self) -> bool:
        still = [index for index, track in self.by_index.items() if not track.changes]
        for index in still:
            del self.by_index[index]
        return bool(still)

    def changed(self) -> list[int]:
        """Return the indices of the slots that have changed."""
        return [index for index, track in self.by_index.items() if track.changes]

    def at(self, index: int) -> list[float]:
        """Return the times of the points of a slot."""
        return self.by_index[index].times

    def column(self, index: int, column: str) -> list[int]:
        """Return one figure of a slot at these times."""
        return self.by_index[index].column(COLUMNS.index(column))

    def last(self, index: int, column: str) -> int:
        """Return the newest figure of a slot."""
        return self.by_index[index].latest[COLUMNS.index(column)]


class Process:
    """Figures of the whole process over time; `decide` reads them like those of a soak."""

    unit: Step = "second"
    # a server's caches, and our own tracks, take some memory before they are full
    least_resident = least_native = 4 << 20
    least_growth = least_rise = 1_000.0

    def __init__(self, full_passes: Callable[[], int] | None = None) -> None:
        self._full_passes = full_passes or listed_objects.full_passes
        self._passes, self._passed = self._full_passes(), -inf
        self._track = Track(len(PROCESS))
        self._counts = Track()
        self.holders = OwnHolders()
        self.counted = TypeCensus()

    def __len__(self) -> int:
        return len(self._track)

    @property
    def rounds(self) -> list[float]:
        """The seconds at which each sample was taken."""
        return self._track.times

    def process(self, name: str) -> list[int]:
        """Return a figure of the whole process, one per sample."""
        return self._track.column(PROCESS.index(name))

    def count(self, at: float, objects: int) -> None:
        """Record how many objects there are, which not every sample has counted anew."""
        self._counts.add(at, (objects, 0, 0, 0))

    @property
    def few_counts(self) -> bool:
        """True if objects are counted, but were not often enough to call them flat."""
        return 0 < len(self._counts) < RECENT

    @property
    def climb(self) -> float:
        """Objects per second by which rare counts rise at an even pace, 0 if they do not."""
        times, counts = self._counts.times[-RECENT:], self._counts.column(0)[-RECENT:]
        if len(counts) < RECENT or times[-1] - times[0] < SPARSE:
            return 0.0
        steps = zip(pairwise(times), pairwise(counts), strict=True)
        rates = [(more - less) / (to - since) for (since, to), (less, more) in steps]
        even = min(rates) >= EVEN * max(rates)
        return min(rates) if even and counts[-1] - counts[0] >= self.least_rise else 0.0

    @property
    def may_be_garbage(self) -> bool:
        """True if new objects may be cycles that wait for a full pass of the collector.

        One in the second half of the samples would have freed most of them.
        """
        times = self._track.times
        return gc.isenabled() and bool(times) and self._passed < (times[0] + times[-1]) / 2

    @property
    def garbage_waits(self) -> bool:
        """True if many objects have come since the last full pass: their memory may be garbage."""
        times, counts = self._track.times, self.process("objects")
        since = [count for at, count in zip(times, counts, strict=True) if at > self._passed]
        return gc.isenabled() and bool(since) and since[-1] - min(since) >= self.least_rise

    def restart(self) -> None:
        """Forget the samples so far."""
        self._track, self._counts = Track(len(PROCESS)), Track()

    def add(self, at: float, row: tuple[int, ...]) -> None:
        """Record the figures, in the order of `PROCESS`."""
        self.holders.note(at)
        self._track.add(at, row)
        if (passes := self._full_passes()) != self._passes:
            self._passes, self._passed = passes, at
