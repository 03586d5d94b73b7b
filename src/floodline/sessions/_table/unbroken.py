"""The sections of almost every use, written so that no exception can arrive in the middle.

CPython delivers exceptions at calls, at the entry of functions and at jumps backwards only. So each
function here first asks everything it needs to know, then makes its changes without a call and
without a loop, and is the last thing that its section does. It needs no image of what was before
(see `undo`), which is what makes it cheap. It does nothing and says so when the case is not plain:
somebody waits, the session is wanted out of memory, or the table is being shut down.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Final, Protocol

from floodline.sessions._table.entry import GONE, HELD, LIVE, OPEN, PARKING, Entry, Hold
from floodline.sessions._table.policy import NEVER
from floodline.sessions._table.seats import Seats
from floodline.telemetry import Reason

AT_ONCE: Final = -NEVER
_NOT_PLAIN: Final = (False, None)


class Books(Protocol):
    """The table as this module sees it."""

    entries: dict[str, Entry]
    idle: OrderedDict[str, Entry]
    by_age: OrderedDict[str, Entry]
    lingering: OrderedDict[str, float]
    shared: dict[Hold, None]
    left_by: Counter[str]
    seats: Seats
    live: int
    bytes: int
    closing: bool
    next_check: float
    max_age: float
    max_bytes: float
    soonest: float

    def expired(self, entry: Entry, now: float) -> Reason | None:
        """Return why a free entry may no longer be used."""
        ...


def start_opening(table: Books, hold: Hold) -> int:
    """Enter an absent session: `hold` opens it."""
    entry = Entry(hold.id)
    table.entries[hold.id] = entry
    entry.holder = hold
    hold.entry = entry
    hold.error = None  # of an earlier try
    hold.outcome = OPEN
    return OPEN


def pin(table: Books, entry: Entry, hold: Hold, now: float) -> bool:
    """Share a live session."""
    if not hold.shared or entry.phase != LIVE or entry.leave is not None or table.closing:
        return False
    free = entry.holder is None and not entry.pins
    if free and (hold.id not in table.idle or table.expired(entry, now) is not None):
        return False
    if free:
        del table.idle[hold.id]
    entry.pins += 1
    table.shared[hold] = None
    hold.entry = entry
    hold.since = now
    hold.outcome = HELD
    return True


def unpin(table: Books, entry: Entry, hold: Hold, now: float) -> bool:
    """End a shared use."""
    if (
        not hold.shared
        or hold not in table.shared
        or entry.phase != LIVE
        or entry.leave is not None
        or entry.waiters
        or entry.failed
        or table.closing
        or table.seats.room
    ):
        return False
    hold.entry = hold.frame = hold.who = None
    del table.shared[hold]
    entry.pins -= 1
    entry.used_at = now
    if entry.holder is None and not entry.pins:
        table.idle[entry.id] = entry
        if table.seats.taken > table.seats.limit or table.bytes > table.max_bytes:
            table.next_check = now
    return True


def seat(table: Books, hold: Hold, now: float) -> tuple[bool, Entry | None]:
    """Seat an opener, at the expense of the least recently used session if need be.

    Return whether that is done, and the session that must be seen out.
    """
    entry, seats = hold.entry, table.seats
    assert entry is not None
    if entry.seated or hold.victim is not None or seats.room or seats.parking >= seats.max_parking:
        return _NOT_PLAIN
    if seats.taken < seats.limit:
        seats.taken += 1
        entry.seated = True
        return True, None
    victim = next(iter(table.idle.values()), None)
    if victim is None or victim.dirty or victim.fence or not victim.seated:
        return _NOT_PLAIN
    reason, key = table.expired(victim, now) or Reason.count, victim.id
    victim.phase = PARKING
    victim.leave = reason
    victim.work = None
    table.live -= 1
    table.bytes -= victim.weight
    seats.parking += 1
    del table.idle[key]
    if key in table.by_age:
        del table.by_age[key]
    if key in table.lingering:
        del table.lingering[key]
    victim.seated = False
    entry.seated = True
    return True, victim


def opened(table: Books, hold: Hold, now: float) -> bool:
    """Make a session live for the hold that has opened it."""
    entry, due = hold.entry, now + table.soonest
    assert entry is not None
    if entry.waiters or entry.leave is not None or hold.shared:
        return False
    entry.phase = LIVE
    entry.runner = None
    entry.holder = hold
    entry.opened_at = entry.used_at = now
    table.live += 1
    table.bytes += entry.weight
    if table.bytes > table.max_bytes:
        table.next_check = AT_ONCE
    elif due < table.next_check:
        table.next_check = due
    if table.max_age != NEVER:
        table.by_age[entry.id] = entry
    hold.since = now
    hold.outcome = HELD
    return True


def left(table: Books, entry: Entry, reason: Reason) -> bool:
    """Forget a session that has left memory and given its seat up."""
    if entry.waiters or entry.seated or table.seats.room:
        return False
    known, before = table.entries.get(entry.id) is entry, table.left_by[reason]
    table.left_by[reason] = before + 1
    table.seats.parking -= 1
    entry.phase = GONE
    if known:
        del table.entries[entry.id]
    return True
