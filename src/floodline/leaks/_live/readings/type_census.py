"""Counts all objects by type, while there are more and more that no name explains.

It takes about 0.2 ms per 1,000 objects; in a large heap only every n-th is counted, and of the
newest, as many as there are more of, all: what survives is added to the end of the collector's list
until it looks at all objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice
from math import sqrt
from typing import Any

from floodline.leaks._live.readings import listed_objects
from floodline.leaks._live.readings.listed_objects import listing
from floodline.leaks._live.readings.rare_steps import RareSteps
from floodline.leaks._objects.anatomy import is_standard, label_of

EVERY = 30.0
LATER = 300.0  # seconds between two, once there were some
SOME = 6
AT_ONCE = 80_000  # objects that are counted, of more every n-th
MOST_NAMED = 2
LEAST = 100  # new objects of a type that is named
NOISE = 4  # standard errors of a count
EACH = 0.2e-6  # seconds for an object that is counted, until it was measured
SHARE = 0.15  # of all new objects: what multiplies less is not named


class TypeCensus:
    """Compares each census with the first, for as long as it is asked to."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._step, self._next = 0, 0.0
        self._since = 0, 0  # the full passes of the collector, and the objects after the last
        self.taken = 0
        self.longest = 0.0  # seconds
        self.objects = 0  # in all, of many about
        self.kinds: tuple[str, ...] = ()  # the types that multiply, most first
        self.searched = ""  # what was done to find their holders
        self.ids: frozenset[int] = frozenset()  # their identities

    def is_due(self, now: float, objects: int, rare: RareSteps) -> bool:
        """Return True if it is time to count and allowed; `objects` is about how many there are."""
        return now >= self._next and rare.allows("census", rare.expected("census", objects, EACH))

    def work(self, now: float, objects: int, rare: RareSteps) -> None:
        """Count now."""
        self._next = now + (EVERY if self.taken < SOME else LATER)
        step = self._step or 1 + objects // AT_ONCE
        began = rare.timer()
        newest = self._gained(objects) if step > 1 else 0
        counts, latest = rare.take("census", lambda: _count(step, newest), objects)
        self.longest = max(self.longest, rare.timer() - began)
        self.taken += 1
        self.objects = step * sum(counts.values())
        if not self._first:
            self._first, self._step = counts, step
        elif latest:
            self.kinds, self.ids = _multiplying({}, latest, 1)
        else:
            self.kinds, self.ids = _multiplying(self._first, counts, step)

    def _gained(self, objects: int) -> int:
        """Return how many more objects there are than after the last full pass, if it is enough."""
        passes = listed_objects.full_passes()
        if passes != self._since[0] or not self._since[1]:
            self._since = passes, objects
        gained = objects - self._since[1]
        return min(AT_ONCE, gained) if gained >= LEAST else 0


def _count(step: int, newest: int) -> tuple[dict[int, int], dict[int, int]]:
    """Return how many objects of each type there are, by the identity of the type.

    All of the newest are counted, all others by every n-th.
    """
    counts = _by_type(lambda found: islice(chain.from_iterable(found), None, None, step))
    if not newest:
        return counts, {}
    last = _by_type(lambda found: islice(chain.from_iterable(map(reversed, found)), newest))
    return counts, last


def _by_type(choose: Callable[[Iterator[list[Any]]], Iterator[Any]]) -> dict[int, int]:
    found, emptied = listing()
    return Counter(chain(map(id, map(type, choose(found))), emptied))


def _multiplying(
    before: dict[int, int], now: dict[int, int], step: int
) -> tuple[tuple[str, ...], frozenset[int]]:
    gains = {kind: count - before.get(kind, 0) for kind, count in now.items()}
    total = sum(gain for gain in gains.values() if gain > 0)
    if step > 1:  # by chance, more of a common type are among every n-th
        gains = {k: g for k, g in gains.items() if g >= NOISE * sqrt(now[k] + before.get(k, 0))}
    most = sorted(gains, key=gains.__getitem__, reverse=True)[:MOST_NAMED]
    chosen = [k for k in most if gains[k] * step >= LEAST and gains[k] >= SHARE * total]
    labels = _labels(frozenset(chosen))
    named = [kind for kind in chosen if kind in labels]
    theirs = [kind for kind in named if not is_standard(labels[kind])]  # a list may be anybody's
    return tuple(labels[kind] for kind in named), frozenset(theirs or named)


def _labels(wanted: frozenset[int]) -> dict[int, str]:
    """Return the names of types, found below `object` without asking a metaclass."""
    found: dict[int, str] = {}
    todo, seen = [object], {id(object)}
    while todo and len(found) < len(wanted):
        at = todo.pop()
        if id(at) in wanted:
            found[id(at)] = label_of(at)
        below = [one for one in type.__subclasses__(at) if id(one) not in seen]
        seen.update(map(id, below))
        todo += below
    return found
