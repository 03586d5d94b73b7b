"""Checks that the state of a session is freed after it has left."""

from __future__ import annotations

from floodline.leaks._retention import Watchlist

MAX_WATCHED = 1000


class Departed(Watchlist):
    """The states that left recently; none is kept alive, not even during the grace period."""

    def __init__(self, source: str) -> None:
        super().__init__(source, max_watched=MAX_WATCHED)
