"""The operations of a store as requests to the scripts, and what their replies mean."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from floodline.errors import SessionConflict
from floodline.stores._calls import Kept
from floodline.stores._owner import owner_is_dead
from floodline.stores._protocol import Grant, Held, Record
from floodline.stores._redis.batches import DONE, HELD, ROWS_REFUSED
from floodline.stores._redis.requests import (
    LOST,
    MICROS,
    ROWS_WHY,
    STALE,
    Request,
    flat,
    micros,
    request,
)
from floodline.stores._redis.row_operations import RowOperations, refused_rows
from floodline.stores._refusals import conflict_message, why_refused
from floodline.stores._rows.log import Append
from floodline.stores._server.figures import stats_of
from floodline.stores._server.heartbeats import Beat, Heart
from floodline.stores._server.link import Operation
from floodline.stores._server.times import Moment, Times
from floodline.stores._writer import Call

_RENEWED = 500  # leases that one script extends, so that it does not hold up the server


class Operations(Heart, RowOperations):
    """Shared by the connections of a store."""

    def __init__(
        self,
        times: Times,
        hears: Callable[[str], bool],
        *,
        confirmed: bool,
        kind: str = "redis",
    ) -> None:
        super().__init__()
        self._hears = hears
        self._times, self._kind = times, kind
        self._confirmed = confirmed
        self._written = "confirm" if confirmed else "written"
        self._born: bytes | None = None
        self._forgotten = False

    def greeting(self, run_id: str) -> Request:
        """Return the first request of a connection, to a server that was started as `run_id`."""
        return request("open", self._times.read(), run_id, secrets.token_hex(8))

    def meet(self, born: bytes) -> None:
        """Learn whether a server still has what it had when we last met.

        One that lost everything begins its versions anew, and none that a caller knows means
        what it did.
        """
        self._forgotten = self._forgotten or self._born not in (None, born)
        self._born = born
        self.ties.renumber()

    def operate(self, call: Call) -> Operation:
        """Return the operation of a call, about to begin."""
        operation: Operation = getattr(self, call.what)(*call.args)
        return operation

    def acquire(self, name: str, id: str, owner: str, lease: float, known: int | None) -> Operation:
        dead, trusted = "", "" if known is None or self._forgotten else known
        hears = int(self._hears(owner))
        while True:
            terms = (name, id, owner, round(lease * MICROS), trusted, dead, hears)
            code, number, version, blob = yield request("acquire", self._times.read(), *terms)
            if code != HELD:
                return Grant(number, version, blob)
            holder = blob.decode()
            if holder == dead or not owner_is_dead(holder):
                return Held(holder, number / MICROS)
            dead = holder

    def _beat(self, name: str, owner: str, lease: float, beat: Beat) -> Operation:
        stopped = False
        lost: set[str] = set()
        pairs = [*beat.new.items(), *beat.gone.items()]
        for first in range(0, max(1, len(pairs)), _RENEWED):
            some = pairs[first : first + _RENEWED]
            tied, last = len(beat.new) - first, first + _RENEWED >= len(pairs)
            terms = (name, owner, round(lease * MICROS), beat.number, int(last), max(0, tied))
            flat_pairs = [term for pair in some for term in pair]
            said = yield request("renew", self._times.read(), *terms, *flat_pairs)
            stopped = stopped or bool(said[0])
            lost.update(one.decode() for one in said[1:])
        return stopped, lost

    def wanted(self, name: str, owner: str) -> Operation:
        found = yield request("wanted", self._times.read(), name, owner)
        return {one.decode() for one in found}

    def release(self, name: str, id: str, fence: int) -> Operation:
        yield request("release", self._times.read(), name, id, fence)
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
        moment = self._times.read()
        head = (micros(moment.date), int(self._confirmed), LOST, STALE, ROWS_WHY)
        terms = (name, id, fence, version, write_id, int(release), envelope)
        what, with_rows = ("save_rows", flat(rows)) if rows else ("save", ())
        code, number, stored, blob = yield request(what, moment, *terms, *with_rows, head=head)
        if code == ROWS_REFUSED:
            raise refused_rows(name, id, blob)
        if release:
            self.ties.ended(name, id, fence)
        if code == DONE:
            return number
        raise SessionConflict(
            conflict_message(name, id, why_refused(bool(number), version, stored))
        )

    def written(self, name: str, id: str, write_id: str) -> Operation:
        version = yield request(self._written, Moment(), name, id, write_id)
        return None if version is None else int(version)

    def load(self, name: str, id: str) -> Operation:
        version, envelope = yield request("load", Moment(), name, id)
        return None if version is None else Record(int(version), envelope)

    def delete(self, name: str, id: str, fence: int) -> Operation:
        found = yield request("delete", self._times.read(), name, id, fence)
        self.ties.ended(name, id, fence)
        if found < 0:
            raise SessionConflict(conflict_message(name, id, LOST))
        return bool(found)

    def quarantine(self, name: str, id: str, envelope: bytes, why: str) -> Operation:
        moment = self._times.read()
        yield request("quarantine", moment, name, id, micros(moment.date), why, envelope)

    def purge(self, name: str, unused: float, limit: int) -> Operation:
        date: float | None = None
        note: bytes | None = None
        if self._times.are_the_servers:
            said, note = yield request("date", Moment())
            date = int(said) / MICROS
        now, stamp, judged = self._times.judge(date, note)
        terms = (name, round(unused * MICROS), limit, micros(judged), self._times.note() or "")
        gone = yield request("purge", Moment(now, stamp), *terms)
        return [one.decode() for one in gone]

    def ids(self, name: str, after: str, limit: int) -> Operation:
        found = yield request("ids", Moment(), name, after, limit)
        return [one.decode() for one in found]

    def names(self, after: str, limit: int) -> Operation:
        found = yield request("names", Moment(), after, limit)
        return [one.decode() for one in found]

    def count(self, name: str) -> Operation:
        rows = yield request("count", Moment(), name)
        return int(rows)

    def stats(self) -> Operation:
        figures = [int(figure) for figure in (yield request("stats", Moment()))]
        return stats_of(self._kind, figures)

    def conflicts(self, name: str | None, limit: int) -> Operation:
        return (yield from self._kept("conflicts", name, limit))

    def quarantined(self, name: str | None, limit: int) -> Operation:
        return (yield from self._kept("quarantine", name, limit))

    def _kept(self, kind: str, name: str | None, limit: int) -> Operation:
        wanted = "*" if name is None else f"={name}"
        found = yield request("kept", Moment(), kind, wanted, limit)
        return [
            Kept(of.decode(), one.decode(), int(at) / MICROS, why.decode(), envelope)
            for of, one, at, why, envelope in found
        ]
