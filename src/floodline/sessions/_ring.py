"""Who waits for whom: a ring of holders that wait for each other is refused before it closes."""

from __future__ import annotations

from collections.abc import Mapping

from floodline.errors import HoldDeadlock, ReentrantUse
from floodline.sessions._entry import Entry, Hold


def refuse_ring(waiting: Mapping[object, Entry], entry: Entry, hold: Hold) -> None:
    """Follow the holders from `entry` on; one that is `hold`'s own caller would wait for itself."""
    seen: Entry | None = entry
    for step in range(len(waiting) + 1):
        if seen is None:
            return
        holder = seen.holder.who if seen.holder is not None else None
        if hold.who in (holder, seen.runner):
            if step == 0:
                raise ReentrantUse(
                    f"session {hold.id!r} is already in the hands of this caller; "
                    "pass the state on instead of asking for it again"
                )
            raise HoldDeadlock(
                f"waiting for session {hold.id!r} would close a ring of holders that wait "
                "for each other; take sessions in one fixed order"
            )
        seen = waiting.get(holder) or waiting.get(seen.runner)
