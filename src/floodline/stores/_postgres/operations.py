"""The operations of a store as statements, and what their rows mean."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from floodline.errors import SessionConflict
from floodline.stores._calls import Kept
from floodline.stores._postgres.columns import together
from floodline.stores._postgres.row_operations import (
    APPENDS,
    ROW_STATEMENTS,
    ROWS_WHY,
    RowOperations,
    columns,
    refused_rows,
)
from floodline.stores._protocol import Grant, Held, Record
from floodline.stores._refusals import LOST, STALE, conflict_message, why_refused
from floodline.stores._rows.log import Append, pack_rows
from floodline.stores._server.figures import stats_of
from floodline.stores._server.heartbeats import Beat, Fences
from floodline.stores._server.link import Operation
from floodline.stores._server.operations import ServerOperations
from floodline.stores._server.times import Judgement, Times

_STATEMENTS = {
    "acquire": """SELECT a.* FROM "{s}".acquire(%b::float8, %b::bytea, %b::bytea, %b::bytea,
        %b::float8, %b::bigint, %b::bytea, %b::boolean) AS a""",
    "renew": """SELECT a.* FROM "{s}".renew(%b::float8, %b::bytea, %b::bytea, %b::float8,
        %b::bigint, %b::bytea[], %b::bigint[], %b::bytea[], %b::bigint[]) AS a""",
    "wanted": """UPDATE "{s}".leases SET wanted = false
        WHERE wanted AND name = %b::bytea AND owner = %b::bytea RETURNING id""",
    "release": """SELECT a.* FROM "{s}".release(%b::float8, %b::float8, %b::bytea, %b::bytea,
        %b::bigint) AS a""",
    "save": """SELECT o_version, o_ours, o_stored FROM "{s}".save("{s}".look(), %b::float8,
        %b::float8, %b::float8, %b::bytea, %b::text, %b::bytea, %b::bytea, %b::bytea, %b::bigint,
        %b::bigint, %b::bytea, %b::boolean, NULL, NULL, NULL)""",
    "save_rows": f"""SELECT o_version, o_ours, o_stored, (o_refused).why, (o_refused).log,
        (o_refused).key, (o_refused).rows, (o_refused).bytes FROM "{{s}}".save("{{s}}".look(),
        %b::float8, %b::float8, %b::float8, %b::bytea, %b::text, %b::bytea, %b::bytea, %b::bytea,
        %b::bigint, %b::bigint, %b::bytea, %b::boolean, %b::bytea, %b::bytea, {APPENDS})""",
    "written": """SELECT version FROM "{s}".sessions
        WHERE name = %b::bytea AND id = %b::bytea AND write_id = %b::bytea""",
    "load": """SELECT version, envelope FROM "{s}".sessions
        WHERE name = %b::bytea AND id = %b::bytea""",
    "delete": """SELECT "{s}".delete(%b::bytea, %b::bytea, %b::bigint)""",
    "quarantine": """SELECT "{s}".keep('quarantine', %b::bytea, %b::bytea, %b::float8, %b::bytea,
        %b::bytea, %b::bytea)""",
    "date": """SELECT "{s}".now_s(), noted FROM "{s}".meta""",
    "purge": """SELECT * FROM "{s}".purge(%b::float8, %b::float8, %b::float8, %b::bytea,
        %b::float8, %b::bigint, %b::text)""",
    "ids": """SELECT id FROM "{s}".sessions WHERE name = %b::bytea AND id > %b::bytea
        ORDER BY id LIMIT %b::bigint""",
    "names": """SELECT name FROM "{s}".totals WHERE name > %b::bytea
        GROUP BY name HAVING sum(count) > 0 ORDER BY name LIMIT %b::bigint""",
    "count": """SELECT coalesce(sum(count), 0)::bigint FROM "{s}".totals WHERE name = %b::bytea""",
    "stats": """SELECT
        (SELECT coalesce(sum(count), 0)::bigint FROM "{s}".totals),
        (SELECT coalesce(sum(bytes), 0)::bigint FROM "{s}".totals),
        (SELECT count(*) FROM "{s}".leases),
        (SELECT count(*) FROM "{s}".kept WHERE kind = 'conflicts'),
        (SELECT count(*) FROM "{s}".kept WHERE kind = 'quarantine'),
        (SELECT coalesce(sum(count), 0)::bigint FROM "{s}".dropped WHERE kind = 'conflicts'),
        (SELECT coalesce(sum(count), 0)::bigint FROM "{s}".dropped WHERE kind = 'quarantine'),
        (SELECT coalesce(sum(log_rows), 0)::bigint FROM "{s}".totals),
        (SELECT coalesce(sum(log_bytes), 0)::bigint FROM "{s}".totals),
        pg_total_relation_size('"{s}".sessions') + pg_total_relation_size('"{s}".log_rows')""",
    "kept": """SELECT name, id, at, why, envelope FROM "{s}".kept
        WHERE kind = %b::text AND (%b::bytea IS NULL OR name = %b::bytea)
        ORDER BY n DESC LIMIT %b::bigint""",
}
_LOST = LOST.encode()
_OF_LEASES = ("acquire", "renew", "release")
_RELAX = ", set_config('synchronous_commit', 'off', true)"
_TOGETHER = {
    "acquire": f"""SELECT a.* FROM "{{s}}".acquire_all(%b::float8, %b::bytea, %b::bytea[],
        %b::bytea[], %b::float8[], %b::bigint[], %b::bytea[], %b::boolean[]) AS a{_RELAX}""",
    "save": """SELECT a.* FROM "{s}".save_all(%b::float8, %b::float8, %b::float8, %b::bytea,
        %b::text, %b::bytea, %b::bytea[], %b::bytea[], %b::bigint[], %b::bigint[], %b::bytea[],
        %b::boolean[]) AS a""",
}


class Operations(ServerOperations, RowOperations):
    """The statements that a call runs."""

    def __init__(self, schema: str, times: Times, hears: Callable[[str], bool]) -> None:
        super().__init__(times, hears)
        statements = {**_STATEMENTS, **ROW_STATEMENTS}
        self._sql = {what: text.format(s=schema) for what, text in statements.items()}
        self._relaxed = {what: self._sql[what] + _RELAX for what in _OF_LEASES}
        self._together = {what: together(text.format(s=schema)) for what, text in _TOGETHER.items()}

    def _acquire(
        self, name: str, id: str, owner: str, lease: float, known: int | None, dead: str | None
    ) -> Operation:
        key, gone = (name.encode(), id.encode()), None if dead is None else dead.encode()
        terms = (*key, owner.encode(), float(lease), known, gone, self._hears(owner))
        said = yield self._request("acquire", self._times.read().now, *terms, key=key)
        ((fence, version, envelope, holder, seconds),) = said
        if holder is not None:
            return Held(holder.decode(), seconds)
        return Grant(fence, version, envelope)

    def _beat(self, name: str, owner: str, lease: float, beat: Beat) -> Operation:
        new, gone = _columns(beat.new), _columns(beat.gone)
        key = (name.encode(), min([*new[0][:1], *gone[0][:1]], default=b""))
        terms = (name.encode(), owner.encode(), float(lease), beat.number, *new, *gone)
        said = yield self._request("renew", self._times.read().now, *terms, key=key)
        ((stopped, lost),) = said
        return stopped, {one.decode() for one in lost}

    def wanted(self, name: str, owner: str) -> Operation:
        found = yield self._request("wanted", name.encode(), owner.encode())
        return {one.decode() for (one,) in found}

    def release(self, name: str, id: str, fence: int) -> Operation:
        key, moment = (name.encode(), id.encode()), self._times.read()
        yield self._request("release", moment.now, moment.stamp, *key, fence, key=key)
        self.ties.ended(name, id, fence)

    def save(
        self,
        name: str,
        id: str,
        envelope: bytes,
        fence: int,
        version: int,
        write_id: str,
        release: bool,
        rows: Sequence[Append],
    ) -> Operation:
        key, moment = (name.encode(), id.encode()), self._times.read()
        terms = (fence, version, write_id.encode(), release)
        written: tuple[Any, ...] = (*moment, _LOST, STALE, *key, bytes(envelope), *terms)
        if rows:
            written = (*written, ROWS_WHY, pack_rows(rows), *columns(rows))
        what = "save_rows" if rows else "save"
        ((new, ours, stored, *refused),) = yield self._request(what, *written, key=key)
        if refused and refused[0]:
            raise refused_rows(name, id, *refused)
        if release:
            self.ties.ended(name, id, fence)
        if new is None:
            raise SessionConflict(conflict_message(name, id, why_refused(ours, version, stored)))
        return new

    def written(self, name: str, id: str, write_id: str) -> Operation:
        terms = (name.encode(), id.encode(), write_id.encode())
        rows = yield self._request("written", *terms)
        return rows[0][0] if rows else None

    def load(self, name: str, id: str) -> Operation:
        rows = yield self._request("load", name.encode(), id.encode())
        return Record(*rows[0]) if rows else None

    def delete(self, name: str, id: str, fence: int) -> Operation:
        key = (name.encode(), id.encode())
        ((there,),) = yield self._request("delete", *key, fence, key=key)
        self.ties.ended(name, id, fence)
        if there is None:
            raise SessionConflict(conflict_message(name, id, LOST))
        return there

    def quarantine(self, name: str, id: str, envelope: bytes, why: str) -> Operation:
        key, envelope = (name.encode(), id.encode()), bytes(envelope)
        date, digest = self._times.read().date, hashlib.sha256(envelope).digest()
        terms = (date, why.encode(errors="replace"), digest, envelope)
        yield self._request("quarantine", *key, *terms, key=key)

    def _date(self) -> Operation:
        (said,) = yield self._request("date")
        return said

    def _purge(self, name: str, unused: float, limit: int, by: Judgement) -> Operation:
        terms = (name.encode(), float(unused), limit, self._times.note())
        gone = yield self._request("purge", *by, *terms)
        return [one.decode() for (one,) in gone]

    def ids(self, name: str, after: str, limit: int) -> Operation:
        rows = yield self._request("ids", name.encode(), after.encode(), limit)
        return [one.decode() for (one,) in rows]

    def names(self, after: str, limit: int) -> Operation:
        rows = yield self._request("names", after.encode(), limit)
        return [one.decode() for (one,) in rows]

    def count(self, name: str) -> Operation:
        ((rows,),) = yield self._request("count", name.encode())
        return rows

    def stats(self) -> Operation:
        (figures,) = yield self._request("stats")
        return stats_of("postgres", figures, figures[9])

    def _kept(self, kind: str, name: str | None, limit: int) -> Operation:
        wanted = None if name is None else name.encode()
        rows = yield self._request("kept", kind, wanted, wanted, limit)
        return [
            Kept(of.decode(), one.decode(), at, why.decode(), envelope)
            for of, one, at, why, envelope in rows
        ]


def _columns(fences: Fences) -> tuple[list[bytes], list[int]]:
    by_id = sorted((one.encode(), fence) for one, fence in fences.items())
    return [one for one, _ in by_id], [fence for _, fence in by_id]
