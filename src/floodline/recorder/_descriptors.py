"""File descriptors: how many there are, and a few reserved for the tick."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

try:
    import resource
except ImportError:  # Windows, where nothing is recorded
    resource = None  # type: ignore[assignment]  # asked for before each use

STARVED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
USUAL = 1024  # if the system does not say
MOST = 1 << 20
MINUTE = 60.0


def descriptor_limit() -> int:
    """Return how many descriptors this process may have."""
    if resource is None:
        return USUAL
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)


class Spare:
    """Reserved descriptors, free inside `with`: SQLite and /proc need some each tick.

    While `gate` is held they are not released: connections must not be accepted with them.
    """

    def __init__(self, count: int = 8) -> None:
        self._count = count
        self.gate = threading.Lock()
        self._kept: list[int] = []
        self.keep()

    def keep(self) -> None:
        """Reserve as many as are available."""
        with suppress(OSError):  # the next tick tries again
            while len(self._kept) < self._count:
                self._kept.append(os.open(os.devnull, os.O_RDONLY))

    def close(self) -> None:
        """Release them."""
        while self._kept:
            os.close(self._kept.pop())

    def __enter__(self) -> None:
        """Release them for a while."""
        self.gate.acquire()
        self.close()

    def __exit__(self, *_: object) -> None:
        """Reserve them again."""
        self.keep()
        self.gate.release()


class Seldom:
    """Returns True at most once per minute, for a line otherwise written every second."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, every: float = MINUTE
    ) -> None:
        self._clock, self._every = clock, every
        self._last: float | None = None

    def __call__(self) -> bool:
        """Return True if it is time for another line, which then counts as written."""
        now = self._clock()
        if self._last is not None and now - self._last < self._every:
            return False
        self._last = now
        return True
