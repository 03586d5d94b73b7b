"""The single interface between what holds memory and what displays it.

Holders register themselves weakly; events go to subscribers and into a short ring buffer. Standard
library only, because the probe inside a watched process imports this module. Nothing here takes a
lock: single operations on dicts and deques are atomic, and finalizers may call any of it.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class Reason(StrEnum):
    """Why something left memory: the same words for containers, sessions and histories."""

    idle = "idle"
    age = "age"
    count = "count"  # type: ignore[assignment]  # hides str.count, which no reason needs
    bytes = "bytes"
    pressure = "pressure"
    completed = "completed"
    closed = "closed"
    replaced = "replaced"
    owner_gone = "owner_gone"
    shutdown = "shutdown"
    parked = "parked"
    stale = "stale"
    discarded = "discarded"


@dataclass(slots=True, frozen=True, kw_only=True)
class Stats:
    """What `stats()` of every holder returns; all fields are plain JSON values."""

    kind: str
    name: str
    items: int
    max_items: int | None = None
    bytes: int | None = None
    max_bytes: int | None = None
    left: Mapping[str, int] = field(default_factory=dict)
    hook_errors: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain dicts and numbers, ready for `json.dumps`."""
        return asdict(self)


class Holder(Protocol):
    """Anything that holds memory under a name."""

    def stats(self) -> Stats:
        """Return the current figures."""
        ...


class NativeCache(Protocol):
    """A cache with a limit that a C library keeps for us, where no walk of objects sees it."""

    def native_bytes(self) -> int:
        """Return how much it holds by now, at most its limit."""
        ...


@dataclass(slots=True, frozen=True)
class Event:
    """Something a person should know: a stuck hold, a retained session, a hook that raised."""

    kind: str
    source: str
    at: float
    fields: Mapping[str, Any]


Subscriber = Callable[[Event], object]

_holders: dict[int, weakref.ref[Holder]] = {}
_native_caches: weakref.WeakSet[NativeCache] = weakref.WeakSet()
_subscribers: dict[object, Subscriber] = {}
_recent: deque[Event] = deque(maxlen=1000)
_logged: dict[tuple[str, str], float] = {}

LOG_EVERY = 60.0


def register(holder: Holder) -> None:
    """Make a holder visible until it is collected; it is not kept alive."""
    key = id(holder)

    def forget(_: object, key: int = key) -> None:
        _holders.pop(key, None)

    _holders[key] = weakref.ref(holder, forget)


def unregister(holder: Holder) -> None:
    """Remove a holder before it is collected; harmless if it was never registered."""
    _holders.pop(id(holder), None)


def holders() -> list[Holder]:
    """Return every registered holder that is alive."""
    return [holder for ref in list(_holders.values()) if (holder := ref()) is not None]


def register_native(cache: NativeCache) -> None:
    """Count a cache among those that fill and then stop, until it is collected."""
    _native_caches.add(cache)


def native_bytes() -> int:
    """Return what the registered caches hold; while they fill, that is not a leak."""
    return sum(cache.native_bytes() for cache in list(_native_caches))


def subscribe(subscriber: Subscriber) -> Callable[[], None]:
    """Call `subscriber(event)` for each event from now on; call the returned function to stop."""
    key = object()  # the same callable may subscribe twice
    _subscribers[key] = subscriber

    def end() -> None:
        _subscribers.pop(key, None)

    return end


def emit(kind: str, source: str, **fields: Any) -> None:
    """Notify all subscribers; one that raises is recorded and skipped."""
    event = Event(kind, source, time.time(), fields)
    _recent.append(event)
    _log_seldom(event)
    for subscriber in list(_subscribers.values()):
        try:
            subscriber(event)
        except Exception as error:  # a broken subscriber must not stop the source
            _recent.append(Event("subscriber_error", source, event.at, {"error": describe(error)}))


def _log_seldom(event: Event) -> None:
    """Log an event to `floodline`, at most one per kind and source in a minute."""
    key = (event.kind, event.source)
    if abs(event.at - _logged.get(key, 0.0)) < LOG_EVERY:
        return
    if len(_logged) >= 1000:
        _logged.clear()
    _logged[key] = event.at
    details = ", ".join(f"{name}={value}" for name, value in event.fields.items())
    import logging  # needed seldom, and the probe is in programs that do without it

    logging.getLogger("floodline").warning(
        "%s in %s: %s", event.kind.replace("_", " "), event.source, details
    )


def recent() -> list[Event]:
    """Return the most recent events, oldest first, at most 1,000."""
    return list(_recent)


def describe(error: BaseException) -> str:
    """Describe an error in one line, even if its `__str__` raises."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # user code
        return type(error).__name__


def _after_fork() -> None:
    """In a forked child, holders start empty; the parent's events and subscribers go."""
    _subscribers.clear()
    _recent.clear()
    for holder in holders():
        start_empty = getattr(holder, "_after_fork", None)
        if start_empty is not None:
            start_empty()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
