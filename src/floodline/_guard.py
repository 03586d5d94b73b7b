"""A lock that neither the garbage collector nor a signal can deadlock.

A finalizer or a signal handler may strike between any two steps of a critical section, on the
thread that is inside it. An `RLock` lets that thread in again, and `busy` tells it that it is a
guest: it must leave its wish in `late`, which the interrupted section runs after it has ended.
Before `busy` is set and after it is cleared nothing has been read or is half-written, so a guest
that comes then may simply do its work. Every section has this shape:

    with guard.lock:
        if guard.busy:
            guard.late.append(work)  # or refuse
            return
        guard.busy = True
        try:
            ...
        finally:
            guard.busy = False
    if guard.late:
        guard.run_late()
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Guard:
    """The lock, the flag and the work that guests left."""

    __slots__ = ("busy", "late", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.busy = False
        self.late: deque[Callable[[], object]] = deque()

    def run(self, work: Callable[[], object]) -> None:
        """Run `work` inside the section: now, or, for a guest, when the section has ended."""
        with self.lock:
            if self.busy:
                self.late.append(work)
                return
            self.busy = True
            try:
                work()
            finally:
                self.busy = False
        if self.late:
            self.run_late()

    def run_late(self) -> None:
        """Run what guests left, each as a section of its own."""
        while self.late:
            try:
                work = self.late.popleft()
            except IndexError:  # another thread was faster
                return
            self.run(work)

    def reset(self) -> None:
        """Start anew in a forked child: whoever held the lock does not exist there."""
        self.lock = threading.RLock()
        self.busy = False
        self.late.clear()
