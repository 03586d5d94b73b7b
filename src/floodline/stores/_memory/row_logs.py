"""The row logs of the store in memory."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from floodline.stores._rows.log import Append, LogStats, NewRow, Row, row_not_found
from floodline.stores._rows.plan import Change, is_over, plan_append

Key = tuple[str, str]
Place = tuple[int, str]  # strings compare like their UTF-8 bytes


class _Log:
    """Rows by key, and their places in order; `last` is the highest number there ever was."""

    __slots__ = ("bytes", "last", "places", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.places: list[Place] = []
        self.bytes, self.last = 0, -1

    def write(self, row: NewRow, at: float) -> None:
        old = self.rows.get(row.key)
        if old is not None:
            number = old.number
            self.bytes -= len(old.data)
        else:
            number = self.last + 1 if row.number is None else row.number
            self.last = max(self.last, number)
            bisect.insort(self.places, (number, row.key))
        self.rows[row.key] = Row(row.key, number, row.data, at)
        self.bytes += len(row.data)

    def remove(self, key: str) -> bool:
        row = self.rows.pop(key, None)
        if row is None:
            return False
        del self.places[bisect.bisect_left(self.places, (row.number, key))]
        self.bytes -= len(row.data)
        return True


class RowLogs:
    """The logs of all sessions; the caller holds the lock and checks fences."""

    __slots__ = ("_logs", "bytes", "rows")

    def __init__(self) -> None:
        self._logs: dict[Key, dict[str, _Log]] = {}
        self.rows = self.bytes = 0

    def plan(self, key: Key, appends: Sequence[Append]) -> list[tuple[Append, list[Change]]]:
        """Return what `append` shall write; raise if it must not."""
        logs = self._logs.get(key, {})

        def find(log: str, row: str) -> bytes | None:
            stored = logs[log].rows.get(row) if log in logs else None
            return None if stored is None else stored.data

        def measure(log: str) -> tuple[int, int]:
            return (len(logs[log].rows), logs[log].bytes) if log in logs else (0, 0)

        return plan_append(*key, appends, find=find, measure=measure)

    def append(self, key: Key, planned: list[tuple[Append, list[Change]]], at: float) -> int:
        """Write what was planned; return how many rows that were."""
        written = 0
        for one, changes in planned:
            if not changes:
                continue
            log = self._logs.setdefault(key, {}).setdefault(one.log, _Log())
            before = (len(log.rows), log.bytes)
            for change in changes:
                log.write(change.row, at)
            while one.when_full == "drop" and is_over(one, len(log.rows), log.bytes):
                log.remove(log.places[0][1])
            self.rows += len(log.rows) - before[0]
            self.bytes += log.bytes - before[1]
            written += len(changes)
        return written

    def get(self, key: Key, log: str, rows: Sequence[str]) -> dict[str, Row]:
        """See `RowStore.get_rows`."""
        stored = self._of(key, log).rows
        return {one: stored[one] for one in rows if one in stored}

    def page(
        self,
        key: Key,
        log: str,
        after: str | int | None,
        before: str | int | None,
        limit: int,
        newest_first: bool,
    ) -> list[Row]:
        """See `RowStore.rows`."""
        of = self._of(key, log)
        first, end = 0, len(of.places)
        if isinstance(after, int):
            first = bisect.bisect_left(of.places, (after + 1, ""))
        elif after is not None:
            first = bisect.bisect_right(of.places, self._place(key, log, of, after))
        if isinstance(before, int):
            end = bisect.bisect_left(of.places, (before, ""))
        elif before is not None:
            end = bisect.bisect_left(of.places, self._place(key, log, of, before))
        end = max(first, end)
        places = of.places[max(first, end - limit) : end] if newest_first else of.places[first:end]
        if newest_first:
            places.reverse()
        return [of.rows[one] for _, one in places[:limit]]

    def logs(self, key: Key, after: str, limit: int) -> list[LogStats]:
        """See `RowStore.logs`."""
        logs = self._logs.get(key, {})
        names = sorted(name for name, log in logs.items() if log.rows and name > after)
        return [LogStats(one, len(logs[one].rows), logs[one].bytes) for one in names[:limit]]

    def count(self, key: Key, log: str | None) -> int:
        """See `RowStore.count_rows`."""
        logs = self._logs.get(key, {})
        wanted = logs.values() if log is None else [logs[log]] if log in logs else []
        return sum(len(one.rows) for one in wanted)

    def delete(self, key: Key, log: str | None, rows: Sequence[str] | None) -> int:
        """See `RowStore.delete_rows`."""
        gone = 0
        for name, one in self._logs.get(key, {}).items():
            if log not in (None, name):
                continue
            before = one.bytes
            gone += sum([one.remove(row) for row in (list(one.rows) if rows is None else rows)])
            self.bytes += one.bytes - before
        self.rows -= gone
        return gone

    def forget(self, key: Key) -> None:
        """Drop the logs of a session, with the numbers they had."""
        for log in self._logs.pop(key, {}).values():
            self.rows -= len(log.rows)
            self.bytes -= log.bytes

    def _of(self, key: Key, log: str) -> _Log:
        return self._logs.get(key, {}).get(log) or _Log()

    def _place(self, key: Key, log: str, of: _Log, row: str) -> Place:
        stored = of.rows.get(row)
        if stored is None:
            raise row_not_found(*key, log, row)
        return stored.number, row
