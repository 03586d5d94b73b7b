"""Lets at most two steps in any minute take long, whoever asks for them.

Some calls cannot be interrupted, and take longer the larger the heap is: listing all objects,
asking who holds one, asking malloc. What they take is predicted from the last time, per unit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

SHORT = 0.015  # seconds: what takes no longer is not rare; less than the 20 ms that are promised
LONG = 0.020  # what a rare one may take in any heap
COUNT = "count"  # the rare step that counts all objects
COLLECTION = 60e-9  # seconds per object that a full collection takes at least, if there are many
COUNTS = 5  # times a count of the same heap: the same where all is faster
MINUTE = 60.0
EACH_MINUTE = 2
LIKELY = 1.5  # times what it took the last time
WAITING = 5.0  # seconds for which one that was refused comes before those served since

Result = TypeVar("Result")


class RareSteps:
    """Allows and times them, in seconds of `timer`; of those that wait, the longest unserved first.

    While a kind is `reserved`, the others leave one of the two to it.
    """

    def __init__(
        self, now: Callable[[], float], timer: Callable[[], float] = time.thread_time
    ) -> None:
        self._now, self.timer = now, timer
        self._taken: list[float] = []  # when, in the last minute
        self._each: dict[str, float] = {}
        self._served: dict[str, float] = {}
        self._refused: dict[str, float] = {}
        self.reserved = ""

    def expected(self, kind: str, size: int = 1, first: float = SHORT) -> float:
        """Return the seconds that one is likely to take; `first` is a guess for one unit."""
        return self._each.get(kind, first) * size

    def allows(self, kind: str, seconds: float) -> bool:
        """Return True if one that is likely to take so many seconds may be taken now."""
        if seconds <= SHORT:
            return True
        free = self._is_free(kind) and self._is_next(kind)
        if not free:
            self._refused[kind] = self._now()
        return free

    def longest(self, kind: str, objects: int) -> float:
        """Return how many seconds one may take in all, in a heap of so many objects."""
        if not self._is_free(kind):
            return SHORT
        each = min(COLLECTION, COUNTS * self._each.get(COUNT, COLLECTION) / LIKELY)
        return max(LONG, each * objects)

    def take(self, kind: str, call: Callable[[], Result], size: int = 1) -> Result:
        """Call something; it is counted if it takes long."""
        began = self.timer()
        try:
            return self.time(kind, call, size)
        finally:
            if self.timer() - began > SHORT:
                self._served[kind] = now = self._now()
                self._taken.append(now)
                self._refused.pop(kind, None)

    def time(self, kind: str, call: Callable[[], Result], size: int = 1) -> Result:
        """Call something, as a part of one that is taken, and remember how long it took a unit."""
        began = self.timer()
        try:
            return call()
        finally:
            self._each[kind] = LIKELY * (self.timer() - began) / max(1, size)

    def _is_free(self, kind: str) -> bool:
        since = self._now() - MINUTE
        self._taken = [at for at in self._taken if at > since]
        most = EACH_MINUTE if self.reserved in ("", kind) else EACH_MINUTE - 1
        return len(self._taken) < most

    def _is_next(self, kind: str) -> bool:
        mine, since = self._served.get(kind, -MINUTE), self._now() - WAITING
        return not any(
            self._served.get(other, -MINUTE) < mine
            for other, at in self._refused.items()
            if other != kind and at >= since
        )
