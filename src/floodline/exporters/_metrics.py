"""The one table: which figure of `stats()` becomes which metric.

Both exporters work it off, and docs/exporters.md shows it; a figure that is not in it is not told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GROUP = ("kind", "name")


@dataclass(slots=True, frozen=True)
class Metric:
    """`field` of the records of kind `of` (of all, if empty), under the name of the exporter.

    A field that is a mapping has its keys in one more label. One without a field is the
    exporter's own figure.
    """

    stem: str
    type: Literal["gauge", "counter"]
    field: str
    help: str
    of: str = ""
    labels: tuple[str, ...] = GROUP
    unit: str = "1"

    @property
    def prometheus(self) -> str:
        """The name in Prometheus."""
        return f"floodline_{self.stem}" + ("_total" if self.type == "counter" else "")

    @property
    def otel(self) -> str:
        """The name in OpenTelemetry."""
        return f"floodline.{self.stem}"


def _gauge(stem: str, help: str, of: str = "", field: str = "", unit: str = "1") -> Metric:
    return Metric(stem, "gauge", field or stem, help, of, unit=unit)


def _counter(stem: str, help: str, of: str = "", field: str = "", unit: str = "1") -> Metric:
    return Metric(stem, "counter", field or stem, help, of, unit=unit)


HOLDERS = Metric("holders", "gauge", "", "Holders of this kind and name, summed in each figure.")
STATS_ERRORS = Metric(
    "stats_errors", "counter", "", "Holders passed over because their stats() raised.", labels=()
)

METRICS: tuple[Metric, ...] = (
    _gauge("items", "Items in memory: live sessions, entries, messages that wait."),
    _gauge("max_items", "The bound on items; absent if there is none."),
    _gauge("bytes", "Bytes in memory, as weighed; absent if nothing weighs.", unit="By"),
    _gauge("max_bytes", "The bound on bytes; absent if there is none.", unit="By"),
    Metric("left", "counter", "left", "Items that left memory, by reason.", "", (*GROUP, "reason")),
    _counter("hook_errors", "Errors of hooks, finalizers and the like, which stopped nothing."),
    # sessions
    _gauge("held", "Live sessions in use now.", "sessions"),
    _gauge("waiting", "Callers that wait for a session or for room.", "sessions"),
    _gauge("parking", "Sessions that are being saved and finalized.", "sessions"),
    _gauge("parked", "Stored sessions that are not in memory, as of the last upkeep.", "sessions"),
    _gauge("unsaved", "Live sessions that the store refused; they are tried again.", "sessions"),
    _gauge("leases", "Leases held in the store.", "sessions"),
    _gauge("tombstones", "Closed ids that are still refused.", "sessions"),
    _gauge("store_rows", "Stored sessions of this name, as of the last upkeep.", "sessions"),
    _gauge("store_file_bytes", "The store's file, as of the last upkeep.", "sessions", unit="By"),
    _counter("opened", "Sessions brought into memory.", "sessions"),
    _counter("created", "Sessions made by the factory.", "sessions"),
    _counter("loaded", "Sessions loaded from the store.", "sessions"),
    _counter("saved", "Saves that were written.", "sessions"),
    _counter("unchanged", "Saves that were not needed: the bytes were the same.", "sessions"),
    _counter("save_errors", "Saves that failed.", "sessions"),
    _counter("conflicts", "Saves refused because somebody else had written.", "sessions"),
    _counter("quarantined", "Stored records that could not be read.", "sessions"),
    _counter("leases_lost", "Leases lost during a use.", "sessions"),
    _counter("purged", "Stored sessions deleted by retention.", "sessions"),
    _counter("grown", "Sessions opened above the bound (when_full='grow').", "sessions"),
    _counter("stuck_holds", "Holds and finalizers reported as stuck.", "sessions", "stuck"),
    _counter("retained", "Sessions still referenced long after they left.", "sessions"),
    _counter("unchecked", "Sessions of which nobody can tell whether they were freed.", "sessions"),
    _counter("finalizers_not_run", "Async finalizers that found no loop at exit.", "sessions"),
    # scopes
    _gauge("scope_maps", "Maps of a scope.", "scope", "maps"),
    _gauge("scope_sessions", "Ids with at least one value in a scope.", "scope", "sessions"),
    _gauge("scope_strays", "Ids in a scope that no session has opened.", "scope", "strays"),
    # maps
    _counter("hits", "Reads that found their key; approximate under threads.", "map"),
    _counter("misses", "Reads that did not; approximate under threads.", "map"),
    _gauge("pinned", "Entries that are pinned.", "map"),
    _gauge("leftovers", "Evicted values that somebody still holds (weak=True).", "map"),
    _gauge("creating", "Values that are being made.", "map"),
    # logs
    _counter("added", "Items ever added.", "log"),
    # batches
    _gauge("batch_retain", "Items kept at most while the sink fails.", "batch", "retain"),
    _counter("batch_flushed", "Items that the sink has taken.", "batch", "flushed"),
    _counter("batch_flushes", "Calls of the sink that succeeded.", "batch", "flushes"),
    _counter("batch_failed", "Calls of the sink that failed; nothing was lost.", "batch", "failed"),
    # memory budgets
    _gauge("budget_target_bytes", "Where shedding ends.", "budget", "target", "By"),
    _counter("budget_checks", "Times that memory was looked at.", "budget", "checks"),
    _counter("budget_episodes", "Times that memory passed the line.", "budget", "episodes"),
    _counter("budget_rounds", "Rounds of shedding.", "budget", "rounds"),
    _counter("budget_shed", "Items that holders were made to shed.", "budget", "shed"),
    _counter("budget_exhausted", "Times that nothing more could go.", "budget", "exhausted"),
    _counter("budget_errors", "Holders that failed to shed.", "budget", "errors"),
    # forced collections
    _counter("gc_collections", "Forced collections.", "gc", "collections"),
    _counter("gc_objects", "Unreachable objects that they found.", "gc", "objects"),
    _counter("gc_reclaimed_bytes", "Bytes that they gave back.", "gc", "reclaimed", "By"),
    _counter("gc_pause_seconds", "How long they took.", "gc", "pause", "s"),
    _gauge("gc_longest_pause_seconds", "The longest of them.", "gc", "longest_pause", "s"),
    _counter("gc_trims", "Times that malloc was trimmed.", "gc", "trims"),
    _gauge("gc_paused", "1 while automatic collection is paused.", "gc", "paused"),
    # memory trackers
    _gauge("tracker_stages", "Names of stages.", "tracker", "stages"),
    _gauge("tracker_open", "Stages under way.", "tracker", "open"),
    _gauge("tracker_peak_bytes", "The most resident memory seen.", "tracker", "peak", "By"),
    _gauge("tracker_growth_bytes", "The last size less the first.", "tracker", "growth", "By"),
    _counter("tracker_samples", "Samples taken.", "tracker", "samples"),
    # the exporters themselves
    HOLDERS,
    STATS_ERRORS,
)
