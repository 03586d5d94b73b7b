"""Samples the figures of the whole process, often if that is cheap and rarely if it is not.

The census counts all objects that the collector tracks. It lists them in one go, which takes about
a millisecond per 100,000, so it is a rare step in a large heap, and skipped in a very large one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from floodline import telemetry
from floodline.leaks._figures.rss_split import judged_malloc
from floodline.leaks._live.readings.listed_objects import count
from floodline.leaks._live.readings.own_memory import OwnMemory
from floodline.leaks._live.readings.rare_steps import COUNT, LIKELY, SHORT, RareSteps
from floodline.leaks._live.readings.tracks import Process
from floodline.memory import rss

EVERY = 1.0
CENSUS_EVERY = 3.0
SELDOM = 30.0  # seconds between two that take ten times as long as a slice
APART = 3_000  # times what one takes, until the next
EACH = 20e-9  # seconds per object that one takes, until it was measured
CENSUS_BLOCKS = 12_000_000  # blocks of Python's allocator; above this there is no census
BLOCKS_EACH = 2  # about how many of them an object takes
BLOCK = 96  # average bytes of a block of Python's allocator
TRACK_OBJECTS, TRACK_BLOCKS = 3, 8  # of our own, for each place whose figures are kept
MALLOC_APART = 5_000  # times what malloc takes to answer, until it is asked again


class Sampler:
    """Samples resident memory, Python's blocks and malloc's own figures, less what is `own`."""

    def __init__(
        self,
        own: OwnMemory,
        rare: RareSteps,
        *,
        census: bool = True,
        tracks: Callable[[], int] = int,
    ) -> None:
        self.process = Process()
        self.censuses = 0
        self._own, self._rare, self._tracks = own, rare, tracks
        self.counting = census
        self._census = census
        self._next = self._next_malloc = self._next_census = 0.0
        self._malloc = (0, 0, 0)
        self._objects = self._highest = 0
        self.objects = 0  # about how many there are, also if they are not counted
        rare.take("malloc", judged_malloc)  # the first call loads a library

    def allow_census(self) -> None:
        """Count objects from now on."""
        self._census = True

    @property
    def free(self) -> int:
        """The bytes that malloc had free when it was last asked."""
        return self._malloc[1]

    def sample(self, now: float, *, harder: bool = False) -> None:
        """Take a sample if one is due; `harder` also counts all objects by type now and then."""
        if now < self._next:
            return
        self._next = now + EVERY
        if now >= self._next_malloc and self._allows("malloc"):
            self._ask_malloc(now)
        blocks = sys.getallocatedblocks() - TRACK_BLOCKS * self._tracks()
        if harder and self._census and self.process.counted.is_due(now, self.objects, self._rare):
            self._count_types(now)
        elif now >= self._next_census:
            self._count(now, blocks)
        # Python's own allocator rarely gives memory back; only its debug output reports its
        # arenas, so they are estimated
        self._highest = max(self._highest, blocks)
        known = self._own.bytes + telemetry.native_bytes() + BLOCK * self._highest
        beyond = rss() - known
        self.process.add(now, (round(now), self._objects, 0, beyond, blocks, *self._malloc, 0))

    def _allows(self, kind: str, size: int = 1, first: float = 0.0) -> bool:
        return self._rare.allows(kind, self._rare.expected(kind, size, first))

    def _count(self, now: float, blocks: int) -> None:
        self.counting = self._census and blocks <= CENSUS_BLOCKS
        about = max(self.objects, blocks // BLOCKS_EACH)
        if not self.counting:
            self.objects, self._next_census = blocks // BLOCKS_EACH, now + CENSUS_EVERY
        elif self._allows(COUNT, about, EACH):
            self._counted(now, self._rare.take(COUNT, count, about), COUNT)

    def _count_types(self, now: float) -> None:
        """Count all objects by type, and so how many there are."""
        types = self.process.counted
        types.work(now, self.objects, self._rare)
        rare = self._rare.expected(COUNT, self.objects, EACH) > SHORT
        if self.counting and rare:  # it saves a count
            self._counted(now, types.objects, "census")

    def _counted(self, now: float, objects: int, kind: str) -> None:
        took = self._rare.expected(kind, objects) / LIKELY
        self.objects = self._objects = max(0, objects - TRACK_OBJECTS * self._tracks())
        self.process.count(now, self._objects)
        self.censuses += 1
        self._next_census = now + min(SELDOM, max(CENSUS_EVERY, APART * took))

    def _ask_malloc(self, now: float) -> None:
        self._malloc = self._rare.take("malloc", judged_malloc)
        took = self._rare.expected("malloc") / LIKELY
        self._next_malloc = now + max(EVERY, MALLOC_APART * took)
