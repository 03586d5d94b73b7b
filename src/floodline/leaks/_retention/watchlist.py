"""Finds objects that should have been freed by now, and names what holds them.

Only what is still alive after a grace period *and* a later full collection is reported, so that no
collection is forced on a running server. Both lists of watched objects are bounded.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from floodline import telemetry
from floodline._clock import Clock, monotonic, sweeper
from floodline._units import Duration, parse_duration
from floodline.leaks._heap.walk import PLAIN
from floodline.leaks._retention.why_alive import Search
from floodline.leaks._vocabulary import Hold

GRACE = 30.0
CHECK_EVERY = 10.0
MAX_WATCHED = 1000
MAX_KEPT = 100
MAX_SEARCHES = 3  # per check, because each search makes passes over the heap
PASSES = 16
# before 3.13, reading a running function's locals keeps alive what it drops meanwhile
_FRAMES = sys.version_info >= (3, 13)


class NoPath(StrEnum):
    """What the event `retained` says instead of a path."""

    NOT_SEARCHED = "not searched: too many were found at once"
    NO_NAME = "no name leads to it: held by a running function or by C code"


@dataclass(slots=True, frozen=True)
class _Departure:
    ref: weakref.ref[Any] | None
    kept: Any
    label: str
    left_at: float
    due: float
    collections: int


@dataclass(slots=True)
class _Group:
    """The objects that one path retains: the first label, the longest time, how many."""

    label: str
    seconds: float
    count: int = 1


class Watchlist:
    """Objects that should be freed soon; `source` is the name they are reported under.

    With `keep`, objects without weak references (dicts, lists) are kept for the grace period and
    judged by their reference count; otherwise they are `unchecked`, as is what a full list forgets.
    """

    def __init__(self, source: str, *, max_watched: int = MAX_WATCHED, keep: int = 0) -> None:
        self._source, self._max_watched, self._max_kept = source, max_watched, keep
        self._watched: deque[_Departure] = deque()
        self._kept: deque[_Departure] = deque()
        self.unchecked = 0
        self.retained = 0

    def watch(self, obj: Any, label: str, now: float, grace: float = GRACE) -> bool:
        """Expect `obj` to be freed within the grace period; return True if that can be checked."""
        if obj is None:
            return False
        full = _full_collections()
        try:
            ref = weakref.ref(obj)
        except TypeError:  # a dict, a list and so on
            if not self._max_kept or id(type(obj)) in PLAIN:
                self.unchecked += 1
                return False
            one = _Departure(None, obj, label, now, now + grace, full)
            self._append(self._kept, one, self._max_kept)
        else:
            one = _Departure(ref, None, label, now, now + grace, full)
            self._append(self._watched, one, self._max_watched)
        return True

    def _append(self, watched: deque[_Departure], one: _Departure, limit: int) -> None:
        # what is already gone leaves now: between two checks, records of it would look like a leak
        for _ in range(min(2, len(watched))):
            with suppress(IndexError):  # another thread was faster
                earlier = watched.popleft()
                if not _is_gone(earlier):
                    watched.append(earlier)
        if len(watched) >= limit:
            watched.popleft()
            self.unchecked += 1
        watched.append(one)

    def check(self, now: float) -> int:
        """Report what should be freed by now but is not; return how many were found."""
        groups: dict[str, _Group] = {}
        searches = MAX_SEARCHES
        for one in self._take_due(now):
            path = _path_to(one) if searches > 0 else NoPath.NOT_SEARCHED.value
            searches -= 1
            if path is None:  # free, or garbage: the next full collection will show which
                self._again(one)
            elif path in groups:
                groups[path].count += 1
            else:
                groups[path] = _Group(one.label, now - one.left_at)
        return self._report(groups)

    def _take_due(self, now: float) -> list[_Departure]:
        full = _full_collections()
        due: list[_Departure] = []
        for watched in (self._watched, self._kept):
            for _ in range(len(watched)):
                try:
                    one = watched.popleft()
                except IndexError:  # another thread was faster
                    break
                if _is_gone(one):
                    continue
                if now < one.due or full == one.collections:
                    watched.append(one)
                else:
                    due.append(one)
        return due

    def _again(self, one: _Departure) -> None:
        if one.ref is not None and one.ref() is not None:
            self._watched.append(replace(one, collections=_full_collections()))

    def _report(self, groups: dict[str, _Group]) -> int:
        for path, group in groups.items():
            self.retained += group.count
            telemetry.emit(
                "retained",
                self._source,
                label=group.label,
                seconds=group.seconds,
                path=path,
                count=group.count,
            )
        return sum(group.count for group in groups.values())

    def __len__(self) -> int:
        return len(self._watched) + len(self._kept)


def _is_gone(one: _Departure) -> bool:
    if one.ref is not None:
        return one.ref() is None
    return sys.getrefcount(one.kept) <= 2  # the record and this call


def _path_to(one: _Departure) -> str | None:
    """Return the first path, None if the object is free or will be after the next collection."""
    obj = one.ref() if one.ref is not None else one.kept
    if obj is None:
        return None
    why = Search(obj, frames=_FRAMES, passes=PASSES, own=frozenset((id(one),))).answer()
    if why.verdict == Hold.GARBAGE:
        return None
    return why.path if why.retainers else NoPath.NO_NAME.value


def _full_collections() -> int:
    return int(gc.get_stats()[-1]["collections"])


class Expectations:
    """The watchlist behind `expect_gone`, checked by a timer while not empty."""

    def __init__(self, source: str = "expect_gone", *, clock: Clock = monotonic) -> None:
        self.watchlist = Watchlist(source, keep=MAX_KEPT)
        self._clock = clock

    def expect_gone(self, obj: Any, label: str, grace: Duration = GRACE) -> bool:
        """Expect an object to be freed; see `floodline.expect_gone`."""
        seconds = parse_duration(grace, "grace", zero=True)
        watched = self.watchlist.watch(obj, label, self._clock(), seconds)
        if watched:
            sweeper.want(self._tick, min(seconds, CHECK_EVERY))
        return watched

    def check(self) -> int:
        """Check now; return how many retained objects were found."""
        return self.watchlist.check(self._clock())

    def _tick(self) -> float | None:
        self.check()
        return CHECK_EVERY if len(self.watchlist) else None


_expectations = Expectations()


def check_gone() -> int:
    """Check the objects given to `expect_gone` now; return how many retained ones were found."""
    return _expectations.check()


def expect_gone(obj: Any, label: str, grace: Duration = "30 s") -> bool:
    """Report an event `retained` with the holder's path if `obj` is not freed in time.

    "In time" means by the first full collection after the grace period that happens by itself.
    Returns False for what cannot be checked: None, numbers and text. Beyond 1,000 objects, the
    oldest is forgotten.
    """
    return _expectations.expect_gone(obj, label, grace)
