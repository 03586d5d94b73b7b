"""The event log of a recording: bounded; important events outlive frequent ones."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from floodline.recorder._snapshot import EventKind, EventState

OTHERS = 300
FIRST, LAST = 200, 400  # of the important ones
TEXT = 500
MATTERS = frozenset({
    *set(EventKind) - {EventKind.PROCESS_STARTED, EventKind.PROCESS_ENDED},
    # from the program's own telemetry, and the probe
    "line_shed", "retained", "stuck_hold", "stuck_leaving", "save_failed", "unreadable_record",
    "memory_pressure", "memory_exhausted", "memory_critical", "probe_error",
})  # fmt: skip


def legible(text: str) -> str:
    """Escape what is not valid text, such as bytes in a file name: SQLite would refuse it."""
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(slots=True)
class Entry:
    """One event, and how often it occurred with the same text."""

    number: int
    at: float
    pid: int | None
    kind: str
    text: str
    count: int = 1

    @property
    def matters(self) -> bool:
        """Return True if it stays when others are dropped."""
        return self.kind in MATTERS

    def as_record(self) -> EventState:
        """Return it as JSON-ready data."""
        return event_record(self.at, self.pid, self.kind, self.text, self.count)


def event_record(at: float, pid: int | None, kind: str, text: str, count: int) -> EventState:
    """Return an event of the snapshot."""
    record: EventState = {"at": at, "pid": pid, "kind": kind, "text": text}
    if count > 1:
        record["count"] = count
    return record


class Journal:
    """Keeps the first and last important events, and the last of the others."""

    def __init__(self) -> None:
        self._first: list[Entry] = []
        self._last: deque[Entry] = deque(maxlen=LAST)
        self._others: deque[Entry] = deque(maxlen=OTHERS)
        self._count = 0
        self._changed: dict[int, Entry] = {}

    def add(self, at: float, pid: int | None, kind: str, text: str) -> None:
        """Add an event; the same text from the same process is counted, not repeated."""
        text = legible(text[:TEXT])
        same = self._find(pid, kind, text)
        if same is not None:
            same.count += 1
            self._changed[same.number] = same
            return
        self._count += 1
        entry = Entry(self._count, at, pid, kind, text)
        if not entry.matters:
            self._others.append(entry)
        elif len(self._first) < FIRST:
            self._first.append(entry)
        else:
            self._last.append(entry)
        self._changed[entry.number] = entry

    def _find(self, pid: int | None, kind: str, text: str) -> Entry | None:
        for entry in (*self._others, *self._last, *self._first):
            if (entry.pid, entry.kind, entry.text) == (pid, kind, text):
                return entry
        return None

    def unwritten(self) -> list[Entry]:
        """Return what is new or was counted again since the last call."""
        changed, self._changed = list(self._changed.values()), {}
        return changed

    def rewrite(self) -> None:
        """Mark all events as unwritten, after a failed write."""
        self._changed = {entry.number: entry for entry in self.kept()}

    def kept(self) -> list[Entry]:
        """Return all that is still kept, oldest first."""
        return sorted((*self._first, *self._last, *self._others), key=lambda entry: entry.number)

    def records(self) -> list[EventState]:
        """Return all that is kept, newest last."""
        return [entry.as_record() for entry in self.kept()]
