"""Seats: the places under `max_sessions`, and the queue of callers that wait for one.

An entry has a seat before its factory runs, and gives it up on its way out as soon as nothing of it
can be lost: to the opener that pushed it out, else to the first in the queue.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from floodline.errors import SessionsFull
from floodline.sessions._table.entry import OPEN, WAIT, Entry, Hold
from floodline.sessions._table.policy import NEVER, Policy
from floodline.sessions._table.undo import Undo


class Seats:
    """Counts the seats taken and the entries on their way out; both are bounded."""

    def __init__(self, policy: Policy, undo: Undo) -> None:
        self.policy, self._undo = policy, undo
        self.limit: float = policy.max_sessions or NEVER
        self.max_parking = max(16, policy.max_sessions or 0)
        self.taken = self.parking = self.grown = 0
        self.room: deque[Hold] = deque()

    def ask(self, hold: Hold, *, evictable: bool) -> bool:
        """Seat an opener, or queue it; return True if the caller must evict an entry for it."""
        assert hold.entry is not None
        if hold.entry.seated:
            return False
        self._undo.keep(hold, hold.entry)
        if hold.victim is not None and hold.victim.seat_for is hold:
            hold.outcome = WAIT  # a seat is on its way
            return False
        if (not self.room or self.room[0] is hold) and not self.crowded():
            if self.taken < self.limit:
                self._sit(hold)
                return False
            if evictable:
                return True
            if self.policy.when_full == "grow":
                self.grown += 1
                self._sit(hold)
                return False
        self._wait(hold)
        return False

    def crowded(self) -> bool:
        """Return True if as many are on their way out as allowed at once."""
        return self.parking >= self.max_parking

    def over(self) -> bool:
        """Return True if more are seated than there are seats."""
        return self.taken > self.limit

    def _sit(self, hold: Hold) -> None:
        self.taken += 1
        self._take(hold)

    def promise(self, hold: Hold, victim: Entry) -> None:
        """Give `hold` the seat of `victim` as soon as that gives it up."""
        self._undo.keep(hold, victim)
        hold.victim = victim
        victim.seat_for = hold
        hold.outcome = WAIT

    def break_promise(self, entry: Entry) -> None:
        """Let an entry keep its seat after all; its heir must ask again."""
        self._undo.keep(entry, entry.seat_for)
        heir, entry.seat_for = entry.seat_for, None
        if heir is not None and heir.victim is entry:
            heir.victim = None
            heir.outcome = OPEN
            self._undo.wake(heir)

    def _wait(self, hold: Hold) -> None:
        if self.policy.when_full == "reject":
            raise self.full(hold)
        self._undo.keep(hold)
        if hold not in self.room:
            self._undo.keep_with(self, partial(self._put_back, tuple(self.room)))
            self.room.append(hold)
        hold.outcome = WAIT

    def full(self, hold: Hold) -> SessionsFull:
        """Return the error for an opener that gets no seat."""
        return SessionsFull(
            f"no room for session {hold.id!r}: {self.taken} of max_sessions="
            f"{self.policy.max_sessions} are in use or could not be saved; "
            "retry later, shorten the holds or raise max_sessions",
            retry_after=min(self.policy.wait, 60.0) or 1.0,
        )

    def leave_room(self, hold: Hold) -> None:
        """Forget an opener that was served or gave up."""
        self._undo.keep(hold)
        hold.victim = None
        if hold in self.room:
            self._undo.keep_with(self, partial(self._put_back, tuple(self.room)))
            self.room.remove(hold)
            self.call_next()

    def _put_back(self, room: tuple[Hold, ...]) -> None:
        self.room = deque(room)

    def call_next(self) -> None:
        """Make the first in the queue ask again."""
        if self.room:
            self._undo.keep(self.room[0])
            self.room[0].outcome = OPEN
            self._undo.wake(self.room[0])

    def give_up(self, entry: Entry) -> None:
        """Pass the seat of `entry` on, if it has one."""
        if not entry.seated:
            return
        self._undo.keep(entry, entry.seat_for)
        entry.seated = False
        heir, entry.seat_for = entry.seat_for, None
        if heir is not None and heir.victim is entry and heir.entry is not None:
            self._take(heir)
            heir.outcome = OPEN
            self._undo.wake(heir)
        else:
            self.taken -= 1
            self.call_next()

    def _take(self, hold: Hold) -> None:
        assert hold.entry is not None
        self._undo.keep(hold.entry)
        hold.entry.seated = True
        self.leave_room(hold)
