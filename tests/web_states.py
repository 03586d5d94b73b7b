"""States as a recorder tells them, made up, and a source that shows them."""

from __future__ import annotations

import copy
import threading
from typing import Any

STARTED = 1_760_000_000.0
MIB = 1024 * 1024

SUSPECT: dict[str, Any] = {
    "rank": 1,
    "verdict": "growing",
    "owner": "chat.service.PlanService._sessions",
    "defined_in": "chat/service.py:14",
    "path": "chat.service.SERVICE._sessions",
    "type": "dict",
    "holds": "MemoryService ×5230, list ×5230",
    "len": 5230,
    "per_round": 12.4,
    "bytes_per_round": 48_200.0,
    "file": "chat/service.py",
    "line": 31,
    "line_source": "trace",
    "echoes": ["chat.service.PlanService._locks"],
    "command": "server.py --port 8000",
    "pids": [4101],
}


def leaking(seconds: int = 480, *, now: float | None = None) -> dict[str, Any]:
    """A server that leaks through a dict of sessions, `seconds` after its start."""
    started = STARTED if now is None else now - seconds
    step = max(1, seconds // 240)
    times = [started + t for t in range(0, seconds + 1, step)]
    wave = [0, 1, 2, 3, 2, 1, 0, -1]
    points = [
        [at, int(96 * MIB + 48_200 * (at - started) * 8 + wave[n % 8] * 0.4 * MIB)]
        for n, at in enumerate(times)
    ]
    end = times[-1]
    rate = 385_600.0
    line = 512 * MIB
    return {
        "schema": 1,
        "tool": "floodline 0.1.0",
        "python": "3.11.7",
        "errors": [],
        "command": "server.py --port 8000",
        "started": started,
        "now": end,
        "closed": False,
        "line": line,
        "verdict": "growing",
        "where": "python",
        "needed": None,
        "unit": "second",
        "suspects": [
            dict(SUSPECT),
            {
                **SUSPECT,
                "rank": 2,
                "verdict": "undecided",
                "owner": "chat.metrics.HISTORY",
                "path": "chat.metrics.HISTORY",
                "defined_in": "chat/metrics.py:3",
                "type": "list",
                "holds": "float ×940",
                "len": 940,
                "per_round": 1.0,
                "bytes_per_round": 32.0,
                "file": "chat/metrics.py",
                "line": 9,
                "line_source": "static",
                "echoes": [],
            },
        ],
        "history": [
            {"at": started + 1, "verdict": "undecided", "where": "unknown"},
            {"at": started + 90, "verdict": "growing", "where": "python"},
        ],
        "memory": {
            "points": points,
            "now": points[-1][1],
            "peak": max(size for _, size in points),
            "limit": 1024 * MIB,
            "rate": rate,
            "crosses_in": (line - points[-1][1]) / rate,
        },
        "processes": [
            _process(4101, 4100, "server.py --port 8000", points, started),
            {
                **_process(4099, 4100, "server.py --port 8000", points[:20], started),
                "state": "exited",
                "verdict": "undecided",
                "ended": started + 60,
                "exit": {
                    "status": None,
                    "signal": "SIGKILL",
                    "oom": True,
                    "cause": "out of memory",
                    "kind": "out of memory",
                },
            },
        ],
        "sessions": [
            {
                "kind": "sessions",
                "name": "chats",
                "pid": 4101,
                "items": 412,
                "bytes": None,
                "max_bytes": None,
                "live": 412,
                "parked": 1930,
                "opened": 5230,
                "left": {"idle": 2310, "closed": 1204, "count": 96},
                "stuck": 1,
                "retained": 3,
                "max_items": 1000,
                "filling": {"limit": 1000, "full_in": 65.0},
            }
        ],
        "containers": [
            _container("replies", "map", 4101, 940, 1000, {"count": 1210, "age": 80}),
            {
                **_container("audit", "log", 4101, 210, 5000, {}),
                "filling": {"limit": 5000, "full_in": 140.0},
            },
            {
                **_container("outbox", "batch", 4101, 12, 50, {}),
                "bytes": 3 * MIB,
                "max_bytes": 4 * MIB,
            },
        ],
        "holders": [
            {
                "owner": "chat.service.PlanService._sessions",
                "path": "chat.service.SERVICE._sessions",
                "type": "dict",
                "items": 5230,
                "own": 294_000,
                "bytes": 180 * MIB,
                "share": 0.66,
                "within": None,
                "pid": 4101,
            },
            {
                "owner": "chat.service.MemoryService.turns",
                "path": "chat.service.SERVICE._sessions[*].turns",
                "type": "list",
                "items": 210_000,
                "own": 2 * MIB,
                "bytes": 150 * MIB,
                "share": 0.55,
                "within": "chat.service.PlanService._sessions",
                "pid": 4101,
            },
        ],
        "events": [
            {"at": started + 1, "pid": 4101, "kind": "started", "text": "probe 4101 is connected"},
            {
                "at": started + 200,
                "pid": 4101,
                "kind": "stuck",
                "text": "a hold of 5 min",
            },
            {
                "at": started + 300,
                "pid": 4101,
                "kind": "verdict",
                "text": "growing: chat.service.PlanService._sessions",
            },
        ],
        "exit": None,
        "not_covered": ["worker.py was started with -I, which keeps probes out"],
        "recorder": {
            "pid": 4100,
            "boot": "",
            "rss": 31 * MIB,
            "file": "run.floodline",
            "file_bytes": 2 * MIB,
        },
    }


def _process(
    pid: int, parent: int, command: str, points: list[list[float]], started: float
) -> dict[str, Any]:
    return {
        "pid": pid,
        "parent": parent,
        "command": command,
        "state": "running",
        "python": "3.11.7",
        "started": started,
        "ended": None,
        "rss": points[-1][1],
        "peak": points[-1][1],
        "recycled": 0,
        "split": {
            "resident": points[-1][1],
            "python": 200 * MIB,
            "malloc": 40 * MIB,
            "malloc_free": 9 * MIB,
            "mapped": 0,
            "unexplained": 12 * MIB,
        },
        "series": 1,
        "points": copy.deepcopy(points),
        "objects": 812_000,
        "watched_seconds": 470.0,
        "threads": 6,
        "tasks": 41,
        "fds": 88,
        "gc": [120, 11, 2],
        "exit": None,
        "verdict": "growing",
        "cost_seconds": 2.1,
        "own_bytes": 0,
        "blind_spots": ["variables of running functions"],
    }


def _container(
    name: str, kind: str, pid: int, items: int, most: int, evicted: dict[str, int]
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "pid": pid,
        "items": items,
        "max_items": most,
        "bytes": None,
        "max_bytes": None,
        "left": evicted,
        "evicted": evicted,
    }


def killed(seconds: int = 480) -> dict[str, Any]:
    """The same server after the kernel has killed it."""
    state = leaking(seconds)
    cause = {
        "status": None,
        "signal": "SIGKILL",
        "oom": True,
        "cause": "killed by the kernel, out of memory, with 273 MiB resident",
        "kind": "out of memory",
    }
    state |= {"closed": True, "exit": cause}
    state["processes"][0] |= {"state": "exited", "ended": state["now"], "exit": dict(cause)}
    return state


def steady(seconds: int = 480) -> dict[str, Any]:
    """A server that is bounded: nothing grows, no line was drawn."""
    state = leaking(seconds)
    level = [[at, 96 * MIB] for at, _ in state["memory"]["points"]]
    state |= {"verdict": "bounded", "where": "none", "suspects": [], "line": None, "events": []}
    state["memory"] |= {"points": level, "now": 96 * MIB, "peak": 97 * MIB, "limit": None}
    state["memory"] |= {"rate": 0.0, "crosses_in": None}
    state["processes"] = [{**state["processes"][0], "verdict": "bounded", "points": level}]
    return state


def beginning() -> dict[str, Any]:
    """The first tick: nothing is known yet."""
    state = steady(0)
    needed = {"seconds": 42.0, "why": "too short to tell growth from warming up"}
    state |= {"verdict": "undecided", "where": "unknown", "needed": needed, "not_covered": []}
    state |= {"sessions": [], "containers": [], "holders": [], "processes": []}
    state["memory"] |= {"points": [], "now": 0, "peak": 0}
    return state


class Shown:
    """A source whose state is set by hand."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self._version = 1
        self._changed = threading.Condition()
        self.asked = 0

    @property
    def version(self) -> int:
        return self._version

    def state(self) -> dict[str, Any]:
        self.asked += 1
        return self._state

    def wait(self, version: int, timeout: float) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._version > version, timeout)
            return self._version

    def show(self, state: dict[str, Any]) -> None:
        with self._changed:
            self._state = state
            self._version += 1
            self._changed.notify_all()
