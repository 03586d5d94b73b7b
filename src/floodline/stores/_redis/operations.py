"""The operations of a store as requests to the scripts, and what their replies mean."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from floodline.errors import SessionConflict
from floodline.stores._calls import Kept
from floodline.stores._protocol import Grant, Held, Record
from floodline.stores._redis.batches import DONE, HELD, ROWS_REFUSED
from floodline.stores._redis.requests import (
    MICROS,
    ROWS_WHY,
    Request,
    flat,
    micros,
    one_word,
    request,
)
from floodline.stores._redis.row_operations import RowOperations, refused_rows
from floodline.stores._refusals import LOST, STALE, conflict_message, why_refused
from floodline.stores._rows.log import Append
from floodline.stores._server.figures import stats_of
from floodline.stores._server.heartbeats import Beat
from floodline.stores._server.link import Operation
from floodline.stores._server.operations import ServerOperations
from floodline.stores._server.times import Judgement, Moment, Times

_RENEWED = 500  # leases that one script extends, so that it does not hold up the server


class Operations(ServerOperations, RowOperations):
    """The scripts that a call runs."""

    def __init__(
        self,
        times: Times,
        hears: Callable[[str], bool],
        *,
        confirmed: bool,
        kind: str = "redis",
    ) -> None:
        super().__init__(times, hears)
        self._kind, self._confirmed = kind, confirmed
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

    def _acquire(
        self, name: str, id: str, owner: str, lease: float, known: int | None, dead: str | None
    ) -> Operation:
        trusted = "" if known is None or self._forgotten else known
        terms = (id, owner, trusted, dead or "", int(self._hears(owner)))
        head = (name, round(lease * MICROS))
        code, number, version, blob = yield request(
            "acquire", self._times.read(), *terms, head=head
        )
        if code == HELD:
            return Held(blob.decode(), number / MICROS)
        return Grant(number, version, blob)

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
        head = (micros(moment.date), int(self._confirmed), LOST, STALE, ROWS_WHY, name)
        terms = (id, fence, version, one_word(write_id), int(release), envelope)
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
        version = yield request(self._written, Moment(), name, id, one_word(write_id))
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

    def _date(self) -> Operation:
        said, note = yield request("date", Moment())
        return int(said) / MICROS, note

    def _purge(self, name: str, unused: float, limit: int, by: Judgement) -> Operation:
        terms = (name, round(unused * MICROS), limit, micros(by.judged), self._times.note() or "")
        gone = yield request("purge", Moment(by.now, by.stamp), *terms)
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

    def _kept(self, kind: str, name: str | None, limit: int) -> Operation:
        wanted = "*" if name is None else f"={name}"
        found = yield request("kept", Moment(), kind, wanted, limit)
        return [
            Kept(of.decode(), one.decode(), int(at) / MICROS, why.decode(), envelope)
            for of, one, at, why, envelope in found
        ]
