"""A lock that neither the garbage collector nor a signal can deadlock.

A finalizer or a signal handler may run between any two steps of a critical section, on the thread
that is inside it. An `RLock` lets that thread in again, and `busy` tells it that it is a guest: it
must leave its request in `late`, which the interrupted thread serves when it has left the section.
Before `busy` is set and after it is cleared nothing has been read or is half-written, so a guest
that comes then may simply do its work. Every section has this shape:

    with guard.lock:
        if guard.busy:
            guard.late.append(operation)  # or refuse
            return
        guard.busy = True
        try:
            ...
        finally:
            guard.busy = False
    if guard.late:
        guard.run_late()

What a section itself puts into `late` (a user's hook, a value to be freed) runs without the lock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import get_ident


class Guard:
    """The lock, the flag, and the operations that wait until the lock is free."""

    __slots__ = ("_running", "busy", "late", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.busy = False
        self.late: deque[Callable[[], object]] = deque()
        self._running: set[int] = set()

    def is_guest(self) -> bool:
        """Return True if this thread has interrupted a section of its own."""
        return self.busy and self.lock._is_owned()  # type: ignore[attr-defined]  # as Condition does

    def run(self, section: Callable[[], object]) -> None:
        """Run a section: now, or, for a guest, when the interrupted one has ended."""
        with self.lock:
            if self.busy:
                self.late.append(partial(self.run, section))
                return
            self.busy = True
            try:
                section()
            finally:
                self.busy = False
        if self.late:
            self.run_late()

    def soon(self, operation: Callable[[], object]) -> None:
        """Run a whole operation now, or after the section that another caller is inside.

        For what the garbage collector may call.
        """
        self.late.append(operation)
        # the owner of the lock will look into `late` after the release
        if self.lock.acquire(blocking=False):
            guest = self.busy
            self.lock.release()
            if not guest:
                self.run_late()

    def run_late(self) -> None:
        """Run what waits, outside the lock; each is a whole operation, and they do not nest."""
        me = get_ident()
        while self.late and me not in self._running:  # else an outer loop on this stack continues
            self._running.add(me)
            try:
                self._run_waiting()
            finally:
                self._running.discard(me)

    def run_late_if_outside(self) -> None:
        """Like `run_late`, for a possible guest: then the interrupted section does it."""
        if self.late and not self.is_guest():
            self.run_late()

    def _run_waiting(self) -> None:
        while self.late:
            try:
                operation = self.late.popleft()
            except IndexError:  # another thread came first
                return
            operation()

    def reset(self) -> None:
        """Start over in a forked child, where the thread that held the lock does not exist."""
        self.lock = threading.RLock()
        self.busy = False
        self.late.clear()
        self._running.clear()
