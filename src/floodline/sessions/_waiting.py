"""The queues of those who wait for one session: first come, first served; shared ones together."""

from __future__ import annotations

from collections import deque

from floodline.sessions._entry import HELD, WAIT, Entry, Hold
from floodline.sessions._ring import refuse_ring


class Waiting:
    """Who waits for which entry; each caller waits for one at a time."""

    def __init__(self) -> None:
        self._entries: dict[object, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def refuse_ring(self, entry: Entry, hold: Hold) -> None:
        """Raise if `hold` would wait for itself, directly or through others."""
        refuse_ring(self._entries, entry, hold)

    def add(self, entry: Entry, hold: Hold) -> None:
        """Queue a hold."""
        if entry.waiters is None:
            entry.waiters = deque()
        entry.waiters.append(hold)
        hold.entry = entry
        hold.outcome = WAIT
        self._entries[hold.who] = entry

    def remove(self, entry: Entry, hold: Hold) -> None:
        """Take a hold out of the queue."""
        assert entry.waiters is not None
        entry.waiters.remove(hold)
        self._entries.pop(hold.who, None)
        hold.entry = None

    def first(self, entry: Entry) -> Hold | None:
        """Take the first one out of the queue."""
        if not entry.waiters:
            return None
        hold = entry.waiters[0]
        self.remove(entry, hold)
        return hold

    def refuse(self, entry: Entry, hold: Hold, error: BaseException) -> None:
        """Wake a waiter with an error."""
        self.remove(entry, hold)
        hold.error = error
        hold.wake()

    def refuse_all(self, entry: Entry, error: BaseException) -> None:
        """Wake all waiters with an error."""
        for hold in list(entry.waiters or ()):
            self.refuse(entry, hold, error)

    def move(self, old: Entry, new: Entry) -> None:
        """Let all who wait for one entry wait for another."""
        new.waiters, old.waiters = old.waiters, None
        for hold in new.waiters or ():
            hold.entry = new
            self._entries[hold.who] = new

    def serve(self, entry: Entry, now: float) -> None:
        """Give a live entry to all who share it, and to the first who wants it alone."""
        if not entry.waiters:
            return
        for hold in [w for w in entry.waiters if w.shared]:
            self.remove(entry, hold)
            grant(entry, hold, now)
        if entry.holder is None:
            first = self.first(entry)
            if first is not None:
                grant(entry, first, now)


def grant(entry: Entry, hold: Hold, now: float) -> None:
    """Give a live entry to a hold, and wake it."""
    if hold.shared:
        entry.pins += 1
    else:
        entry.holder = hold
    hold.entry = entry
    hold.since = now
    hold.outcome = HELD
    hold.wake()
