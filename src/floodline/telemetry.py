"""The one seam between what holds memory and what shows it.

Holders register themselves weakly; events go to whoever subscribed and into a short ring. Standard
library only, because the probe inside a watched process imports this. Nothing here takes a lock:
single operations on dicts and deques are atomic, and a finalizer may call all of it.
"""

from __future__ import annotations

import logging
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
    count = "count"  # type: ignore[assignment]  # str has a method of that name, which no reason needs
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
    """What every holder answers to `stats()`; the fields of all kinds are plain JSON values."""

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
        """Return the figures of this moment."""
        ...


@dataclass(slots=True, frozen=True)
class Event:
    """Something worth telling a person: a stuck hold, a retained session, a hook that raised."""

    kind: str
    source: str
    at: float
    fields: Mapping[str, Any]


Subscriber = Callable[[Event], object]

_holders: dict[int, weakref.ref[Holder]] = {}
_subscribers: dict[object, Subscriber] = {}
_recent: deque[Event] = deque(maxlen=1000)
_logged: dict[tuple[str, str], float] = {}
_log = logging.getLogger("floodline")

LOG_EVERY = 60.0


def register(holder: Holder) -> None:
    """Make a holder visible until it is collected; it is not kept alive."""
    key = id(holder)

    def forget(_: object, key: int = key) -> None:
        _holders.pop(key, None)

    _holders[key] = weakref.ref(holder, forget)


def unregister(holder: Holder) -> None:
    """Take a holder out before it is collected; harmless if it never was in."""
    _holders.pop(id(holder), None)


def holders() -> list[Holder]:
    """Return every registered holder that is alive."""
    return [holder for ref in list(_holders.values()) if (holder := ref()) is not None]


def subscribe(subscriber: Subscriber) -> Callable[[], None]:
    """Call `subscriber(event)` for each event from now on; the answer ends that."""
    key = object()  # the same callable may subscribe twice
    _subscribers[key] = subscriber

    def end() -> None:
        _subscribers.pop(key, None)

    return end


def emit(kind: str, source: str, **fields: Any) -> None:
    """Tell all subscribers; one that raises is passed over, and is told to nobody twice."""
    event = Event(kind, source, time.time(), fields)
    _recent.append(event)
    _log_seldom(event)
    for subscriber in list(_subscribers.values()):
        try:
            subscriber(event)
        except Exception as error:  # a broken listener must not stop its source
            _recent.append(Event("subscriber_error", source, event.at, {"error": describe(error)}))


def _log_seldom(event: Event) -> None:
    """Write an event to the log `floodline`, at most one of a kind and source in a minute."""
    key = (event.kind, event.source)
    if abs(event.at - _logged.get(key, 0.0)) < LOG_EVERY:
        return
    if len(_logged) >= 1000:
        _logged.clear()
    _logged[key] = event.at
    details = ", ".join(f"{name}={value}" for name, value in event.fields.items())
    _log.warning("%s in %s: %s", event.kind.replace("_", " "), event.source, details)


def recent() -> list[Event]:
    """Return the last events, oldest first, at most 1,000."""
    return list(_recent)


def describe(error: BaseException) -> str:
    """Write an error in one line, whatever its `__str__` does."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # user code
        return type(error).__name__


def _after_fork() -> None:
    """In a forked child: each holder starts empty, and what was inherited is not ours to tell."""
    _subscribers.clear()
    _recent.clear()
    for holder in holders():
        start_empty = getattr(holder, "_after_fork", None)
        if start_empty is not None:
            start_empty()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
