"""What the watch itself takes: by how much the process changes during its steps."""

from __future__ import annotations

from collections.abc import Callable

from floodline.leaks._figures.rss_split import read_malloc
from floodline.memory import rss, trim_malloc

PAGE = 4096  # bytes that one fault brings in
WORTH = 1 << 20  # free bytes, at least, that are given back
CHEAP = 8 << 20  # free bytes of the whole process, at most: giving them back takes milliseconds


class OwnMemory:
    """Resident bytes that were gained during steps.

    Other threads may allocate meanwhile, in C code or where a step lets them run. So no more is
    counted as gained than this thread was the first to touch. A thread that is `alone` has done
    nothing yet but import the engine, which counts too.
    """

    def __init__(
        self,
        resident: Callable[[], int] = rss,
        touched: Callable[[], int] | None = None,
        free: Callable[[], int] = lambda: read_malloc()[1],
        trim: Callable[[], object] = trim_malloc,
        *,
        alone: bool = False,
    ) -> None:
        self._resident, self._touched = resident, touched or _touched_by_this_thread()
        self._free, self._trim = free, trim
        self._theirs = free()
        self._before = self._touched_before = 0
        self.bytes = self._touched() if alone else 0

    def begin(self) -> None:
        """Note the figures at the start of a step."""
        self._before, self._touched_before = self._resident(), self._touched()

    def end(self) -> None:
        """Add what the step has gained or given back."""
        touched = self._touched() - self._touched_before
        gained = min(self._resident() - self._before, touched)
        self.bytes = max(0, self.bytes + gained)

    def give_back(self, last: int) -> None:
        """Give back, within a step, what a walk or a census took and malloc keeps for the next.

        Malloc can only be asked to do so for the whole process; `last` is what it had free when it
        was last asked. What the program had free before the watch began is not taken for ours.
        """
        if last > CHEAP:
            return
        free = self._free()
        ours = free - self._theirs
        if ours < WORTH or free > CHEAP:
            return
        before = self._resident()
        self._trim()
        given = max(0, before - self._resident())
        self.bytes = max(0, self.bytes - min(given, ours))
        self._before -= given


def _touched_by_this_thread() -> Callable[[], int]:
    """Return a function that counts the bytes that page faults of this thread brought in."""
    try:
        from resource import RUSAGE_THREAD, getrusage
    except ImportError:  # pragma: no cover  # only Linux tells it for each thread
        return rss
    return lambda: getrusage(RUSAGE_THREAD).ru_minflt * PAGE
