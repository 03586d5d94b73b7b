"""Gone means gone: after a session has left, its state must be freed."""

from __future__ import annotations

from floodline.leaks._retention import Watchlist

MAX_WATCHED = 1000


class Departed(Watchlist):
    """The states that have left a short time ago; none is kept, not even for the grace."""

    def __init__(self, source: str) -> None:
        super().__init__(source, max_watched=MAX_WATCHED)
