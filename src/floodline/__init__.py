"""Bounded memory for long-running Python agents and services."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from floodline._lazy import lazy_names

if TYPE_CHECKING:
    from floodline.bounded import Batch, BoundedLog, BoundedMap
    from floodline.history import Conversation
    from floodline.leaks import expect_gone, why_alive
    from floodline.memory import GCController, MemoryBudget, MemoryTracker, track_memory
    from floodline.sessions import AsyncSessions, Sessions, SessionScope
    from floodline.telemetry import Reason

    def watch() -> None:
        """See `floodline.recorder.watch`: an import would point upwards for those who import us."""


__version__ = "0.1.0"

__all__ = [
    "AsyncSessions",
    "Batch",
    "BoundedLog",
    "BoundedMap",
    "Conversation",
    "GCController",
    "MemoryBudget",
    "MemoryTracker",
    "Reason",
    "SessionScope",
    "Sessions",
    "expect_gone",
    "track_memory",
    "watch",
    "why_alive",
]

_HOMES = {
    "AsyncSessions": "sessions",
    "Batch": "bounded",
    "BoundedLog": "bounded",
    "BoundedMap": "bounded",
    "Conversation": "history",
    "GCController": "memory",
    "MemoryBudget": "memory",
    "MemoryTracker": "memory",
    "Reason": "telemetry",
    "SessionScope": "sessions",
    "Sessions": "sessions",
    "expect_gone": "leaks",
    "track_memory": "memory",
    "watch": "recorder",
    "why_alive": "leaks",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)

if os.environ.get("FLOODLINE_PROBE") == "dormant":
    import_module("floodline.recorder").watch()
