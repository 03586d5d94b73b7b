"""What an append will change, decided before anything is written: a refusal leaves no trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from floodline.stores._rows.log import Append, NewRow, log_full, row_conflict


class Change(NamedTuple):
    """A row to write; `replaces` if its key is taken."""

    row: NewRow
    replaces: bool


def plan_append(
    name: str,
    id: str,
    appends: Sequence[Append],
    *,
    find: Callable[[str, str], bytes | None],
    measure: Callable[[str], tuple[int, int]],
) -> list[tuple[Append, list[Change]]]:
    """Return what to write, in order; raise `RowConflict` or `LogFull` if it must not be.

    `find(log, key)` returns the stored bytes, `measure(log)` the rows and bytes of a log.
    """
    staged: dict[tuple[str, str], bytes] = {}
    sizes: dict[str, tuple[int, int]] = {}
    planned = []
    for one in appends:
        rows, size = sizes[one.log] if one.log in sizes else measure(one.log)
        changes: list[Change] = []
        grown = 0
        for row in one.rows:
            place = (one.log, row.key)
            old = staged[place] if place in staged else find(*place)
            if old is not None and (old == row.data or one.when_taken == "keep"):
                continue
            if old is not None and one.when_taken == "refuse":
                raise row_conflict(name, id, one.log, row.key)
            staged[place] = row.data
            changes.append(Change(row, old is not None))
            rows += old is None
            grown += len(row.data) - len(old or b"")
        size += grown
        if changes and one.when_full == "refuse" and is_over(one, rows, size):
            raise log_full(name, id, one.log, rows, size)
        sizes[one.log] = (rows, size)
        planned.append((one, changes))
    return planned


def is_over(one: Append, rows: int, size: int) -> bool:
    """Return True if a log of this size is above the cap."""
    return (one.max_rows is not None and rows > one.max_rows) or (
        one.max_bytes is not None and size > one.max_bytes
    )
