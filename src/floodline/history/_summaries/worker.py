"""A few daemon threads for summaries: started on demand, shared by all conversations, bounded."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from floodline._interruptible_lock import Guard

Work = Callable[[], None]

MAX_THREADS = 4
IDLE_SECONDS = 10.0


class Workers:
    """Runs work on at most `limit` threads, which end when there is no more.

    An owner abandons work that waits too long for a thread, so callables that hang cost at most
    `limit` threads.
    """

    def __init__(self, *, limit: int = MAX_THREADS, idle: float = IDLE_SECONDS) -> None:
        self._limit, self._idle = limit, idle
        self._guard = Guard()
        self.reset()

    def reset(self) -> None:
        """Start over in a forked child, where the threads do not exist."""
        self._guard.reset()
        self._queue: SimpleQueue[Work] = SimpleQueue()
        self._threads = self._waiting = 0

    def submit(self, work: Work) -> None:
        """Run `work`, which must not raise, soon."""
        self._queue.put(work)
        self._guard.run(self._provide)

    def threads(self) -> int:
        """Return how many threads exist."""
        return self._threads

    def _provide(self) -> None:
        if self._queue.qsize() <= self._waiting or self._threads >= self._limit:
            return
        thread = threading.Thread(target=self._run, name="floodline-summary", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down; the owner's patience ends this
            return
        self._threads += 1

    def _run(self) -> None:
        queue = self._queue
        while True:
            self._guard.run(self._begin_waiting)
            try:
                work = queue.get(timeout=self._idle)
            except Empty:
                gone: list[bool] = []
                self._guard.run(lambda gone=gone: gone.append(self._leave()))  # type: ignore[misc]  # a default binds the loop's list
                if gone[0]:
                    return
                continue
            self._guard.run(self._end_waiting)
            work()
            del work

    def _begin_waiting(self) -> None:
        self._waiting += 1

    def _end_waiting(self) -> None:
        self._waiting -= 1

    def _leave(self) -> bool:
        self._waiting -= 1
        if not self._queue.empty():
            return False
        self._threads -= 1
        return True


workers = Workers()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.reset)
