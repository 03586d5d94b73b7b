"""The orders in which the entries of a map leave."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import Any, Generic, Literal

from floodline.bounded._arguments import GONE, INFINITE, EvictionOrder
from floodline.bounded._entry import Entry, K, V

RUN = 128  # entries per run: short enough to shift cheaply, long enough to keep runs few
LAZY = 64  # touched entries that one call may put back in order

Key = Literal["filed", "renewed", "place"]

_stamp: attrgetter[int] = attrgetter("stamp")


class Order(Generic[K, V]):
    """A sorted list of short runs: the ends cost O(1), the middle about a microsecond.

    An entry must not change its number while it is in the list. No user code runs here: entries are
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
        """Insert `entry` at its number."""
        run = self.runs[-1]
        if not run or number > self._key(run[-1]):
            self.append(number, entry)
        else:
            self._insert(number, entry)

    def append(self, number: int, entry: Entry[K, V]) -> None:
        """Append `entry`, whose number is higher than all others."""
        run = self.runs[-1]
        if len(run) < RUN:
            run.append(entry)
        else:
            self.runs.append([entry])
            self._firsts.append(number)

    def remove(self, number: int, entry: Entry[K, V]) -> None:
        """Remove `entry`, which was inserted under this number."""
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
        """Join a short run to its neighbour, so that runs do not thin out."""
        if at + 1 == len(self.runs):
            at -= 1
        if at >= 0 and len(self.runs[at]) + len(self.runs[at + 1]) <= RUN:
            self.runs[at] += self.runs[at + 1]
            del self.runs[at + 1], self._firsts[at + 1]


class Lines(Generic[K, V]):
    """Up to three orders, each kept only if a bound needs it: by last touch, last set, first set.

    Hits only write a stamp, so the order by touch is updated when its head is needed, at most
    `budget` entries per call. A pinned entry that comes up is parked: out of all lines, so that no
    eviction has to skip it twice.
    """

    __slots__ = (
        "_age",
        "_idle",
        "_line",
        "_lru",
        "_place",
        "_touch",
        "budget",
        "first",
        "safe",
        "second",
        "seen",
        "simple",
    )

    def __init__(self, order: EvictionOrder, ttl: float, idle: float) -> None:
        self._lru, self._idle = order == "lru", idle
        self._touch: Order[K, V] | None = None
        self._age: Order[K, V] | None = None
        self._place: Order[K, V] | None = None
        if self._lru or idle != INFINITE:
            self._touch = Order("filed")
        if order == "oldest" or ttl != INFINITE:
            self._age = Order("renewed")
        if order == "fifo":
            self._place = Order("place")
        line = {"lru": self._touch, "oldest": self._age, "fifo": self._place}[order]
        assert line is not None
        self._line: Order[K, V] = line
        # for the fast paths, which exist for one or two lines
        others = [o for o in (self._touch, self._age, self._place) if o not in (None, line)]
        self.simple = len(others) < 2
        self.first = line.runs
        self.second = others[0].runs if others and others[0] is not None else None
        self.seen: list[Entry[K, V]] = []
        self.budget = LAZY
        self.safe = INFINITE  # nothing can expire before this time

    def append(self, entry: Entry[K, V], stamp: int) -> None:
        """Put a new entry at the end of every line."""
        if self._touch is not None:
            self._touch.append(stamp, entry)
        if self._age is not None:
            self._age.append(stamp, entry)
        if self._place is not None:
            self._place.append(stamp, entry)

    def add(self, entry: Entry[K, V]) -> None:
        """Put the entry back into every line, in its place."""
        self.watch(entry)
        if self._touch is not None:
            entry.filed = stamp = entry.stamp
            self._touch.add(stamp, entry)
        if self._age is not None:
            self._age.add(entry.renewed, entry)
        if self._place is not None:
            self._place.add(entry.place, entry)

    def remove(self, entry: Entry[K, V]) -> None:
        """Take the entry out of every line; it is usually the first, which is worth a fast path."""
        if self._touch is not None:
            run = self._touch.runs[0]
            if run[0] is entry and len(run) > 1:
                del run[0]
            else:
                self._touch.remove(entry.filed, entry)
        if self._age is not None:
            run = self._age.runs[0]
            if run[0] is entry and len(run) > 1:
                del run[0]
            else:
                self._age.remove(entry.renewed, entry)
        if self._place is not None:
            self._place.remove(entry.place, entry)

    def renew(self, entry: Entry[K, V], stamp: int) -> None:
        """Note that the entry was set again; its stamp already shows the touch."""
        filed = self._age is not None and (entry.hold is None or not entry.hold.parked)
        if filed:
            self._age.remove(entry.renewed, entry)  # type: ignore[union-attr]  # see `filed`
        entry.renewed = stamp
        if filed:
            self._age.add(stamp, entry)  # type: ignore[union-attr]  # see `filed`

    def watch(self, entry: Entry[K, V]) -> None:
        """Note it if the entry expires earlier than all others."""
        if entry.dies < self.safe:
            self.safe = entry.dies
        until = entry.touched + self._idle
        if until < self.safe:
            self.safe = until

    def end(self) -> None:
        """End a call: restore its budget, and keep nothing alive that it has seen."""
        self.budget = LAZY
        self.seen.clear()

    def pop(self) -> Entry[K, V] | None:
        """Take out the next to leave; beyond the budget, the oldest of those seen in this call."""
        runs = self._line.runs
        while run := runs[0]:
            entry = run[0]
            if entry.hold is not None:
                self._park(entry)
            elif not self._lru or entry.stamp == entry.filed:
                self.remove(entry)
                return entry
            elif self.budget:
                self._refile(entry, self._line)
            else:
                entry = self._oldest_seen() or entry
                self.remove(entry)
                return entry
        return None

    def pop_expired(self, now: float, limit: int) -> list[Entry[K, V]]:
        """Take out at most `limit` expired entries.

        If there are no more, and the budget sufficed to see that, `safe` is ahead of `now`.
        """
        out: list[Entry[K, V]] = []
        if now < self.safe:
            return out
        self._pop_aged(now, limit, out)
        idled = None if self._idle == INFINITE else self._pop_idle(now, limit, out)
        oldest = [] if self._age is None else self._age.runs[0][:1]  # what is left for both
        self.safe = oldest[0].dies if oldest else INFINITE
        if idled is not None:
            # a touched entry hides others, which may have expired
            until = idled.touched + self._idle if idled.stamp == idled.filed else GONE
            self.safe = min(self.safe, until)
        return out

    def _pop_aged(self, now: float, limit: int, out: list[Entry[K, V]]) -> None:
        """Take out the entries that are too old."""
        if self._age is None:
            return
        runs = self._age.runs
        while run := runs[0]:
            entry = run[0]
            if entry.hold is not None:
                self._park(entry)
            elif now < entry.dies or len(out) == limit:
                return
            else:
                self.remove(entry)
                out.append(entry)

    def _pop_idle(self, now: float, limit: int, out: list[Entry[K, V]]) -> Entry[K, V] | None:
        """Take out the entries that were idle too long; return the first one after them."""
        assert self._touch is not None
        runs = self._touch.runs
        while run := runs[0]:
            entry = run[0]
            if entry.hold is not None:
                self._park(entry)
            elif entry.stamp != entry.filed and self.budget:
                self._refile(entry, self._touch)
            elif now < entry.touched + self._idle or len(out) == limit:
                return entry
            else:
                self.remove(entry)
                out.append(entry)
        return None

    def _oldest_seen(self) -> Entry[K, V] | None:
        inside = [entry for entry in self.seen if entry.dies != GONE]
        return min(inside, key=_stamp, default=None)

    def _refile(self, entry: Entry[K, V], order: Order[K, V]) -> None:
        self.budget -= 1
        self.seen.append(entry)
        order.remove(entry.filed, entry)
        entry.filed = stamp = entry.stamp
        order.add(stamp, entry)

    def _park(self, entry: Entry[K, V]) -> None:
        assert entry.hold is not None
        self.remove(entry)
        entry.hold.parked = True
