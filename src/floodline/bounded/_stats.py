"""What the containers answer to `stats()`."""

from __future__ import annotations

from dataclasses import dataclass

from floodline.telemetry import Stats


@dataclass(slots=True, frozen=True, kw_only=True)
class MapStats(Stats):
    """The figures of a map; hits and misses may be approximate under threads."""

    order: str
    ttl: float | None
    idle: float | None
    hits: int
    misses: int
    pinned: int
    leftovers: int
    creating: int


@dataclass(slots=True, frozen=True, kw_only=True)
class LogStats(Stats):
    """The figures of a log."""

    max_age: float | None
    added: int


@dataclass(slots=True, frozen=True, kw_only=True)
class BatchStats(Stats):
    """The figures of a batch: `items` wait, `flushed` were taken by the sink."""

    retain: int
    max_wait: float | None
    flushed: int
    flushes: int
    failed: int
