"""The critical section of a container, with what must happen after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from floodline._guard import Guard
from floodline.bounded._exits import Exits

R = TypeVar("R")


class State(Protocol):
    """What a section works on: it collects in `gone` what must be told and freed outside."""

    gone: list[Any]


class Section:
    """Runs one piece of work at a time, then tells the exits, then lets late guests in."""

    __slots__ = ("_exits", "_guard")

    def __init__(self, guard: Guard, exits: Exits) -> None:
        self._guard, self._exits = guard, exits

    def run(self, state: State, work: Callable[[], R], guest: Callable[[], R]) -> R:
        """Return what `work` returns, or `guest` if this thread has interrupted a section.

        If `work` raises, what had left by then is told after the next section.
        """
        guard = self._guard
        with guard.lock:
            if guard.busy:
                return guest()
            guard.busy = True
            try:
                result = work()
                gone = state.gone or None  # an empty list goes on collecting for others
                if gone:
                    state.gone = []
            finally:
                guard.busy = False
        if gone:
            self._exits.tell(gone)
        if guard.late:
            guard.run_late()
        return result
