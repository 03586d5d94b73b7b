"""The figures of the service: a fixed set of numbers for each worker, summed when they are read.

Every worker has a row of one shared table, which it writes to without a lock or a call: a scrape of
any worker shows all of them. A worker that replaces a dead one continues in its row.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

STATUSES = (200, 400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 500, 503)
OTHER = "other"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
PREFIX = "floodline_serve_"


class Family(NamedTuple):
    """One metric: what its label is called, and how workers are joined."""

    name: str
    type: str
    says: str
    label: str = ""
    join: str = "sum"

    @property
    def full_name(self) -> str:
        """The name in a scrape."""
        return PREFIX + self.name


REQUESTS = Family("requests_total", "counter", "Requests by route and status.", "route,status")
SECONDS = Family("request_seconds", "histogram", "Time to answer a request.", "route")

PLAIN = (
    Family("in_flight", "gauge", "Requests in progress."),
    Family("buffered_bytes", "gauge", "Bytes of request bodies in memory."),
    Family("event_readers", "gauge", "Open event streams."),
    Family("resident_bytes", "gauge", "Resident memory of all workers."),
    Family("workers", "gauge", "Workers that serve."),
    Family("draining", "gauge", "Workers that are shutting down."),
    Family("store_up", "gauge", "1 if the store answers all workers.", join="min"),
    Family("errors_total", "counter", "Requests that failed because of a bug in the service."),
)
BY_TENANT = (
    Family("items_appended_total", "counter", "Items appended.", "tenant"),
    Family("items_repeated_total", "counter", "Items sent again by a repeated request.", "tenant"),
    Family("items_deleted_total", "counter", "Items deleted.", "tenant"),
    Family("conversations_created_total", "counter", "Conversations created.", "tenant"),
    Family("conversations_deleted_total", "counter", "Conversations deleted.", "tenant"),
    Family("sessions_live", "gauge", "Conversations in memory.", "tenant"),
    Family("sessions_held", "gauge", "Conversations in use.", "tenant"),
    Family("sessions_waiting", "gauge", "Requests waiting for a conversation.", "tenant"),
    Family("sessions_unsaved", "gauge", "Conversations that the store refused.", "tenant"),
    Family("sessions_limit", "gauge", "Most conversations allowed in memory.", "tenant"),
    Family("sessions_stored", "gauge", "Conversations in the store.", "tenant", "max"),
    Family("session_loads_total", "counter", "Conversations loaded from the store.", "tenant"),
    Family("session_saves_total", "counter", "Saves.", "tenant"),
    Family("session_save_errors_total", "counter", "Saves that failed.", "tenant"),
    Family("session_conflicts_total", "counter", "Saves that lost to another writer.", "tenant"),
)  # fmt: skip  # a table
FAMILIES = (REQUESTS, SECONDS, *PLAIN, *BY_TENANT)


class Board:
    """The table of figures; `row` is that of this worker."""

    def __init__(self, routes: Sequence[str], tenants: Sequence[str], workers: int = 1) -> None:
        self.routes, self.tenants, self.workers = tuple(routes), tuple(tenants), workers
        self._places: dict[tuple[str, ...], int] = {}
        for key in self._keys():
            self._places[key] = len(self._places)
        width = len(self._places)
        self._table = memoryview(mmap.mmap(-1, 8 * width * workers)).cast("d")
        self._rows = [self._table[width * n : width * (n + 1)] for n in range(workers)]
        self.row = self._rows[0]
        self._counted: dict[tuple[str, str], float] = {}

    def _keys(self) -> Iterator[tuple[str, ...]]:
        for route in self.routes:
            for status in (*STATUSES, OTHER):
                yield REQUESTS.name, route, str(status)
            for bucket in (*BUCKETS, "+Inf", "sum"):
                yield SECONDS.name, route, str(bucket)
        for family in PLAIN:
            yield (family.name,)
        for family in BY_TENANT:
            for tenant in self.tenants:
                yield family.name, tenant

    def take_row(self, number: int) -> None:
        """Write to this worker's row from now on; gauges of the one before are forgotten."""
        self.row = self._rows[number]
        self._counted = {}
        self.clear_gauges(number)

    def clear_gauges(self, number: int) -> None:
        """Forget what a worker that is gone had in memory."""
        for family in (*PLAIN, *BY_TENANT):
            if family.type == "gauge":
                for labels in [(tenant,) for tenant in self.tenants] if family.label else [()]:
                    self._rows[number][self._places[(family.name, *labels)]] = 0.0

    def add(self, name: str, tenant: str | None = None, by: float = 1.0) -> None:
        """Count something."""
        self.row[self._places[(name,) if tenant is None else (name, tenant)]] += by

    def set(self, name: str, value: float, tenant: str | None = None) -> None:
        """Note a gauge."""
        self.row[self._places[(name,) if tenant is None else (name, tenant)]] = value

    def count_up_to(self, name: str, tenant: str, total: float) -> None:
        """Add what a counter kept elsewhere has grown by since the last call."""
        before = self._counted.get((name, tenant), 0.0)
        if total > before:
            self.add(name, tenant, total - before)
        self._counted[name, tenant] = total

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answer and its time."""
        word = str(status) if status in STATUSES else OTHER
        self.row[self._places[REQUESTS.name, route, word]] += 1
        slot = bisect_left(BUCKETS, seconds)
        bucket = str(BUCKETS[slot]) if slot < len(BUCKETS) else "+Inf"
        self.row[self._places[SECONDS.name, route, bucket]] += 1
        self.row[self._places[SECONDS.name, route, "sum"]] += seconds

    def value(self, name: str, *labels: str) -> float:
        """Return one figure of all workers."""
        place = self._places[(name, *labels)]
        join = next(family.join for family in FAMILIES if family.name == name)
        found = [row[place] for row in self._rows]
        return sum(found) if join == "sum" else min(found) if join == "min" else max(found)

    def text(self) -> str:
        """Return one scrape in the Prometheus text format."""
        lines: list[str] = []
        for family in FAMILIES:
            samples = list(self._samples(family))
            if samples:
                name = family.full_name
                lines += [f"# HELP {name} {family.says}", f"# TYPE {name} {family.type}"]
                lines += [f"{PREFIX}{series} {value:.15g}" for series, value in samples]
        return "\n".join(lines) + "\n"

    def _samples(self, family: Family) -> Iterator[tuple[str, float]]:
        name = family.name
        if family is REQUESTS:
            for route in self.routes:
                for status in map(str, (*STATUSES, OTHER)):
                    if total := self.value(name, route, status):
                        yield f'{name}{{route="{route}",status="{status}"}}', total
        elif family is SECONDS:
            for route in self.routes:
                yield from self._histogram(name, route)
        elif not family.label:
            yield name, self.value(name)
        else:
            for tenant in self.tenants:
                yield f'{name}{{tenant="{tenant}"}}', self.value(name, tenant)

    def _histogram(self, name: str, route: str) -> Iterator[tuple[str, float]]:
        below = 0.0
        counts = [self.value(name, route, str(bucket)) for bucket in (*BUCKETS, "+Inf")]
        if not any(counts):
            return
        for bucket, count in zip((*BUCKETS, "+Inf"), counts, strict=True):
            below += count
            yield f'{name}_bucket{{route="{route}",le="{bucket}"}}', below
        yield f'{name}_sum{{route="{route}"}}', self.value(name, route, "sum")
        yield f'{name}_count{{route="{route}"}}', below
