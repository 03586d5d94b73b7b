"""The two stages of a walk: the program first, then the libraries, which change seldom."""

from __future__ import annotations

from enum import Enum, auto

from floodline.leaks._live.readings.tracks import Row
from floodline.leaks._live.walk.sliced_walk import SlicedWalk

NOTHING: Row = (0, 0, 0, 0)


class Stage(Enum):
    """What a walk is visiting."""

    PROGRAM = auto()
    LIBRARIES = auto()


class Rows:
    """The figures of all slots at the end of a stage; `at` is None before there are any.

    Those of a walk that goes on are copied, those of one that is `over` are not.
    """

    def __init__(
        self, walk: SlicedWalk | None = None, at: float | None = None, *, over: bool = False
    ) -> None:
        self.at = at
        columns = (walk.count, walk.length, walk.text, walk.bytes) if walk else ()
        self._columns = columns if over else tuple(column[:] for column in columns)

    def row(self, index: int) -> Row:
        """Return the figures of a slot, zeros if it was not met."""
        if not self._columns or index >= len(self._columns[0]):
            return NOTHING
        count, length, text, size = (column[index] for column in self._columns)
        return (count, length, text, size)


class Progress:
    """How far the first look is: the time that the rest will take at the pace so far."""

    def __init__(self, guess: float) -> None:
        self._guess, self._began = guess, 0.0
        self._total = self._done = 0

    def begin(self, total: int, now: float) -> None:
        """Begin to count, of so many modules."""
        self._total, self._began = total, now

    def step(self) -> None:
        """Count one."""
        self._done += 1

    def left(self, now: float) -> float:
        """Return the seconds that are left, a guess before anything is known."""
        if not self._total or self._done * 10 < self._total:
            return max(1.0, self._guess - now)
        return max(0.0, (now - self._began) / self._done * (self._total - self._done))
