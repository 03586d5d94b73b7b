"""Small stand-ins for the parts of the recorder."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def suspect(owner: str = "app.SESSIONS", **changes: Any) -> dict[str, Any]:
    return {
        "rank": 1,
        "verdict": "growing",
        "owner": owner,
        "defined_in": "app",
        "path": owner,
        "type": "dict",
        "holds": "Session ×10",
        "len": 10,
        "per_round": 2.0,
        "bytes_per_round": 100.0,
        "file": "app.py",
        "line": 7,
        "line_source": "static",
        "echoes": [],
        **changes,
    }


def answer(verdict: str = "bounded", **changes: Any) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "where": "python" if verdict == "growing" else "none",
        "suspects": [],
        "needed": None,
        "watched_seconds": 30.0,
        "objects": 1000,
        "cost_seconds": 0.1,
        "blind_spots": [],
        "holders": [],
        "split": None,
        "own_bytes": 0,
        "filling": [],
        "unit": "second",
        **changes,
    }


def sample(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "tick",
        "at": 0.0,
        "rss": 1 << 20,
        "limit": None,
        "gc": [1, 2, 3],
        "threads": 2,
        "tasks": 0,
        "fds": 5,
        "sessions": [],
        "containers": [],
        "answer": answer(),
        "events": [],
        "cost": 0.1,
        **changes,
    }


def known_thread(function: Any, arguments: tuple[Any, ...]) -> None:
    """Start a thread that coverage sees, in the place of a raw one."""
    threading.Thread(target=function, args=arguments, daemon=True).start()


class Clock:
    """Time that passes when a test says so."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Use up all descriptors of this process, really, and give them back at the end."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(one.name) for one in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 10, before[1]))
    taken = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(1))
        yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
