"""The times that go with a call: the server's own, or those of clocks that tests give."""

from __future__ import annotations

import json
from typing import NamedTuple

from floodline._clock import Clock, checked
from floodline.stores._lease_clock import machine_clock
from floodline.stores._owner import boot_id
from floodline.stores._retention_clock import Noted, RetentionClock


class Moment(NamedTuple):
    """Seconds, or None for what the server's clock says: of leases, of uses, and the date."""

    now: float | None = None
    stamp: float | None = None
    date: float | None = None


_SERVERS = Moment()


class Judgement(NamedTuple):
    """What retention goes by: the time of the leases, the date now, and the date to judge by."""

    now: float | None
    stamp: float
    judged: float


class Times:
    """Leases and uses run on the server's clock; the date is doubted as in the other stores.

    The server only knows the date, so the seconds to compare it with are those of this machine.
    """

    def __init__(self, clock: Clock | None, wall: Clock | None) -> None:
        self._clock, self._wall = clock, wall and checked(wall, "wall")
        self._seconds = checked(clock or machine_clock())
        self._dates = RetentionClock(boot_id())

    @property
    def are_the_servers(self) -> bool:
        """True unless a test gave its own clock."""
        return self._clock is None

    def read(self) -> Moment:
        """Return the times of a call."""
        if self._clock is None:
            return _SERVERS
        now, date = self._clock(), (self._wall or self._clock)()
        return Moment(now, self._dates.look(now, date)[0], date)

    def judge(self, date: float | None, note: str | bytes | None) -> Judgement:
        """Return what to purge by; `date` and `note` are what the server says."""
        seconds = self._seconds()
        if date is None:
            date = (self._wall or self._seconds)()
        if note is not None and not self._dates.begun:
            self._dates.resume(Noted(*json.loads(note)), seconds, date)
        stamp, judged = self._dates.look(seconds, date)
        return Judgement(None if self._clock is None else seconds, stamp, judged)

    def note(self) -> str | None:
        """Return what the server is to keep for the next process."""
        noted = self._dates.note()
        return None if noted is None else json.dumps(noted)
