"""Completes snapshots written by another version: all defaults are here, and only here.

A recording may be years old, and `floodline top` may read a recorder of another release.
"""

from __future__ import annotations

from typing import Any, cast

from floodline.leaks._vocabulary import Outcome, Where
from floodline.recorder._exit_cause import CRASHES
from floodline.recorder._probe.messages import CONTAINER, SESSIONS, with_defaults
from floodline.recorder._snapshot import Exit, ExitKind, ProcessStatus, Snapshot

BACKGROUND_OF_0_1 = "went on in the background as "  # how 0.1 began the cause; it had no kinds

SNAPSHOT: dict[str, Any] = {
    "schema": 1,
    "tool": "floodline",
    "python": "",
    "errors": [],
    "command": "",
    "closed": False,
    "line": None,
    "verdict": Outcome.UNDECIDED,
    "where": Where.UNKNOWN,
    "needed": None,
    "unit": "second",
    "suspects": [],
    "history": [],
    "processes": [],
    "sessions": [],
    "containers": [],
    "holders": [],
    "events": [],
    "exit": None,
    "not_covered": [],
}
MEMORY: dict[str, Any] = {
    "points": [],
    "now": 0.0,
    "peak": 0.0,
    "limit": None,
    "rate": 0.0,
    "crosses_in": None,
}
PROCESS: dict[str, Any] = {
    "parent": None,
    "command": "",
    "state": ProcessStatus.RUNNING,
    "python": None,
    "ended": None,
    "rss": 0.0,
    "peak": 0.0,
    "series": -1,
    "points": [],
    "objects": None,
    "watched_seconds": None,
    "threads": None,
    "tasks": None,
    "fds": None,
    "gc": [],
    "exit": None,
    "verdict": Outcome.UNDECIDED,
    "cost_seconds": 0.0,
    "own_bytes": 0,
    "blind_spots": [],
    "recycled": 0,
    "split": None,
}
SUSPECT: dict[str, Any] = {
    "defined_in": "",
    "holds": "",
    "file": None,
    "line": None,
    "line_source": None,
    "echoes": [],
    "command": "",
    "pids": [],
}
EXIT: dict[str, Any] = {"status": None, "signal": None, "oom": False, "cause": ""}
RECORDER: dict[str, Any] = {"pid": 0, "boot": "", "rss": 0, "file": None, "file_bytes": None}


def completed(doc: dict[str, Any]) -> Snapshot:
    """Return a snapshot with all its names; what is not one raises as reading it would."""
    whole: dict[str, Any] = with_defaults(doc, SNAPSHOT)
    started: float = doc["started"]
    whole |= {
        "now": doc["now"],
        "suspects": [with_defaults(one, SUSPECT) for one in whole["suspects"]],
        "memory": with_defaults(doc["memory"], MEMORY),
        "processes": [_process(one, started) for one in whole["processes"]],
        "sessions": [with_defaults(one, SESSIONS) for one in whole["sessions"]],
        "containers": [with_defaults(one, CONTAINER) for one in whole["containers"]],
        "exit": completed_exit(whole["exit"]),
        "recorder": with_defaults(doc["recorder"], RECORDER),
    }
    return cast("Snapshot", whole)


def _process(doc: dict[str, Any], started: float) -> dict[str, Any]:
    whole: dict[str, Any] = with_defaults(doc, {**PROCESS, "started": started})
    return {**whole, "exit": completed_exit(whole["exit"])}


def completed_exit(doc: dict[str, Any] | None) -> Exit | None:
    """Return the end of a process with its kind."""
    if doc is None:
        return None
    whole: dict[str, Any] = with_defaults(doc, EXIT)
    whole["cause"] = whole["cause"] or _cause(whole)
    return cast("Exit", {**whole, "kind": ExitKind(doc.get("kind") or _kind(whole))})


def _cause(exit: dict[str, Any]) -> str:
    if exit["oom"]:
        return "out of memory"
    return "unknown" if exit["status"] is None else f"status {exit['status']}"


def _kind(exit: dict[str, Any]) -> ExitKind:
    if exit["cause"].startswith(BACKGROUND_OF_0_1):
        return ExitKind.BACKGROUND
    if exit["oom"]:
        return ExitKind.OUT_OF_MEMORY
    if exit["signal"] == "SIGKILL":
        return ExitKind.KILLED
    if exit["signal"]:
        return ExitKind.CRASHED if exit["signal"] in CRASHES else ExitKind.SIGNALLED
    if exit["status"] is None:
        return ExitKind.GONE
    return ExitKind.ENDED if exit["status"] == 0 else ExitKind.FAILED
