"""Requests for a session that may be held: to park, close or detach it."""

from __future__ import annotations

from functools import partial
from typing import Any

from floodline.errors import SessionClosed
from floodline.sessions._table.entry import PARKING, Entry, Hold
from floodline.sessions._table.table import Table
from floodline.telemetry import Reason


def park(table: Table, id: str, reason: Reason, now: float) -> Entry | None:
    """Park now, or mark a held entry; return an entry that the caller must see out."""
    entry = table.entries.get(id)
    if entry is None or entry.phase == PARKING or entry.leave is Reason.closed:
        return None
    table.undo.keep(entry)
    entry.leave = reason
    if table.is_free(entry) and (reason is not Reason.completed or not table.policy.linger):
        return table.begin_leave(entry, reason)
    if table.is_free(entry):
        table.linger(entry, now)
    return None


def close(
    table: Table, id: str, now: float, claim: Hold | None = None, by: Any = None
) -> Entry | None:
    """Like `park`, for good: waiters are refused, the tombstone is set.

    If the session is absent, `claim` keeps others from opening it until `open_failed(claim)`.
    """
    if table.policy.tombstone is not None:
        tombs = table.tombs
        table.undo.keep_with(tombs, partial(tombs.put_back, id, tombs.until(id)))
        tombs.bury(id, now + table.policy.tombstone)
    entry = table.entries.get(id)
    if entry is None:
        if claim is not None:
            table.refuse_closing(claim)
            table.promote(table.add(id), claim)
        return None
    table.undo.keep(entry)
    why = f"session {id!r} was closed while this use waited for it"
    table.waiting.refuse_all(entry, SessionClosed(why))
    if id in table.undeleted:
        return table.undeleted.pop(id)
    free = table.is_free(entry)
    if entry.leave is not Reason.closed:
        entry.leave, entry.closed_by = Reason.closed, by
    table.lingering.pop(id, None)
    return table.begin_leave(entry, Reason.closed) if free else None


def detach(table: Table, hold: Hold, reason: Reason) -> Entry | None:
    """Detach a held entry from its state, which is stale or discarded; the hold continues.

    Return the old entry for the caller to see out, or None if the last pin on it will do
    that. The hold is the opener of a new one, which inherits everything else.
    """
    old = hold.entry
    assert old is not None
    table.undo.keep(hold)
    table.undo.keep_all_of(old)
    table.undo.keep_count(reason)
    wish, owners = old.leave, old.owners
    table.live -= 1
    table.bytes -= old.weight
    table.by_age.pop(old.id, None)
    old.leave = reason
    old.holder = old.owners = None
    table.left_by[reason] += 1
    new = table.succeed(old, hold)
    new.leave, new.owners = wish, owners
    return None if old.pins else old
