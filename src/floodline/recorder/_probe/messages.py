"""The lines of JSON between a probe and the recorder, and the reader that completes them.

A watched program with its own floodline uses the probe of that one, which may be older or newer
than the recorder. Defaults for what it does not send are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Literal, NotRequired, TypedDict

from floodline.leaks._suspect_record import HoldingRecord, SplitRecord, SuspectRecord
from floodline.leaks._vocabulary import Outcome, Where

_floodline_engine = True  # the walk leaves this module out


class Needed(TypedDict):
    """What is missing for a verdict."""

    seconds: float
    why: str


class FillingRecord(TypedDict):
    """One of floodline's own holders that fills, and the seconds until it is full."""

    kind: str
    name: str
    limit: int
    full_in: float


class LiveRecord(TypedDict):
    """The answer of the leak engine of a process."""

    verdict: Outcome
    where: Where
    unit: str
    suspects: list[SuspectRecord]
    needed: Needed | None
    watched_seconds: float | None
    objects: int | None
    blind_spots: list[str]
    holders: list[HoldingRecord]
    split: SplitRecord | None
    own_bytes: int
    filling: list[FillingRecord]


class FillingState(TypedDict):
    """What a holder that fills will hold at most, and the seconds until then."""

    limit: int
    full_in: float


class HolderRecord(TypedDict):
    """The `stats()` of a holder; some kinds have more figures."""

    kind: str
    name: str
    items: int
    max_items: int | None
    bytes: int | None
    max_bytes: int | None
    left: dict[str, int]
    filling: NotRequired[FillingState]


class SessionsRecord(HolderRecord):
    """All sessions of one name."""

    live: int
    parked: int | None
    opened: int
    stuck: int
    retained: int


class ContainerRecord(HolderRecord):
    """A bounded container."""

    evicted: dict[str, int]


class HolderRecords(TypedDict):
    """All that floodline holds in a process."""

    sessions: list[SessionsRecord]
    containers: list[ContainerRecord]


class EventRecord(TypedDict):
    """Something that happened in the process, in words without any of its data."""

    at: float
    kind: str
    text: str


class Figures(TypedDict):
    """Cheap figures of a process; `threads` and `fds` are read less often."""

    rss: int
    limit: int | None
    gc: list[int]
    tasks: int | None
    threads: int | None
    fds: int | None


class Hello(TypedDict):
    """The first line of a connection; a probe that could not start says why in `error`."""

    kind: Literal["hello"]
    token: NotRequired[str]
    pid: int
    parent: int | None
    command: str
    python: str | None
    at: float
    error: NotRequired[str]


class Sample(Figures, HolderRecords):
    """The line sent each second."""

    kind: Literal["tick"]
    at: float
    answer: LiveRecord | None
    events: list[EventRecord]
    cost: float


class Goodbye(TypedDict):
    """The last line before a clean exit."""

    kind: Literal["bye"]
    at: float


class Shed(TypedDict):
    """The request to a probe to shed when the line is crossed."""

    do: Literal["shed"]
    bytes: int


HOLDER: dict[str, Any] = {
    "kind": "",
    "items": 0,
    "max_items": None,
    "bytes": None,
    "max_bytes": None,
    "left": {},
}
SESSIONS: dict[str, Any] = {
    **HOLDER,
    "live": 0,
    "parked": None,
    "opened": 0,
    "stuck": 0,
    "retained": 0,
}
CONTAINER: dict[str, Any] = {**HOLDER, "evicted": {}}
HOLDING: dict[str, Any] = {
    **dict.fromkeys(("owner", "path", "type"), ""),
    **dict.fromkeys(("items", "own", "bytes"), 0),
    "share": 0.0,
    "within": None,
}

Message = Hello | Sample | Goodbye


def with_defaults(record: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    """Return a record with its missing names filled in."""
    lacking = {name: copy(value) for name, value in defaults.items() if name not in record}
    return {**record, **lacking}


def read_message(raw: Mapping[str, Any], now: float) -> Message | None:
    """Return a message of a probe, completed; None for an unknown kind."""
    at = float(raw.get("at", now))
    if raw.get("kind") == "hello":
        return _hello(raw, at)
    if raw.get("kind") == "tick":
        return _sample(raw, at)
    return {"kind": "bye", "at": at} if raw.get("kind") == "bye" else None


def read_wish(raw: object) -> Shed | None:
    """Return a request of the recorder; None if it is not one, or of an unknown kind."""
    if not isinstance(raw, dict) or raw.get("do") != "shed":
        return None
    return {"do": "shed", "bytes": int(raw.get("bytes", 0))}


def _hello(raw: Mapping[str, Any], at: float) -> Hello:
    message: Hello = {
        "kind": "hello",
        "pid": raw.get("pid", 0),
        "parent": raw.get("parent"),
        "command": str(raw.get("command", "")),
        "python": raw.get("python"),
        "at": at,
    }
    if "error" in raw:
        message["error"] = str(raw["error"])
    return message


def _sample(raw: Mapping[str, Any], at: float) -> Sample:
    return {
        "kind": "tick",
        "at": at,
        "rss": raw.get("rss", 0),
        "limit": raw.get("limit"),
        "gc": raw.get("gc") or [],
        "tasks": raw.get("tasks"),
        "threads": raw.get("threads"),
        "fds": raw.get("fds"),
        "sessions": [with_defaults(one, SESSIONS) for one in raw.get("sessions") or ()],
        "containers": [with_defaults(one, CONTAINER) for one in raw.get("containers") or ()],
        "answer": _answer(raw.get("answer")),
        "events": [_event(event, at) for event in raw.get("events", ())],
        "cost": raw.get("cost", 0.0),
    }


def _answer(raw: Mapping[str, Any] | None) -> LiveRecord | None:
    if not raw:
        return None
    return {
        "verdict": raw.get("verdict", Outcome.UNDECIDED),
        "where": raw.get("where", Where.UNKNOWN),
        "unit": raw.get("unit", "second"),
        "suspects": raw.get("suspects") or [],
        "needed": raw.get("needed"),
        "watched_seconds": raw.get("watched_seconds"),
        "objects": raw.get("objects"),
        "blind_spots": raw.get("blind_spots") or [],
        "holders": [with_defaults(one, HOLDING) for one in raw.get("holders") or ()],
        "split": raw.get("split"),
        "own_bytes": raw.get("own_bytes") or 0,
        "filling": raw.get("filling") or [],
    }


def _event(raw: Mapping[str, Any], at: float) -> EventRecord:
    return {
        "at": float(raw.get("at", at)),
        "kind": str(raw.get("kind")),
        "text": str(raw.get("text")),
    }
