"""Refuses a wait that would close a cycle of holders that wait for each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from floodline.errors import HoldDeadlock, ReentrantUse
from floodline.sessions._table.entry import Entry, Hold


def refuse_ring(
    waiting: Mapping[object, Entry],
    helpers: Mapping[object, Sequence[object]],
    entry: Entry,
    hold: Hold,
) -> None:
    """Follow the holders from `entry`; if one is `hold`'s own caller, it would wait for itself.

    `helpers` lists the tasks that a caller waits for, such as the one that runs its factory.
    """
    seen: Entry | None = entry
    for step in range(len(waiting) + 1):
        if seen is None:
            return
        hands = _hands(seen, helpers)
        if hold.who in hands:
            if step == 0:
                raise ReentrantUse(
                    f"session {hold.id!r} is already held by this caller; "
                    "pass the state along instead of asking for it again"
                )
            raise HoldDeadlock(
                f"waiting for session {hold.id!r} would close a cycle of holders that wait "
                "for each other; take sessions in a fixed order"
            )
        seen = next((waiting[one] for one in hands if one in waiting), None)


def _hands(entry: Entry, helpers: Mapping[object, Sequence[object]]) -> list[object]:
    """Return the callers that must finish before the entry is free: holders and their helpers."""
    holder = entry.holder.who if entry.holder is not None else None
    hands = [one for one in (holder, entry.runner) if one is not None]
    for one in hands:
        hands += [task for task in helpers.get(one, ()) if task not in hands]
    return hands
