"""The one way out: calls the user's hook for what has left, outside every lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any, Protocol, TypeVar

from floodline import telemetry
from floodline._interruptible_lock import Guard

ROUNDS = 64  # rounds of hooks whose evictions call hooks again, before a call returns

Gone = list[Any]
R = TypeVar("R")


class Exits:
    """Calls `hook(*exit)` once for each exit, in order, on the thread that caused it.

    What a hook itself evicts waits until that hook has returned, so hooks do not nest. After 64
    such rounds the rest is left to the next call that evicts something, so that a hook which
    always puts back what was evicted comes to an end. A hook that raises is counted and reported.
    """

    __slots__ = ("_backlog", "_hook", "_name", "_telling", "errors")

    def __init__(self, hook: Callable[..., object] | None, name: str) -> None:
        self._hook, self._name = hook, name
        self.reset()

    def reset(self) -> None:
        """Forget everything, in a forked child."""
        self.errors = 0
        self._telling: dict[int, deque[Any]] = {}
        self._backlog: deque[Any] = deque()

    def untold(self) -> list[Any]:
        """Return what the next call has to report."""
        return list(self._backlog)

    def tell(self, gone: Gone) -> None:
        """Call the hook for all of `gone`, or leave them to the round that runs on this thread.

        A finalizer may run between any two steps: it adds to the queue, or finds none.
        """
        if self._hook is None:
            return
        me = get_ident()
        outer = self._telling.get(me)
        if outer is not None:
            outer.extend(gone)
            return
        queue, self._backlog = self._backlog, deque()
        queue.extend(gone)
        more = True
        while queue and more:
            self._telling[me] = queue
            try:
                more = self._rounds(queue)
            except BaseException:
                self._backlog.extend(queue)
                raise
            finally:
                del self._telling[me]
        self._backlog.extend(queue)

    def _rounds(self, queue: deque[Any]) -> bool:
        """Report what is queued and what follows from it; return False if that does not end."""
        for _ in range(ROUNDS):
            for _ in range(len(queue)):
                self._call(queue.popleft())
            if not queue:
                return True
        telemetry.emit("hook_loop", self._name, waiting=len(queue), rounds=ROUNDS)
        return False

    def _call(self, exit: Any) -> None:
        assert self._hook is not None
        try:
            self._hook(*exit)
        except Exception as error:
            self.errors += 1
            telemetry.emit("hook_error", self._name, error=telemetry.describe(error))


class State(Protocol):
    """What a section works on; `gone` collects what must be reported and freed outside it."""

    gone: list[Any]


class Section:
    """Runs one piece of work at a time, then reports the exits, then serves late guests."""

    __slots__ = ("_exits", "_guard")

    def __init__(self, guard: Guard, exits: Exits) -> None:
        self._guard, self._exits = guard, exits

    def run(self, state: State, work: Callable[[], R], guest: Callable[[], R]) -> R:
        """Return what `work` returns, or `guest` if this thread has interrupted a section.

        If `work` raises, what had left by then is reported after the next section.
        """
        guard = self._guard
        with guard.lock:
            if guard.busy:
                return guest()
            guard.busy = True
            try:
                result = work()
                gone = state.gone or None  # an empty list keeps collecting for others
                if gone:
                    state.gone = []
            finally:
                guard.busy = False
        if gone:
            self._exits.tell(gone)
        if guard.late:
            guard.run_late()
        return result
