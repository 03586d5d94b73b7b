"""Sessions: the state of conversations, users and tasks, bounded, safe in use, and never lost."""

from __future__ import annotations

from floodline.sessions._async import AsyncSessions, AsyncUse
from floodline.sessions._base import SessionsStats
from floodline.sessions._scope import ScopeStats, SessionMap, SessionScope
from floodline.sessions._threads import Sessions, Use

__all__ = [
    "AsyncSessions",
    "AsyncUse",
    "ScopeStats",
    "SessionMap",
    "SessionScope",
    "Sessions",
    "SessionsStats",
    "Use",
]
