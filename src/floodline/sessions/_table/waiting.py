"""The queues for one session: first come, first served; shared waiters go together."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from floodline.sessions._table.deadlock import refuse_ring
from floodline.sessions._table.entry import WAIT, Entry, Hold
from floodline.sessions._table.undo import Undo


class Waiting:
    """The waiters of each entry; a caller waits for one at a time."""

    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self.entries: dict[object, Entry] = {}
        self.helpers: dict[object, Sequence[object]] = {}  # the tasks that a caller waits for

    def __len__(self) -> int:
        return len(self.entries)

    def refuse_ring(self, entry: Entry, hold: Hold) -> None:
        """Raise if `hold` would wait for itself, directly or through others."""
        refuse_ring(self.entries, self.helpers, entry, hold)

    def add(self, entry: Entry, hold: Hold) -> None:
        """Queue a hold."""
        self._undo.keep(entry, hold)
        if entry.waiters is None:
            entry.waiters = deque()
        entry.waiters.append(hold)
        hold.entry = entry
        hold.error = None  # of an earlier try
        hold.outcome = WAIT
        self.entries[hold.who] = entry

    def remove(self, entry: Entry, hold: Hold) -> None:
        """Take a hold out of the queue."""
        self._undo.keep(entry, hold)
        assert entry.waiters is not None
        entry.waiters.remove(hold)
        self.entries.pop(hold.who, None)
        hold.entry = None

    def first(self, entry: Entry) -> Hold | None:
        """Take the first hold out of the queue."""
        if not entry.waiters:
            return None
        hold = entry.waiters[0]
        self.remove(entry, hold)
        return hold

    def refuse(self, entry: Entry, hold: Hold, error: BaseException) -> None:
        """Wake a waiter with an error."""
        self.remove(entry, hold)
        hold.error, hold.error_from = error, error.__traceback__
        self._undo.wake(hold)

    def refuse_all(self, entry: Entry, error: BaseException) -> None:
        """Wake all waiters with an error."""
        for hold in list(entry.waiters or ()):
            self.refuse(entry, hold, error)

    def move(self, old: Entry, new: Entry) -> None:
        """Move all waiters of one entry to another."""
        self._undo.keep(old, new, *(old.waiters or ()))
        new.waiters, old.waiters = old.waiters, None
        for hold in new.waiters or ():
            hold.entry = new
            self.entries[hold.who] = new

    def take_next(self, entry: Entry) -> list[Hold]:
        """Take out all waiters that would share a live entry, and the first that wants it alone."""
        if not entry.waiters:
            return []
        served = [waiter for waiter in entry.waiters if waiter.shared]
        for waiter in served:
            self.remove(entry, waiter)
        first = self.first(entry) if entry.holder is None else None
        return [*served, first] if first is not None else served
