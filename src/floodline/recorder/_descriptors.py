"""File descriptors: how many there are to share out, and a few that are put by for the tick."""

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
USUAL = 1024  # where the system does not tell
MOST = 1 << 20
MINUTE = 60.0


def descriptor_limit() -> int:
    """Return how many descriptors this process may have."""
    if resource is None:
        return USUAL
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)


class Spare:
    """Descriptors that are put by, and free inside `with`: SQLite and /proc need some each tick.

    Who holds `gate` keeps others from letting them go: callers shall not be accepted with these.
    """

    def __init__(self, count: int = 8) -> None:
        self._count = count
        self.gate = threading.Lock()
        self._kept: list[int] = []
        self.keep()

    def keep(self) -> None:
        """Put by as many as can be had."""
        with suppress(OSError):  # the next tick tries again
            while len(self._kept) < self._count:
                self._kept.append(os.open(os.devnull, os.O_RDONLY))

    def close(self) -> None:
        """Let them go."""
        while self._kept:
            os.close(self._kept.pop())

    def __enter__(self) -> None:
        """Let them go for a while."""
        self.gate.acquire()
        self.close()

    def __exit__(self, *_: object) -> None:
        """Put them by again."""
        self.keep()
        self.gate.release()


class Seldom:
    """Says yes at most once a minute, to a line that would else be written every second."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, every: float = MINUTE
    ) -> None:
        self._clock, self._every = clock, every
        self._last: float | None = None

    def __call__(self) -> bool:
        """Tell whether it is time for another line, which is then taken as written."""
        now = self._clock()
        if self._last is not None and now - self._last < self._every:
            return False
        self._last = now
        return True
