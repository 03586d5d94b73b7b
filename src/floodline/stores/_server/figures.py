"""The figures of a store on a server, in the order in which both servers answer them."""

from __future__ import annotations

from collections.abc import Sequence

from floodline.stores._protocol import StoreStats


def stats_of(kind: str, figures: Sequence[int], file_bytes: int | None = None) -> StoreStats:
    """Return the figures by their names."""
    rows, row_bytes, leases, conflicts, quarantined, lost_conflicts, lost_unread = figures[:7]
    return StoreStats(
        kind=kind,
        rows=rows,
        row_bytes=row_bytes,
        leases=leases,
        conflicts=conflicts,
        quarantined=quarantined,
        conflicts_dropped=lost_conflicts,
        quarantine_dropped=lost_unread,
        file_bytes=file_bytes,
        log_rows=figures[7],
        log_bytes=figures[8],
    )
