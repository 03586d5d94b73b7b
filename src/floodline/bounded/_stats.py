"""The figures that the containers return from `stats()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from floodline.bounded import _arguments as bounds
from floodline.bounded._hooks import Exits
from floodline.bounded._single_flight import Flights
from floodline.bounded._table import Table
from floodline.telemetry import Stats


@dataclass(slots=True, frozen=True, kw_only=True)
class MapStats(Stats):
    """The figures of a map; hits and misses may be approximate under threads."""

    order: bounds.EvictionOrder
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
    """The figures of a batch: `items` are waiting, `flushed` were accepted by the sink."""

    retain: int
    max_wait: float | None
    flushed: int
    flushes: int
    failed: int


class Measured(Protocol):
    """A map as `map_stats` sees it."""

    name: str
    _limits: bounds.Limits
    _table: Table[Any, Any]
    _scale: bounds.Scale | None
    _exits: Exits
    _misses: int
    _flights: Flights[Any]


def map_stats(map: Measured, items: int) -> MapStats:
    """Return the figures of a map."""
    limits, table = map._limits, map._table
    return MapStats(
        kind="map",
        name=map.name,
        items=items,
        max_items=bounds.shown(limits.max_items),
        bytes=None if map._scale is None else table.bytes,
        max_bytes=bounds.shown(limits.max_bytes),
        left=table.left,
        hook_errors=map._exits.errors,
        order=limits.order,
        ttl=bounds.shown_span(limits.ttl),
        idle=bounds.shown_span(limits.idle),
        hits=table.hits,
        misses=map._misses,
        pinned=table.pinned,
        leftovers=len(table.leftovers or ()),
        creating=len(map._flights),
    )
