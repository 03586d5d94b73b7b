"""Reads a recording: the last snapshot or all in order, even if it was never closed."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from floodline._units import Duration, parse_duration
from floodline.errors import ConfigError
from floodline.recorder._exit_cause import end_state, unclosed_record
from floodline.recorder._probe_site import VARIABLE
from floodline.recorder._proc import alive, environment_of
from floodline.recorder._recording.completed import completed, completed_exit
from floodline.recorder._recording.file import SCHEMA, Trouble, is_recording
from floodline.recorder._recording.journal import event_record
from floodline.recorder._snapshot import EventState, Points, ProcessStatus, Snapshot

DAMAGED = (ValueError, LookupError, TypeError, AttributeError)  # in pages that SQLite accepts
RUNNING = ProcessStatus.RUNNING
BOOT = Path("/proc/sys/kernel/random/boot_id")


class Recording:
    """What was on disk when it was read; `closed` is True if the recorder ended cleanly."""

    def __init__(
        self, file: Path, state: Snapshot, samples: dict[int, Points],
        events: list[EventState], frames: list[tuple[float, bytes]], trouble: Trouble | None = None,
    ) -> None:  # fmt: skip
        self.file, self._trouble = file, trouble
        self._state, self._samples, self._events, self._frames = state, samples, events, frames

    @property
    def closed(self) -> bool:
        """Return True if it was closed; otherwise its recorder is running or was killed."""
        return bool(self._state["closed"])

    @property
    def running(self) -> bool:
        """Return True if its recorder is still running on this machine."""
        recorder = self._state["recorder"]
        ended = self.closed or bool(self._trouble and self._trouble["closed"])
        return not ended and recorder["boot"] == boot_id() and alive(recorder["pid"])

    def _survivors(self) -> list[int]:
        """Return the processes that outlived their recorder; a pid alone may have been reused."""
        if self._state["recorder"]["boot"] != boot_id():
            return []
        pids = [one["pid"] for one in self._state["processes"] if one["state"] == RUNNING]
        return [pid for pid in pids if alive(pid) and _probed(pid)]

    def state(self) -> Snapshot:
        """Return the last snapshot, in the shape of `Recorder.state()`.

        If the recording was never closed and its recorder is gone, `exit` says so. If it could not
        be written to the end, `cut` says since when and why.
        """
        state = self._filled(self._state)
        if self.closed:
            return state
        trouble = self._trouble
        if trouble is not None:
            state["cut"] = {"at": trouble["at"], "why": trouble["why"]}
            state["errors"] = [*state["errors"], f"it could not be written: {trouble['why']}"]
            state["closed"], state["exit"] = trouble["closed"], trouble["exit"]
        if not self.running:
            _end(state, self._survivors())
        return state

    def frames(self, step: Duration = 1.0) -> Iterator[Snapshot]:
        """Yield the snapshots from the first to the last, at least `step` seconds apart."""
        seconds = parse_duration(step, "step", zero=True)
        last = float("-inf")
        for at, packed in self._frames[:-1]:
            if at - last >= seconds:
                last = at
                yield self._filled(completed(json.loads(zlib.decompress(packed))))
        yield self.state()

    def _filled(self, state: Snapshot) -> Snapshot:
        """Put the points and events up to that time back."""
        now = state["now"]
        return {
            **state,
            "memory": {**state["memory"], "points": self._points(0, now)},
            "processes": [
                {**process, "points": self._points(process["series"], now)}
                for process in state["processes"]
            ],
            "events": [event for event in self._events if event["at"] <= now + 1],
            "recorder": {**state["recorder"], "file": str(self.file)},
        }

    def _points(self, series: int, until: float) -> Points:
        return [list(point) for point in self._samples.get(series, ()) if point[0] <= until]


def _probed(pid: int) -> bool:
    return ":" in (environment_of(pid) or {}).get(VARIABLE, "")


def _end(state: Snapshot, survivors: list[int]) -> None:
    """Say what can be said about a recording without an end."""
    known, memory = state["exit"], state["memory"]
    if known is None:
        state["exit"] = unclosed_record(memory["now"], memory["limit"], survivors)
    for number, process in enumerate(state["processes"]):
        if process["state"] != RUNNING or process["pid"] in survivors:
            continue
        process["state"] = ProcessStatus.LOST
        if number == 0 and known is not None:  # the program itself comes first
            process["state"], process["exit"] = end_state(known), known


def read_recording(path: Path | str) -> Recording:
    """Read a recording, even while it is being written; raise `ConfigError` if it is not one."""
    file = Path(path)
    if not file.is_file():
        raise ConfigError(f"{file} is not a file; give a recording written by floodline run")
    try:
        ours = is_recording(file)
    except OSError as error:
        raise ConfigError(f"{error}; read it as the user who recorded it") from error
    if not ours:
        raise ConfigError(f"{file} is not a recording of floodline run; give another file")
    try:
        try:
            return _read(file, file)
        except sqlite3.OperationalError:
            return _read_copy(file)
    except ConfigError:
        raise
    except (sqlite3.DatabaseError, *DAMAGED) as error:
        raise ConfigError(
            f"{file} cannot be read: {error}; if it was copied in the middle of a write, copy it "
            "again, together with its -journal file"
        ) from error


def _read_copy(file: Path) -> Recording:
    """Read a copy, in which the half-written tick of a killed recorder can be rolled back."""
    with tempfile.TemporaryDirectory(prefix="floodline-") as folder:
        for name in (file.name, f"{file.name}-journal"):
            if file.with_name(name).exists():
                shutil.copy(file.with_name(name), folder)
        return _read(Path(folder) / file.name, file, mode="rw")


def _read(opened: Path, file: Path, mode: str = "ro") -> Recording:
    url = f"{opened.resolve().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(url, uri=True, timeout=5.0)) as db:
        db.execute("BEGIN")  # read everything at one point in time
        (schema,) = db.execute("PRAGMA user_version").fetchone()
        if schema > SCHEMA:
            raise ConfigError(f"{file} has schema {schema}, newer than {SCHEMA}; update floodline")
        row = db.execute("SELECT doc FROM state").fetchone()
        if row is None:
            raise ConfigError(f"{file} is empty: the recorder ended before its first tick")
        samples: dict[int, Points] = {}
        for series, at, value in db.execute("SELECT * FROM samples ORDER BY series, at"):
            samples.setdefault(series, []).append([at, value])
        events = [
            event_record(*event[1:]) for event in db.execute("SELECT * FROM events ORDER BY number")
        ]
        frames = db.execute("SELECT at, doc FROM frames ORDER BY at").fetchall()
        trouble = _trouble(db)
    recording = Recording(file, completed(json.loads(row[0])), samples, events, frames, trouble)
    recording.state()  # report damage now
    return recording


def _trouble(db: sqlite3.Connection) -> Trouble | None:
    """Return what the recorder said when it could not write; older recordings lack it."""
    known = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'trouble'").fetchone()
    row = db.execute("SELECT doc FROM trouble").fetchone() if known else None
    if not row or not row[0].strip():
        return None
    said = json.loads(row[0])
    return {
        "at": said["at"],
        "why": said["why"],
        "exit": completed_exit(said["exit"]),
        "closed": said["closed"],
    }


def boot_id() -> str:
    """Return what identifies one boot of the machine, or of a container's host."""
    try:
        boot = BOOT.read_text(encoding="ascii").strip()
        return f"{boot}:{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
