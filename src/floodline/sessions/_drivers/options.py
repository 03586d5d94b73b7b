"""The keyword arguments of sessions, for type checkers: an overload cannot repeat them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypedDict

from floodline._clock import Clock
from floodline._session_options import Durability, OnError, WhenFull
from floodline._units import Duration, Size
from floodline.bounded import Pressure
from floodline.sessions._drivers.sessions_base import S
from floodline.sessions._scope import SessionScope
from floodline.stores import AsyncStore, Store
from floodline.telemetry import Reason


class Options(TypedDict, Generic[S], total=False):
    """What `SessionsBase` takes in addition to the factory."""

    idle: Duration | None
    max_age: Duration | None
    max_sessions: int | None
    max_bytes: Size | None
    store: Store | AsyncStore | str | None
    state_type: Any
    weigh: Callable[[S], int] | None
    on_open: Callable[[str, S], Any] | None
    on_leave: Callable[[str, S, Reason], Any] | None
    close_state: bool
    durability: Durability
    on_error: OnError
    when_full: WhenFull
    wait: Duration | None
    busy_wait: Duration | None
    max_hold: Duration | None
    lease: Duration
    linger: Duration
    tombstone: Duration | None
    retain: Duration | None
    pressure: Pressure | None
    sweep_every: Duration | None
    scope: SessionScope | None
    name: str
    clock: Clock | None
