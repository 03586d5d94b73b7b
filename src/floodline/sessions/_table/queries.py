"""Read-only questions to a session table."""

from __future__ import annotations

from floodline.sessions._table.entry import LIVE, PARKING, Entry, Hold
from floodline.sessions._table.table import Table
from floodline.telemetry import Reason


def overdue(table: Table, now: float) -> dict[str, Entry]:
    """Return the free entries that have expired and were not yet seen out, in O(their number)."""
    found = {}
    for entry in table.idle.values():
        if now - entry.used_at < table.max_idle:
            break
        found[entry.id] = entry
    for entry in table.by_age.values():
        if now - entry.opened_at < table.max_age:
            break
        if table.is_free(entry) and not entry.failed:
            found[entry.id] = entry
    for key, due in table.lingering.items():
        if due > now:
            break
        entry = table.entries[key]
        if table.is_free(entry) and not entry.failed:
            found[key] = entry
    return found


def count_live(table: Table, now: float) -> int:
    """Count what is live and has not expired."""
    return table.live - len(overdue(table, now))


def find_live(table: Table, id: str, now: float) -> Entry | None:
    """Return a live entry that has neither expired nor been closed."""
    entry = table.entries.get(id)
    if entry is None or entry.phase != LIVE or entry.leave is Reason.closed:
        return None
    if table.is_free(entry) and not entry.failed and table.expired(entry, now):
        return None
    return entry


def live_ids(table: Table, now: float) -> list[str]:
    """Return the ids of all that `find_live` would find."""
    return [key for key in list(table.entries) if find_live(table, key, now)]


def touch(table: Table, id: str, now: float) -> bool:
    """Count idle time from now; False if the id is not live."""
    entry = find_live(table, id, now)
    if entry is None:
        return False
    entry.used_at = now
    if id in table.idle:  # moved to the end without a call, so that nothing comes between
        del table.idle[id]
        table.idle[id] = entry
    return True


def stuck_holds(table: Table, now: float) -> list[Hold]:
    """Return the holds that are older than `max_hold`, each once."""
    held: list[Hold] = list(table.shared)
    if table.live > len(table.idle) + len(table.unsaved):
        held += [e.holder for e in table.entries.values() if e.holder and e.phase == LIVE]
    found = [h for h in held if not h.reported and now - h.since > table.policy.max_hold]
    for hold in found:
        hold.reported = True
    return found


def stuck_leavers(table: Table, now: float) -> list[Entry]:
    """Return the entries whose saving or finalizer takes longer than `max_hold`, each once."""
    if not table.seats.parking:
        return []
    found = []
    for entry in table.entries.values():
        late = entry.phase == PARKING and now - entry.used_at > table.policy.max_hold
        if late and not entry.reported:
            entry.reported = True
            found.append(entry)
    return found
