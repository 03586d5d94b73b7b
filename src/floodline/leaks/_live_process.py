"""The figures of the whole process, read often if that is cheap and seldom if it is not."""

from __future__ import annotations

import sys
import time

from floodline.leaks._live_tracks import Process
from floodline.leaks._split import read_malloc
from floodline.memory import rss

EVERY = 1.0
MALLOC_EVERY = 10.0
DEAR = 0.002  # seconds of a question to malloc, after which it is asked less often


class Sampler:
    """Samples resident memory, blocks of Python and what malloc says of itself."""

    def __init__(self) -> None:
        self.process = Process()
        self._next = self._next_malloc = 0.0
        self._malloc = (0, 0, 0)

    def sample(self, now: float) -> None:
        """Take a sample if one is due."""
        if now < self._next:
            return
        self._next = now + EVERY
        if now >= self._next_malloc:
            self._ask_malloc(now)
        # objects and their bytes are the walk's, arenas are told on stderr only
        row = (round(now), 0, 0, rss(), sys.getallocatedblocks(), *self._malloc, 0)
        self.process.add(now, row)

    def _ask_malloc(self, now: float) -> None:
        began = time.perf_counter()
        self._malloc = read_malloc()
        took = time.perf_counter() - began
        self._next_malloc = now + MALLOC_EVERY * max(1.0, took / DEAR)
