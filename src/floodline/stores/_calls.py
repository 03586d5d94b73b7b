"""The calls of a store, written once: the blocking ones and their coroutine twins.

A store is a table of operations and a way to request one (`_ask`, `ask`); stores differ only in
what is between the two, a lock or a thread.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from floodline.stores._protocol import Grant, Held, Record, StoreStats
from floodline.stores._rows.calls import ROW_READS, AwaitedRowCalls, BlockingRowCalls
from floodline.stores._rows.log import Append

READS = ROW_READS | {
    *("written", "load", "ids", "count", "stats", "conflicts", "quarantined", "inspect"),
    "has_archive",
}


@dataclass(slots=True, frozen=True)
class Kept:
    """Bytes that were refused (`conflicts`) or could not be read (`quarantined`)."""

    name: str
    id: str
    at: float
    why: str
    envelope: bytes


class Blocking(Protocol):
    """The store of a twin."""

    def is_writer_thread(self) -> bool:
        """Return True if this thread is working for the store."""
        ...


class BlockingCalls(BlockingRowCalls):
    """What `MemoryStore` and `SQLiteStore` share; see `Store` for what each call does."""

    def acquire(
        self, name: str, id: str, owner: str, *, lease: float, known: int | None = None
    ) -> Grant | Held:
        """See `Store.acquire`."""
        granted: Grant | Held = self._ask("acquire", name, id, owner, lease, known)
        return granted

    def renew(self, name: str, owner: str, fences: Mapping[str, int], *, lease: float) -> set[str]:
        """See `Store.renew`."""
        lost: set[str] = self._ask("renew", name, owner, dict(fences), lease)
        return lost

    def release(self, name: str, id: str, fence: int) -> None:
        """See `Store.release`."""
        self._ask("release", name, id, fence)

    def save(
        self,
        name: str,
        id: str,
        envelope: bytes,
        *,
        fence: int,
        version: int,
        write_id: str,
        release: bool,
        rows: Sequence[Append] = (),
    ) -> int:
        """See `RowStore.save`."""
        terms = (name, id, envelope, fence, version, write_id, release, rows)
        new: int = self._ask("save", *terms)
        return new

    def written(self, name: str, id: str, write_id: str) -> int | None:
        """See `Store.written`."""
        version: int | None = self._ask("written", name, id, write_id)
        return version

    def load(self, name: str, id: str) -> Record | None:
        """See `Store.load`."""
        record: Record | None = self._ask("load", name, id)
        return record

    def delete(self, name: str, id: str, *, fence: int) -> bool:
        """See `Store.delete`."""
        there: bool = self._ask("delete", name, id, fence)
        return there

    def quarantine(self, name: str, id: str, envelope: bytes, why: str) -> None:
        """See `Store.quarantine`."""
        self._ask("quarantine", name, id, envelope, why)

    def purge(self, name: str, *, unused: float, limit: int) -> list[str]:
        """See `Store.purge`."""
        gone: list[str] = self._ask("purge", name, unused, limit)
        return gone

    def ids(self, name: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """See `Store.ids`."""
        found: list[str] = self._ask("ids", name, after, limit)
        return found

    def count(self, name: str) -> int:
        """See `Store.count`."""
        rows: int = self._ask("count", name)
        return rows

    def stats(self) -> StoreStats:
        """See `Store.stats`."""
        figures: StoreStats = self._ask("stats")
        return figures

    def conflicts(self, name: str | None = None, *, limit: int = 100) -> list[Kept]:
        """Return the refused writes, newest first, of one name or of all."""
        kept: list[Kept] = self._ask("conflicts", name, limit)
        return kept

    def quarantined(self, name: str | None = None, *, limit: int = 100) -> list[Kept]:
        """Return the copies of records that could not be read, newest first."""
        kept: list[Kept] = self._ask("quarantined", name, limit)
        return kept

    @abstractmethod
    def close(self) -> None:
        """See `Store.close`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AwaitedCalls(AwaitedRowCalls):
    """The coroutine twin: the same calls, awaited. Cancelling an await undoes nothing."""

    __slots__ = ("_close", "_store")

    def __init__(
        self,
        store: Blocking,
        ask: Callable[..., Awaitable[Any]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store  # kept alive: one that is collected closes its file
        self._ask, self._close = ask, close

    def is_writer_thread(self) -> bool:
        """Return True if this thread is working for the store, so that a call would be refused."""
        return self._store.is_writer_thread()

    async def acquire(
        self, name: str, id: str, owner: str, *, lease: float, known: int | None = None
    ) -> Grant | Held:
        """See `Store.acquire`."""
        granted: Grant | Held = await self._ask("acquire", name, id, owner, lease, known)
        return granted

    async def renew(
        self, name: str, owner: str, fences: Mapping[str, int], *, lease: float
    ) -> set[str]:
        """See `Store.renew`."""
        lost: set[str] = await self._ask("renew", name, owner, dict(fences), lease)
        return lost

    async def release(self, name: str, id: str, fence: int) -> None:
        """See `Store.release`."""
        await self._ask("release", name, id, fence)

    async def save(
        self,
        name: str,
        id: str,
        envelope: bytes,
        *,
        fence: int,
        version: int,
        write_id: str,
        release: bool,
        rows: Sequence[Append] = (),
    ) -> int:
        """See `RowStore.save`."""
        terms = (name, id, envelope, fence, version, write_id, release, rows)
        new: int = await self._ask("save", *terms)
        return new

    async def written(self, name: str, id: str, write_id: str) -> int | None:
        """See `Store.written`."""
        version: int | None = await self._ask("written", name, id, write_id)
        return version

    async def load(self, name: str, id: str) -> Record | None:
        """See `Store.load`."""
        record: Record | None = await self._ask("load", name, id)
        return record

    async def delete(self, name: str, id: str, *, fence: int) -> bool:
        """See `Store.delete`."""
        there: bool = await self._ask("delete", name, id, fence)
        return there

    async def quarantine(self, name: str, id: str, envelope: bytes, why: str) -> None:
        """See `Store.quarantine`."""
        await self._ask("quarantine", name, id, envelope, why)

    async def purge(self, name: str, *, unused: float, limit: int) -> list[str]:
        """See `Store.purge`."""
        gone: list[str] = await self._ask("purge", name, unused, limit)
        return gone

    async def ids(self, name: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """See `Store.ids`."""
        found: list[str] = await self._ask("ids", name, after, limit)
        return found

    async def count(self, name: str) -> int:
        """See `Store.count`."""
        rows: int = await self._ask("count", name)
        return rows

    async def stats(self) -> StoreStats:
        """See `Store.stats`."""
        figures: StoreStats = await self._ask("stats")
        return figures

    async def conflicts(self, name: str | None = None, *, limit: int = 100) -> list[Kept]:
        """Return the refused writes, newest first, of one name or of all."""
        kept: list[Kept] = await self._ask("conflicts", name, limit)
        return kept

    async def quarantined(self, name: str | None = None, *, limit: int = 100) -> list[Kept]:
        """Return the copies of records that could not be read, newest first."""
        kept: list[Kept] = await self._ask("quarantined", name, limit)
        return kept

    async def close(self) -> None:
        """See `Store.close`; both twins close together."""
        await self._close()
