"""Finds the lines that allocated what was kept, with tracemalloc, and leaves it as found."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from floodline._interruptible_lock import Guard

Lines = Mapping[tuple[str, int], int]

_OURS = str(Path(__file__).parents[1] / "*")
_HIDDEN = (
    tracemalloc.Filter(False, tracemalloc.__file__),
    tracemalloc.Filter(False, _OURS),
    tracemalloc.Filter(False, "<frozen *"),
    tracemalloc.Filter(False, "<unknown>"),
)


@dataclass(slots=True, frozen=True)
class AllocationLine:
    """A line of source, and the bytes it allocated that were still in use."""

    file: str
    line: int
    bytes: int


class Tracing:
    """Keeps tracemalloc on while it is needed, unless it was already on."""

    def __init__(self) -> None:
        self._guard = Guard()
        self._users = 0
        self._ours = False

    def acquire(self) -> None:
        """Need it from now on."""
        self._guard.run(partial(self._count, 1))

    def release(self) -> None:
        """Stop needing it; may be called by the garbage collector."""
        self._guard.run(partial(self._count, -1))

    def _count(self, step: int) -> None:
        self._users += step
        if self._users == 1 and step == 1:
            self._ours = not tracemalloc.is_tracing()
            if self._ours:
                tracemalloc.start()
        elif self._users == 0 and self._ours:
            tracemalloc.stop()


tracing = Tracing()  # one, because a process has one tracemalloc

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=tracing._guard.reset)


def allocated() -> Lines:
    """Return the bytes that each line of the program has allocated and that are still in use."""
    if not tracemalloc.is_tracing():  # other code has stopped it
        return {}
    snapshot = tracemalloc.take_snapshot().filter_traces(_HIDDEN)
    found = snapshot.statistics("lineno")
    return {(stat.traceback[0].filename, stat.traceback[0].lineno): stat.size for stat in found}


def grown(before: Lines, after: Lines) -> dict[tuple[str, int], int]:
    """Return the lines that have more now than before."""
    more = {line: size - before.get(line, 0) for line, size in after.items()}
    return {line: size for line, size in more.items() if size > 0}
