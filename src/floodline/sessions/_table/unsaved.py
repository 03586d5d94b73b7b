"""Sessions that the store refused: they stay in memory, cannot be evicted, and are retried."""

from __future__ import annotations

from floodline.sessions._table.entry import BURIED, LIVE, OPENING, PARKING, Entry, Hold
from floodline.sessions._table.policy import NEVER
from floodline.sessions._table.table import Table
from floodline.telemetry import Reason


def take_refused(table: Table, hold: Hold) -> Entry | None:
    """Give `hold` an unsaved session, or say that it was closed and must be seen out."""
    entry = table.unsaved.get(hold.id) or table.undeleted.get(hold.id)
    table.undo.keep(hold, entry)
    entry = table.unsaved.pop(hold.id, None)
    if entry is None:
        return table.undeleted.pop(hold.id, None)
    if entry.leave is Reason.closed:
        return table.begin_leave(entry, Reason.closed)
    table.lingering.pop(hold.id, None)  # it lingers again when it is released
    entry.holder = hold
    hold.entry = entry
    return None


def park_failed(table: Table, entry: Entry, now: float) -> None:
    """Make an entry live again that the store refused; it leaves once it is saved.

    If a caller waited for it, that caller has it now, and it stays. Of a buried one only the row is
    left, so it continues to leave.
    """
    table.undo.keep_all_of(entry)
    entry.runner = None
    if entry.state is BURIED:
        table.undeleted[entry.id] = entry
        return
    table.seats.break_promise(entry)
    entry.phase = LIVE
    entry.failed = True
    table.live += 1
    table.seats.parking -= 1
    table.add_bytes(entry.weight)
    if table.max_age != NEVER:
        table.by_age[entry.id] = entry
    if entry.leave is not Reason.closed:
        table.serve(entry, now)
    if table.is_free(entry):
        table.unsaved[entry.id] = entry
    else:
        entry.leave = None
    table.seats.call_next()


def delete_failed(table: Table, entry: Entry) -> None:
    """Note that the row of a session closed on its way in or out is still there."""
    table.undo.keep(entry.holder)
    table.undo.keep_all_of(entry)
    if entry.phase == OPENING:
        hold, entry.holder = entry.holder, None
        assert hold is not None
        hold.entry = None
        table.seats.leave_room(hold)
        table.seats.give_up(entry)
        table.seats.parking += 1
        entry.phase = PARKING
    entry.state = BURIED
    entry.runner = None
    table.undeleted[entry.id] = entry
