"""The figures of slots over time, each with its own clock, in a room that does not grow."""

from __future__ import annotations

from array import array

from floodline.leaks._series import COLUMNS, PROCESS
from floodline.leaks._slots import Slots

MAX_POINTS = 48
MAX_SPACING = 64.0  # seconds between two points; after that the oldest half is forgotten
MAX_TRACKS = 2_000
Row = tuple[int, int, int, int]


class Track:
    """Points of one slot: their times and the columns of a walk.

    When it is full, every second point is dropped and the next come half as often.
    """

    __slots__ = ("_spacing", "columns", "latest", "moved", "quiet", "times")

    def __init__(self, width: int = len(COLUMNS)) -> None:
        self.times = array("d")
        self.columns = [array("q") for _ in range(width)]
        self.latest: tuple[int, ...] = (0,) * width
        self.quiet = 0
        self.moved = False
        self._spacing = 0.0

    def add(self, at: float, row: tuple[int, ...]) -> None:
        """Take a point, unless the last one is too near."""
        same = not self.times or row == self.latest
        self.quiet = self.quiet + 1 if self.times and same else 0
        self.moved = self.moved or not same
        self.latest = row
        if self.times and at - self.times[-1] < self._spacing * 0.9:
            return
        self.times.append(at)
        for column, value in zip(self.columns, row, strict=True):
            column.append(value)
        if len(self.times) >= MAX_POINTS:
            self._thin()

    def _thin(self) -> None:
        if self._spacing >= MAX_SPACING:
            self._keep(slice(MAX_POINTS // 2, None))
            return
        self._keep(slice((len(self.times) + 1) % 2, None, 2))  # the newest stays
        self._spacing = (self.times[-1] - self.times[0]) / (len(self.times) - 1)

    def _keep(self, which: slice) -> None:
        self.times = self.times[which]
        self.columns = [column[which] for column in self.columns]

    @property
    def span(self) -> float:
        """The seconds from the first point to the last."""
        return self.times[-1] - self.times[0] if self.times else 0.0

    @property
    def changes(self) -> bool:
        """Whether the figures were not always the same."""
        return any(min(column) != max(column) for column in self.columns if column)


class Tracks:
    """Tracks by the index of their slot; `find_candidates` reads them like the series of a soak."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.by_index: dict[int, Track] = {}

    def add(self, index: int, at: float, row: Row) -> None:
        """Take a point of a slot."""
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
        """Return the indices of the slots that were not always the same."""
        return [index for index, track in self.by_index.items() if track.changes]

    def at(self, index: int) -> list[float]:
        """Return the times of the points of a slot."""
        return self.by_index[index].times.tolist()

    def column(self, index: int, column: str) -> list[int]:
        """Return one figure of a slot at these times."""
        return self.by_index[index].columns[COLUMNS.index(column)].tolist()

    def last(self, index: int, column: str) -> int:
        """Return the newest figure of a slot."""
        return self.by_index[index].latest[COLUMNS.index(column)]


class Process:
    """Figures of the whole process over time, which `decide` reads like those of a soak."""

    unit = "second"
    # a server's caches, and our own tracks, take some memory before they are full
    least_resident = least_native = 4 << 20

    def __init__(self) -> None:
        self._track = Track(len(PROCESS))

    def __len__(self) -> int:
        return len(self._track.times)

    @property
    def rounds(self) -> list[float]:
        """The seconds at which each sample was taken."""
        return self._track.times.tolist()

    def process(self, name: str) -> list[int]:
        """Return a figure of the whole process, one a sample."""
        return self._track.columns[PROCESS.index(name)].tolist()

    def restart(self) -> None:
        """Forget the samples so far."""
        self._track = Track(len(PROCESS))

    def add(self, at: float, row: tuple[int, ...]) -> None:
        """Take the figures in the order of `PROCESS`."""
        self._track.add(at, row)
