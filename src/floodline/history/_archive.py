"""The way out: a message is archived before it is dropped.

With `archive="session"` the messages wait here, are saved with the conversation, and become rows of
its session in the transaction of that save. In a session with a store the messages for any other
archive wait here too, until just before that save: appending does no input or output.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal, Protocol, runtime_checkable

import msgspec

from floodline import telemetry
from floodline.errors import ConfigError
from floodline.history._atoms import Entry
from floodline.history._formats.shapes import Message
from floodline.history._formats.shorten import weigh

Numbered = tuple[int, Message]


@runtime_checkable
class Archive(Protocol):
    """An archive that can also be read back, such as `floodline.stores.SQLiteArchive`."""

    def put(self, conversation: str, messages: Sequence[Numbered]) -> None:
        """Store the messages durably before returning; the same one twice counts once."""
        ...

    def page(
        self, conversation: str, *, before: int | None = None, limit: int = 1000
    ) -> list[Numbered]:
        """Return the last `limit` messages whose number is below `before`, oldest first."""
        ...


SESSION: Final = "session"
ArchiveLike = Archive | Callable[[list[Message]], object] | Literal["session"]
NewRows = tuple[str, list[tuple[str, bytes, int]]]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Page(list[Message]):
    """Archived messages, oldest first; `before` asks for the page that precedes this one."""

    __slots__ = ("before",)

    def __init__(self, numbered: Sequence[Numbered]) -> None:
        super().__init__(message for _, message in numbered)
        self.before = numbered[0][0] if numbered else 0


def parse_archive(archive: Any) -> ArchiveLike | None:
    """Return the archive if it is one, or the one that a store has alongside its sessions.

    A coroutine function will not do, because an append waits for the archive.
    """
    if archive is None or archive == SESSION or isinstance(archive, Archive):
        return archive  # type: ignore[no-any-return]  # one of these
    beside = getattr(archive, "archive", None)
    if isinstance(beside, Archive):
        return beside
    if not callable(archive) or inspect.iscoroutinefunction(archive):
        raise ConfigError(
            f"archive={archive!r} cannot be used; give a plain callable that takes a list of "
            'messages, "session", a SQLiteStore, or floodline.stores.SQLiteArchive'
        )
    return archive  # type: ignore[no-any-return]  # callable, which is all that can be asked


class Outbox:
    """Hands messages to the archive, and remembers what it owes while the archive fails.

    A loaded conversation that had an archive has an outbox without one: it refuses everything
    until `configure(archive=…)`, so that nothing is dropped by mistake.
    """

    __slots__ = (
        "_call", "_store", "chose_id", "failed_in_a_row", "id", "name", "owed", "owed_bytes",
        "waits",
    )  # fmt: skip  # one name a line would fill the page

    def __init__(self, archive: ArchiveLike | None, id: str | None, name: str) -> None:
        self.id, self.name, self.chose_id = id or uuid.uuid4().hex, name, id is None
        self._store: Archive | None = None
        self._call: Callable[[list[Message]], object] | None = None
        self.waits = archive == SESSION
        if isinstance(archive, Archive):  # asked once: a protocol answers slowly
            self._store = archive
        elif not self.waits:
            self._call = archive  # type: ignore[assignment]  # a callable, or None
        self.owed: list[Numbered] = []
        self.owed_bytes = 0
        self.failed_in_a_row = 0

    @property
    def archive(self) -> ArchiveLike | None:
        """Where the messages go; None after a load."""
        if self.waits:
            return SESSION
        return self._store if self._store is not None else self._call

    def owe(self, seq: int, message: Message) -> None:
        """Have a message archived with the next delivery."""
        self.owed.append((seq, message))
        self.owed_bytes += weigh(message, "$")

    def take_over(self, before: Outbox | None) -> None:
        """Take over what another outbox owed, under the same id."""
        if before is not None:
            self.chose_id = before.chose_id
            for seq, message in before.owed:
                self.owe(seq, message)

    def holds_back(self, defers: bool) -> bool:
        """Return True if messages wait here for a save, which `defers` says will come."""
        return self.waits or (defers and self.archive is not None)

    def deliver(self, entries: Sequence[Entry], *, defers: bool) -> bool:
        """Archive what is owed and these; return True if the archive accepted all of it."""
        if self.holds_back(defers):
            for entry in entries:
                self.owe(entry.seq, entry.message)
            return True
        return self._deliver([(entry.seq, entry.message) for entry in entries])

    def deliver_owed(self) -> bool:
        """Hand over what is owed, now."""
        return self._deliver([])

    def _deliver(self, more: list[Numbered]) -> bool:
        numbered = [*self.owed, *more]
        if not numbered:
            return True
        numbered.sort(key=lambda pair: pair[0])
        try:
            self._send(numbered)
        except Exception as error:  # users' code, disks
            self.failed_in_a_row += 1
            if self.failed_in_a_row & (self.failed_in_a_row - 1) == 0:  # 1st, 2nd, 4th, 8th …
                telemetry.emit(
                    "archive_failed",
                    self.name,
                    error=telemetry.describe(error),
                    times=self.failed_in_a_row,
                    waiting=len(numbered),
                )
            return False
        self.owed.clear()
        self.owed_bytes = self.failed_in_a_row = 0
        return True

    def _send(self, numbered: list[Numbered]) -> None:
        if self._store is not None:
            self._store.put(self.id, numbered)
            return
        if self._call is None:
            raise ConfigError(
                "this conversation was loaded and has no archive yet; call "
                "configure(archive=…), or configure(archive=None) to continue without one"
            )
        answer = self._call([message for _, message in numbered])
        if inspect.iscoroutine(answer):
            answer.close()
            raise ConfigError("the archive returned a coroutine; it must be a plain callable")

    def rows(self) -> list[NewRows]:
        """Return what waits as rows of a log; their keys make a second delivery harmless."""
        rows = [(*_packed(seq, message), seq) for seq, message in self.owed]
        return [(log_of(self.id), rows)] if rows else []

    def delivered(self, count: int) -> None:
        """Forget the first that waited: they are saved."""
        for _, message in self.owed[:count]:
            self.owed_bytes -= weigh(message, "$")
        del self.owed[:count]

    def take_back(self, seq: int) -> Message | None:
        """Take a message that waits out again; the first with its number is the original."""
        found = [message for number, message in self.owed if number == seq]
        self.owed = [pair for pair in self.owed if pair[0] != seq]
        self.owed_bytes -= sum(weigh(message, "$") for message in found)
        return found[0] if found else None

    def can_be_read(self, session: Session | None) -> bool:
        """Return True if `take_archived` can work."""
        return session is not None if self.waits else self._store is not None

    def take_archived(
        self, before: int | None, seq: int | None, session: Session | None
    ) -> Message | None:
        """Return the last archived message, or that of `seq`; from a session it is deleted."""
        if self._store is not None:
            numbered = self._store.page(self.id, before=before, limit=1)
        else:
            numbered = _page_of(session, self.id, (), before, 1)
        if not numbered or seq not in (None, numbered[-1][0]):
            return None
        if self.waits and session is not None:
            session.delete(self.id, [_packed(*pair)[0] for pair in numbered])
        return numbered[-1][1]

    def page(self, id: str | None, before: int | None, limit: int, session: Session | None) -> Page:
        """Read archived messages back."""
        wanted = id or self.id
        if self.waits:
            mine = self.owed if wanted == self.id else []
            return Page(_page_of(session, wanted, mine, before, limit))
        if self._store is None:
            raise ConfigError(
                f"archive={self._call!r} cannot be read back; use "
                "floodline.stores.SQLiteArchive, or read where the callable wrote"
            )
        kept = self._store.page(wanted, before=before, limit=limit)
        mine = [pair for pair in self.owed if before is None or pair[0] < before]
        if not mine or wanted != self.id:
            return Page(kept)
        return Page(_newest(sorted([*(p for p in kept if p not in mine), *mine], key=_seq), limit))


class Session:
    """The session that a conversation belongs to, and the store whose row logs it has."""

    __slots__ = ("id", "name", "store")

    def __init__(self, store: Any, name: str, id: str) -> None:
        self.store, self.name, self.id = store, name, id

    def check(self) -> None:
        """Raise unless the store can take an archive."""
        if not hasattr(self.store, "append_rows"):
            raise ConfigError(
                f'archive="session" needs a store with row logs, and session {self.id!r} of '
                f"{self.name!r} has none; give the sessions a store=, or use "
                "floodline.stores.SQLiteArchive"
            )

    def read(self, conversation: str, before: int | None, limit: int) -> list[Any]:
        """Return the last rows below a number, newest first; all of the last number."""
        self.check()
        if inspect.iscoroutinefunction(self.store.rows):
            raise ConfigError(
                "the store of this session has no blocking calls, so archived() cannot read from "
                f'it; await store.rows({self.name!r}, {self.id!r}, "{log_of(conversation)}")'
            )
        terms = (self.name, self.id, log_of(conversation))
        rows: list[Any] = self.store.rows(*terms, before=before, limit=limit, newest_first=True)
        while len(rows) >= limit:
            more = self.store.rows(*terms, before=rows[-1].key, limit=1, newest_first=True)
            if not more or more[0].number != rows[-1].number:
                break
            rows += more
        return rows

    def delete(self, conversation: str, keys: list[str]) -> None:
        """Delete rows of the archive."""
        self.store.delete_rows(self.name, self.id, log_of(conversation), keys=keys)


def log_of(conversation: str) -> str:
    """Return the name of the log that holds the archive of a conversation."""
    return f"archive:{conversation}"


def _packed(seq: int, message: Message) -> tuple[str, bytes]:
    packed = _encode(message)
    return f"{seq:012}-{blake2b(packed, digest_size=12).hexdigest()}", packed


def _page_of(
    session: Session | None,
    id: str,
    waiting: Sequence[Numbered],
    before: int | None,
    limit: int,
) -> list[Numbered]:
    """Merge what waits, the rows of the session, and an older archive in the file of its store."""
    if session is None:
        raise ConfigError("this conversation is in no session yet, so it has no archive to read")
    found = {row.key: (row.number, _decode(row.data)) for row in session.read(id, before, limit)}
    for seq, message in waiting:
        if before is None or seq < before:
            found[_packed(seq, message)[0]] = (seq, message)
    numbered = [found[key] for key in sorted(found)]
    if len(numbered) < limit:
        older = getattr(session.store, "older_archive", None)
        if isinstance(older, Archive):
            edge = numbered[0][0] if numbered else before
            numbered[:0] = older.page(id, before=edge, limit=limit - len(numbered))
    return _newest(numbered, limit)


def _seq(pair: Numbered) -> int:
    return pair[0]


def _newest(numbered: list[Numbered], limit: int) -> list[Numbered]:
    """Return the last `limit`, and never part of a number."""
    if len(numbered) <= limit:
        return numbered
    first = numbered[-limit][0]
    return [pair for pair in numbered if pair[0] >= first]
