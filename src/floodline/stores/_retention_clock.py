"""The clock of retention: the date, but not one that has only just jumped.

A date that is briefly wrong (a battery, a time server, a resumed virtual machine) must delete
nothing. So the date is compared with a clock that only counts seconds: a jump is believed once it
has lasted an hour. Until then a use is stamped with the later of the two times, and rows are
judged by the earlier one.
"""

from __future__ import annotations

from typing import NamedTuple

TOLERANCE = 60.0  # routine corrections by time servers
LASTING = 3600.0
OFF = 86_400.0  # how long a machine may be off before its date is doubted


class Noted(NamedTuple):
    """What a store keeps in its file: a date that was believed, and one that is on probation.

    `boot` says which boot of the machine the seconds belong to.
    """

    date: float
    seconds: float
    boot: str
    offset: float = 0.0
    since: float | None = None


class RetentionClock:
    """Tracks the date by the seconds that pass."""

    __slots__ = ("_boot", "_date", "_offset", "_seconds", "_since")

    def __init__(self, boot: str = "") -> None:
        self._boot = boot
        self._date: float | None = None
        self._seconds = self._offset = 0.0
        self._since: float | None = None

    @property
    def begun(self) -> bool:
        """True if a date is already believed."""
        return self._date is not None

    def look(self, seconds: float, date: float) -> tuple[float, float]:
        """Return the time to stamp a use with, and the time to judge rows by."""
        before = self._date
        if before is None or seconds < self._seconds:
            before = date if before is None else before
            self._believe(seconds, before)
        expected = before + seconds - self._seconds
        if -TOLERANCE <= date - expected <= TOLERANCE or self._has_lasted(seconds, date - seconds):
            self._date, self._seconds, self._since = date, seconds, None
            return date, date
        return max(date, expected), min(date, expected)

    def note(self) -> Noted | None:
        """Return what to save for the next process."""
        if self._date is None:
            return None
        return Noted(self._date, self._seconds, self._boot, self._offset, self._since)

    def resume(self, noted: Noted, seconds: float, date: float) -> None:
        """Continue from what another process has saved.

        After the machine was off, the date is believed if it moved on by a day at most.
        """
        if noted.boot == self._boot and noted.seconds <= seconds:
            self._date, self._seconds = noted.date, noted.seconds
            self._offset, self._since = noted.offset, noted.since
        elif 0 <= date - noted.date <= OFF:
            self._believe(seconds, date)
        else:
            self._believe(seconds, noted.date)

    def _believe(self, seconds: float, date: float) -> None:
        self._date, self._seconds, self._since = date, seconds, None

    def _has_lasted(self, seconds: float, offset: float) -> bool:
        if self._since is None or abs(offset - self._offset) > TOLERANCE:
            self._offset, self._since = offset, seconds
        return seconds - self._since >= LASTING
