"""Copies sessions and their rows from one store to another, and proves that they arrived.

A session is copied in steps that may be repeated: its rows in slices, each under its own key, then
its envelope. Until then the copy has an empty envelope, so an interrupted copy is continued where
it stopped. At the end the digest of what the target holds is compared with that of the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from floodline.errors import RowConflict, StoreError
from floodline.stores._owner import new_owner
from floodline.stores._protocol import Grant, Record
from floodline.stores._rows.log import Append, NewRow, Row, RowStore

Outcome = Literal["copied", "same", "different", "busy", "gone", "failed"]

_PAGE = 200
_SLICE_BYTES = 1024**2
_LEASE = 60.0


@dataclass(slots=True, frozen=True)
class Copied:
    """What became of one session; `why` says more where it was not copied."""

    name: str
    id: str
    outcome: Outcome
    rows: int = 0
    bytes: int = 0
    why: str = ""


def all_names(store: RowStore) -> Iterator[str]:
    """Yield every name that has sessions."""
    after = ""
    while page := store.names(after=after, limit=_PAGE):
        yield from page
        after = page[-1]


def all_ids(store: RowStore, name: str) -> Iterator[str]:
    """Yield every id of a name; those that come or go meanwhile may be missed."""
    after = ""
    while page := store.ids(name, after=after, limit=_PAGE):
        yield from page
        after = page[-1]


def all_rows(store: RowStore, name: str, id: str) -> Iterator[tuple[str, Row]]:
    """Yield every row of a session, log by log, oldest first; deleted ones may be missed."""
    after = ""
    while page := store.logs(name, id, after=after, limit=_PAGE):
        for log in page:
            yield from _rows_of(store, name, id, log.log)
        after = page[-1].log


def _rows_of(store: RowStore, name: str, id: str, log: str) -> Iterator[tuple[str, Row]]:
    place: str | int | None = None
    while rows := store.rows(name, id, log, after=place, limit=_PAGE):
        for row in rows:
            yield log, row
        place = rows[-1].key


def copy_sessions(
    source: RowStore, target: RowStore, *, names: list[str] | None = None, replace: bool = False
) -> Iterator[Copied]:
    """Copy all sessions, or those of some names, and yield what became of each.

    A session that the target has with other bytes is left alone unless `replace` is True.
    """
    owner = new_owner("copy")
    for name in names or all_names(source):
        for one in all_ids(source, name):
            try:
                yield _copy(source, target, name, one, owner, replace)
            except RowConflict as error:
                yield Copied(name, one, "different", why=str(error))
            except StoreError as error:
                yield Copied(name, one, "failed", why=f"{type(error).__name__}: {error}")


def _copy(
    source: RowStore, target: RowStore, name: str, id: str, owner: str, replace: bool
) -> Copied:
    record = source.load(name, id)
    if record is None:
        return Copied(name, id, "gone", why="it was deleted in the meantime")
    wanted = digest_of(source, name, id, record)
    there = target.load(name, id)
    if there is not None:
        if digest_of(target, name, id, there) == wanted:
            return Copied(name, id, "same")
        if not replace and not is_begun(target, name, id, there):
            why = "the target has another session under this id; --replace overwrites it"
            return Copied(name, id, "different", why=why)
    grant = target.acquire(name, id, owner, lease=_LEASE)
    if isinstance(grant, Grant) and there is not None and replace:
        target.delete(name, id, fence=grant.fence)
        grant = target.acquire(name, id, owner, lease=_LEASE)
    if not isinstance(grant, Grant):
        return Copied(name, id, "busy", why=f"it is in use in the target by {grant.owner}")
    try:
        rows, size = _copy_rows(source, target, name, id, grant.fence)
        if not is_begun(source, name, id, record):
            begun = target.load(name, id)
            target.save(
                *(name, id, record.envelope),
                fence=grant.fence,
                version=0 if begun is None else begun.version,
                write_id=f"copy {wanted.hex()} {grant.fence}",
                release=False,
            )
    finally:
        target.release(name, id, grant.fence)
    arrived = target.load(name, id)
    if arrived is None or digest_of(target, name, id, arrived) != wanted:
        why = "the copy is not equal to the session, which was written in the meantime; try again"
        return Copied(name, id, "different", why=why)
    return Copied(name, id, "copied", rows, size + len(record.envelope))


def is_begun(store: RowStore, name: str, id: str, record: Record) -> bool:
    """Return True if a session has rows and no state yet; an empty envelope may also be damage."""
    return record.envelope == b"" and store.written(name, id, "") == record.version


def _copy_rows(
    source: RowStore, target: RowStore, name: str, id: str, fence: int
) -> tuple[int, int]:
    """Append all rows with their numbers, in slices; return how many there are, and their bytes."""
    waiting: dict[str, list[NewRow]] = {}
    count = total = size = 0

    def send() -> None:
        appends = [Append(log, new) for log, new in waiting.items()]
        target.append_rows(name, id, appends, fence=fence)
        waiting.clear()

    for log, row in all_rows(source, name, id):
        waiting.setdefault(log, []).append(NewRow(row.key, row.data, row.number))
        count, total, size = count + 1, total + len(row.data), size + len(row.data)
        if size > _SLICE_BYTES or count % _PAGE == 0:
            send()
            size = 0
    if waiting or not count:
        send()  # also without rows: a session begins with it
    return count, total


def digest_of(store: RowStore, name: str, id: str, record: Record) -> bytes:
    """Return a digest of an envelope and of all rows of its session."""
    digest = blake2b(record.envelope, digest_size=16)
    for log, row in all_rows(store, name, id):
        for part in (log.encode(), row.key.encode(), b"%d" % row.number, row.data):
            digest.update(b"%d:" % len(part) + part)
    return digest.digest()
