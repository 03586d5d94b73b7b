"""Entries in the order of a number that each of them carries."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import Any, Generic, Literal

from floodline.bounded._entry import Entry, K, V

RUN = 128  # entries in a run: small enough to shift, long enough that there are few runs

Key = Literal["filed", "renewed", "place"]


class Order(Generic[K, V]):
    """A sorted list of short runs: the ends cost O(1), the middle about a microsecond.

    An entry must not change its number while it is in. No user code runs here: entries are
    compared by their numbers and found by identity.
    """

    __slots__ = ("_firsts", "_key", "runs")

    def __init__(self, key: Key) -> None:
        self._key: attrgetter[Any] = attrgetter(key)
        self.runs: list[list[Entry[K, V]]] = [[]]  # only a single run may be empty
        self._firsts = [0]

    def head(self) -> Entry[K, V] | None:
        """Return the entry with the lowest number."""
        run = self.runs[0]
        return run[0] if run else None

    def add(self, number: int, entry: Entry[K, V]) -> None:
        """Put `entry` in at its number."""
        run = self.runs[-1]
        if not run or number > self._key(run[-1]):
            self.append(number, entry)
        else:
            self._insert(number, entry)

    def append(self, number: int, entry: Entry[K, V]) -> None:
        """Put `entry` in at a number that is higher than all others."""
        run = self.runs[-1]
        if len(run) < RUN:
            run.append(entry)
        else:
            self.runs.append([entry])
            self._firsts.append(number)

    def remove(self, number: int, entry: Entry[K, V]) -> None:
        """Take out `entry`, which is in under this number."""
        run = self.runs[0]
        if run[0] is not entry:
            self._remove(number)
            return
        del run[0]
        if not run and len(self.runs) > 1:
            del self.runs[0], self._firsts[0]

    def _insert(self, number: int, entry: Entry[K, V]) -> None:
        at = max(bisect_right(self._firsts, number) - 1, 0)
        run = self.runs[at]
        run.insert(bisect_right(run, number, key=self._key), entry)
        if number < self._firsts[at]:
            self._firsts[at] = number
        if len(run) > RUN:
            half = len(run) // 2
            self.runs.insert(at + 1, run[half:])
            self._firsts.insert(at + 1, self._key(run[half]))
            del run[half:]

    def _remove(self, number: int) -> None:
        at = bisect_right(self._firsts, number) - 1
        run = self.runs[at]
        place = bisect_left(run, number, key=self._key)
        del run[place]
        if len(run) < RUN // 4:
            self._close_up(at)

    def _close_up(self, at: int) -> None:
        """Keep runs from thinning out: join a short one to its neighbour."""
        if at + 1 == len(self.runs):
            at -= 1
        if at >= 0 and len(self.runs[at]) + len(self.runs[at + 1]) <= RUN:
            self.runs[at] += self.runs[at + 1]
            del self.runs[at + 1], self._firsts[at + 1]
