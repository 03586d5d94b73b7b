"""What every adapter removes automatically: the long unused, and what exceeds a bound."""

from __future__ import annotations

import time

from floodline._units import Duration, parse_count, parse_duration
from floodline.adapters._store_flows import Flow, ask

PURGE_EVERY = 60.0
LOOK_EVERY = 8  # writes between two looks, so that there can be a few more than `most`
PURGE_AT_ONCE = 500


class Upkeep:
    """Deletes sessions of one name, the least recently used first.

    `most` is how many stay, and `retention` how long one stays without a use; `what` is how the
    adapter calls `most`.
    """

    def __init__(
        self, name: str, *, most: int | None, retention: Duration | None, what: str
    ) -> None:
        self._name = name
        self._most = None if most is None else parse_count(most, what)
        self._retention = None if retention is None else parse_duration(retention, "retention")
        self._writes = 0
        self._next_purge = 0.0

    def wrote(self) -> Flow[bool]:
        """Count a write; return True if it was time to look."""
        self._writes += 1
        if self._writes % LOOK_EVERY:
            return False
        now = time.monotonic()
        if self._retention is not None and now >= self._next_purge:
            self._next_purge = now + PURGE_EVERY
            yield from ask("purge", self._name, unused=self._retention, limit=PURGE_AT_ONCE)
        if self._most is not None:
            over = (yield from ask("count", self._name)) - self._most
            if over > 0:
                yield from ask("purge", self._name, unused=0.0, limit=over)
        return True
