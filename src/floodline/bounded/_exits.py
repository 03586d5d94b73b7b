"""The one way out: tells the user's hook what has left, outside every lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any

from floodline import telemetry

ROUNDS = 64  # hooks whose evictions call hooks again: as often as this before a call returns

Gone = list[Any]


class Exits:
    """Calls `hook(*exit)` once for each exit, in order, on the thread that caused it.

    What a hook itself makes leave waits until that hook has returned, so hooks do not nest. After
    64 such rounds the rest is left to the next call that lets something leave: a hook that
    always puts back what was evicted ends. A hook that raises is counted and reported.
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
        """Return what the next call has to tell."""
        return list(self._backlog)

    def tell(self, gone: Gone) -> None:
        """Call the hook for all of `gone`, or leave them to the round that runs on this thread.

        A finalizer may come between any two steps: it adds to the queue, or finds none.
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
        """Tell what is in the queue and what comes of it; False if that does not end."""
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
