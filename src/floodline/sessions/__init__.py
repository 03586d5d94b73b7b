"""Sessions: the state of conversations, users and tasks; bounded, safe in use, never lost."""

from __future__ import annotations

from floodline.sessions._drivers.async_sessions import AsyncSessions, AsyncUse
from floodline.sessions._drivers.sessions_base import SessionsStats
from floodline.sessions._drivers.threads import Sessions, Use
from floodline.sessions._scope import ScopeStats, SessionMap, SessionScope

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
