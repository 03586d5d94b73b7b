"""Which entry must leave next, and when; both in O(1), plus the entries that leave."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Protocol

from floodline.sessions._table.entry import LIVE, OPENING, Entry
from floodline.sessions._table.policy import NEVER, Policy
from floodline.sessions._table.seats import Seats
from floodline.telemetry import Reason


class Queues(Protocol):
    """The table as this module sees it: entries that may be due, soonest first, and the bounds."""

    policy: Policy
    max_idle: float
    max_age: float
    max_bytes: float
    bytes: int
    entries: dict[str, Entry]
    ownerless: deque[Entry]
    lingering: OrderedDict[str, float]
    by_age: OrderedDict[str, Entry]
    idle: OrderedDict[str, Entry]
    seats: Seats

    def is_free(self, entry: Entry) -> bool:
        """Return True if the session is live and not held."""
        ...


def next_due(table: Queues, now: float) -> tuple[Entry, Reason] | None:
    """Return the next entry that must leave, and why; one that is held is marked instead."""
    return (
        _ownerless(table) or _lingered(table, now) or _aged(table, now) or _idle_or_over(table, now)
    )


def _ownerless(table: Queues) -> tuple[Entry, Reason] | None:
    while table.ownerless:
        entry = table.ownerless[0]  # stays until it is seen to leave: that may be undone
        refused = entry.failed and entry.leave is Reason.owner_gone
        if entry.owners or refused:  # it has a new owner, or the store keeps it here
            pass
        elif table.is_free(entry) and entry.leave is not Reason.closed:
            return entry, Reason.owner_gone
        elif entry.phase in (OPENING, LIVE) and entry.leave is None:
            entry.leave = Reason.owner_gone
        table.ownerless.popleft()
    return None


def _lingered(table: Queues, now: float) -> tuple[Entry, Reason] | None:
    for key, due in table.lingering.items():
        return (table.entries[key], Reason.completed) if due <= now else None
    return None


def _aged(table: Queues, now: float) -> tuple[Entry, Reason] | None:
    while table.by_age:
        entry = next(iter(table.by_age.values()))
        if now - entry.opened_at < table.max_age:
            break
        if table.is_free(entry) and not entry.failed:
            return entry, Reason.age
        del table.by_age[entry.id]
        entry.leave = entry.leave or Reason.age
    return None


def _idle_or_over(table: Queues, now: float) -> tuple[Entry, Reason] | None:
    for entry in table.idle.values():
        if now - entry.used_at >= table.max_idle:
            return entry, Reason.idle
        if table.seats.over():
            return entry, Reason.count
        if table.bytes > table.max_bytes:
            return entry, Reason.bytes
        break
    return None


def soonest(table: Queues, now: float) -> float:
    """Return when the next entry can become due, judging by the heads of the queues."""
    if table.ownerless:  # one has died since
        return -NEVER
    first = NEVER
    for due in table.lingering.values():
        first = due
        break
    for entry in table.by_age.values():
        first = min(first, entry.opened_at + table.max_age)
        break
    for entry in table.idle.values():
        return min(first, entry.used_at + table.max_idle)
    return min(first, now + table.policy.soonest) if table.entries else first
