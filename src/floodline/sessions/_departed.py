"""Gone means gone: after a session has left, its state must be freed.

Only what is still alive after a grace *and* a later full collection is reported, so that no
collection is forced on a running server. The list of those under watch is bounded.
"""

from __future__ import annotations

import gc
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Any

from floodline import telemetry

GRACE = 30.0
MAX_WATCHED = 1000


@dataclass(slots=True, frozen=True)
class _Departure:
    state: weakref.ref[Any]
    label: str
    left_at: float
    collections: int


class Departed:
    """The states that have left a short time ago."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._watched: deque[_Departure] = deque()
        self.unchecked = 0
        self.retained = 0

    def watch(self, state: Any, label: str, now: float) -> None:
        """Note that `state` has left; keeps no reference to it."""
        if state is None:
            return
        try:
            ref = weakref.ref(state)
        except TypeError:  # dict, list and the like
            self.unchecked += 1
            return
        if len(self._watched) >= MAX_WATCHED:
            self._watched.popleft()
            self.unchecked += 1
        self._watched.append(_Departure(ref, label, now, _full_collections()))

    def check(self, now: float) -> int:
        """Report those that should be freed by now and are not; return how many were found."""
        found, full = 0, _full_collections()
        while self._watched:
            try:
                oldest = self._watched.popleft()
            except IndexError:  # another thread was faster
                break
            if oldest.state() is None:
                continue
            if now - oldest.left_at < GRACE or full == oldest.collections:
                self._watched.appendleft(oldest)
                break
            found += 1
            telemetry.emit(
                "retained", self._source, label=oldest.label, seconds=now - oldest.left_at
            )
        self.retained += found
        return found

    def __len__(self) -> int:
        return len(self._watched)


def _full_collections() -> int:
    return int(gc.get_stats()[-1]["collections"])
