"""What the watch itself takes: by how much the process changes during its steps."""

from __future__ import annotations

from collections.abc import Callable

from floodline.memory import rss

PAGE = 4096  # bytes that one fault brings in


class OwnMemory:
    """Resident bytes that were gained during steps.

    Other threads may allocate meanwhile, in C code or where a step lets them run. So no more is
    counted as gained than this thread was the first to touch.
    """

    def __init__(
        self, resident: Callable[[], int] = rss, touched: Callable[[], int] | None = None
    ) -> None:
        self._resident, self._touched = resident, touched or _touched_by_this_thread()
        self.bytes = self._before = self._touched_before = 0

    def begin(self) -> None:
        """Note the figures at the start of a step."""
        self._before, self._touched_before = self._resident(), self._touched()

    def end(self) -> None:
        """Add what the step has gained or given back."""
        touched = self._touched() - self._touched_before
        gained = min(self._resident() - self._before, touched)
        self.bytes = max(0, self.bytes + gained)


def _touched_by_this_thread() -> Callable[[], int]:
    """Return a function that counts the bytes that page faults of this thread brought in."""
    try:
        from resource import RUSAGE_THREAD, getrusage
    except ImportError:  # pragma: no cover  # only Linux tells it for each thread
        return rss
    return lambda: getrusage(RUSAGE_THREAD).ru_minflt * PAGE
