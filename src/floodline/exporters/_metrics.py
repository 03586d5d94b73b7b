"""The table that maps the figures of `stats()` to metrics.

Both exporters use it, and docs/exporters.md shows it; a figure that is not in it is not exported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GROUP = ("kind", "name")


@dataclass(slots=True, frozen=True)
class Metric:
    """`field` of the records of kind `of` (all, if empty), under the exporter's name for it.

    The keys of a mapping go into one more label. A metric without a field is the exporter's own
    figure.
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
    "stats_errors", "counter", "", "Holders skipped because their stats() raised.", labels=()
)

METRICS: tuple[Metric, ...] = (
    _gauge("items", "Items in memory: live sessions, entries, waiting messages."),
    _gauge("max_items", "The bound on items; absent if there is none."),
    _gauge("bytes", "Bytes in memory, as weighed; absent if nothing is weighed.", unit="By"),
    _gauge("max_bytes", "The bound on bytes; absent if there is none.", unit="By"),
    Metric("left", "counter", "left", "Items that left memory, by reason.", "", (*GROUP, "reason")),
    _counter("hook_errors", "Errors in hooks, finalizers and the like; none is fatal."),
    # sessions
    _gauge("held", "Live sessions in use now.", "sessions"),
    _gauge("waiting", "Callers waiting for a session or for room.", "sessions"),
    _gauge("parking", "Sessions being saved and finalized.", "sessions"),
    _gauge("parked", "Stored sessions not in memory, as of the last upkeep.", "sessions"),
    _gauge("unsaved", "Live sessions that the store refused; they will be retried.", "sessions"),
    _gauge("leases", "Leases held in the store.", "sessions"),
    _gauge("tombstones", "Closed ids that are still refused.", "sessions"),
    _gauge("store_rows", "Stored sessions of this name, as of the last upkeep.", "sessions"),
    _gauge(
        "store_file_bytes",
        "Size of the store's file, as of the last upkeep.",
        "sessions",
        unit="By",
    ),
    _counter("opened", "Sessions brought into memory.", "sessions"),
    _counter("created", "Sessions created by the factory.", "sessions"),
    _counter("loaded", "Sessions loaded from the store.", "sessions"),
    _counter("saved", "Saves that were written.", "sessions"),
    _counter("unchanged", "Saves skipped because the bytes were the same.", "sessions"),
    _counter("save_errors", "Saves that failed.", "sessions"),
    _counter("conflicts", "Saves refused because another writer came first.", "sessions"),
    _counter("quarantined", "Stored records that could not be read.", "sessions"),
    _counter("leases_lost", "Leases lost during a use.", "sessions"),
    _counter("purged", "Stored sessions deleted by retention.", "sessions"),
    _counter("grown", "Sessions opened above the bound (when_full='grow').", "sessions"),
    _counter("stuck_holds", "Holds and finalizers reported as stuck.", "sessions", "stuck"),
    _counter("retained", "Sessions still referenced long after they left.", "sessions"),
    _counter("unchecked", "Sessions whose release could not be checked.", "sessions"),
    _counter("finalizers_not_run", "Async finalizers that found no loop at exit.", "sessions"),
    # scopes
    _gauge("scope_maps", "Maps of a scope.", "scope", "maps"),
    _gauge("scope_sessions", "Ids with at least one value in a scope.", "scope", "sessions"),
    _gauge("scope_strays", "Ids in a scope that no session has opened.", "scope", "strays"),
    # maps
    _counter("hits", "Reads that found their key; approximate under threads.", "map"),
    _counter("misses", "Reads that did not; approximate under threads.", "map"),
    _gauge("pinned", "Entries that are pinned.", "map"),
    _gauge("leftovers", "Evicted values that are still referenced (weak=True).", "map"),
    _gauge("creating", "Values being created.", "map"),
    # logs
    _counter("added", "Items ever added.", "log"),
    # batches
    _gauge("batch_retain", "Most items kept while the sink fails.", "batch", "retain"),
    _counter("batch_flushed", "Items accepted by the sink.", "batch", "flushed"),
    _counter("batch_flushes", "Sink calls that succeeded.", "batch", "flushes"),
    _counter("batch_failed", "Sink calls that failed; nothing was lost.", "batch", "failed"),
    # memory budgets
    _gauge("budget_target_bytes", "Level at which shedding stops.", "budget", "target", "By"),
    _counter("budget_checks", "Memory checks.", "budget", "checks"),
    _counter("budget_episodes", "Times memory crossed the line.", "budget", "episodes"),
    _counter("budget_rounds", "Rounds of shedding.", "budget", "rounds"),
    _counter("budget_shed", "Items that holders shed.", "budget", "shed"),
    _counter("budget_exhausted", "Times nothing more could be shed.", "budget", "exhausted"),
    _counter("budget_errors", "Holders that failed to shed.", "budget", "errors"),
    # forced collections
    _counter("gc_collections", "Forced collections.", "gc", "collections"),
    _counter("gc_objects", "Unreachable objects found by forced collections.", "gc", "objects"),
    _counter("gc_reclaimed_bytes", "Bytes freed by forced collections.", "gc", "reclaimed", "By"),
    _counter("gc_pause_seconds", "Time spent in forced collections.", "gc", "pause", "s"),
    _gauge(
        "gc_longest_pause_seconds", "The longest forced collection.", "gc", "longest_pause", "s"
    ),
    _counter("gc_trims", "Times malloc was trimmed.", "gc", "trims"),
    _gauge("gc_paused", "1 while automatic collection is paused.", "gc", "paused"),
    # memory trackers
    _gauge("tracker_stages", "Stage names.", "tracker", "stages"),
    _gauge("tracker_open", "Stages in progress.", "tracker", "open"),
    _gauge("tracker_peak_bytes", "Peak resident memory seen.", "tracker", "peak", "By"),
    _gauge("tracker_growth_bytes", "The last size minus the first.", "tracker", "growth", "By"),
    _counter("tracker_samples", "Samples taken.", "tracker", "samples"),
    # the exporters themselves
    HOLDERS,
    STATS_ERRORS,
)
