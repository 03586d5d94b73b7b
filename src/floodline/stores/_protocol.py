"""What a store must do for sessions: guard every write, and keep what it was given.

A store knows bytes, not states. Rows are keyed by `(name, id)`, where `name` is that of the
`Sessions` object. `version` counts the writes of a row (0: there is none) and begins above those of
all deleted rows, so that an id never has the same version twice; `fence` is a number from one
store-wide counter that never goes back, handed out with each lease. A write is accepted only if its
fence is that of the current lease and its version is the one in the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(slots=True, frozen=True)
class Record:
    """A stored row."""

    version: int
    envelope: bytes


@dataclass(slots=True, frozen=True)
class Grant:
    """A lease: `envelope` is None if there is no row (version 0) or the caller knows it."""

    fence: int
    version: int
    envelope: bytes | None


@dataclass(slots=True, frozen=True)
class Held:
    """Another owner has the lease, for `seconds` more unless it is renewed."""

    owner: str
    seconds: float


@dataclass(slots=True, frozen=True, kw_only=True)
class StoreStats:
    """What a store holds; `file_bytes` is None where there is no file.

    `rows` are sessions; `log_rows` and `log_bytes` are what their row logs hold.
    """

    kind: str
    rows: int
    row_bytes: int
    leases: int
    conflicts: int
    quarantined: int
    conflicts_dropped: int
    quarantine_dropped: int
    file_bytes: int | None
    log_rows: int = 0
    log_bytes: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the record as a plain dict, ready for `json.dumps`."""
        return asdict(self)


@runtime_checkable
class Store(Protocol):
    """Blocking, and safe to call from any thread."""

    def acquire(
        self, name: str, id: str, owner: str, *, lease: float, known: int | None = None
    ) -> Grant | Held:
        """Take the lease of a row, which need not exist, for `lease` seconds.

        `known` is the version in the caller's memory; the envelope is returned only if the stored
        one differs. A lease that has expired, or whose owner is dead, is taken over. The owner of a
        current lease that asks again gets a new fence.
        """
        ...

    def renew(self, name: str, owner: str, fences: Mapping[str, int], *, lease: float) -> set[str]:
        """Extend the leases `{id: fence}`; return the ids whose lease is lost."""
        ...

    def release(self, name: str, id: str, fence: int) -> None:
        """Give a lease back without writing; harmless if it is lost already."""
        ...

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
    ) -> int:
        """Write `envelope` over `version` and return the new version; with `release`, also end
        the lease, in the same transaction. The same `write_id` twice is one write.

        If the lease or the version does not match, the bytes go to `conflicts`, and
        `SessionConflict` is raised.
        """
        ...

    def written(self, name: str, id: str, write_id: str) -> int | None:
        """Return the version that `write_id` created, if it is the row's last write."""
        ...

    def load(self, name: str, id: str) -> Record | None:
        """Read a row without a lease."""
        ...

    def delete(self, name: str, id: str, *, fence: int) -> bool:
        """Delete the row and the lease; return True if there was a row.

        `SessionConflict` if the lease is lost.
        """
        ...

    def quarantine(self, name: str, id: str, envelope: bytes, why: str) -> None:
        """Keep a copy of bytes that cannot be read; the row stays as it is."""
        ...

    def purge(self, name: str, *, unused: float, limit: int) -> list[str]:
        """Delete at most `limit` rows that were not written or leased for `unused` seconds, and
        have no lease; return their ids.
        """
        ...

    def ids(self, name: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return stored ids in order, beginning after `after`."""
        ...

    def count(self, name: str) -> int:
        """Return the number of stored rows of one name."""
        ...

    def stats(self) -> StoreStats:
        """Return the current figures."""
        ...

    def close(self) -> None:
        """Finish pending calls and release everything; idempotent."""
        ...


@runtime_checkable
class AsyncStore(Protocol):
    """The coroutine twin of `Store`: the same calls, awaited. Cancelling one does not undo it."""

    async def acquire(
        self, name: str, id: str, owner: str, *, lease: float, known: int | None = None
    ) -> Grant | Held:
        """See `Store.acquire`."""
        ...

    async def renew(
        self, name: str, owner: str, fences: Mapping[str, int], *, lease: float
    ) -> set[str]:
        """See `Store.renew`."""
        ...

    async def release(self, name: str, id: str, fence: int) -> None:
        """See `Store.release`."""
        ...

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
    ) -> int:
        """See `Store.save`."""
        ...

    async def written(self, name: str, id: str, write_id: str) -> int | None:
        """See `Store.written`."""
        ...

    async def load(self, name: str, id: str) -> Record | None:
        """See `Store.load`."""
        ...

    async def delete(self, name: str, id: str, *, fence: int) -> bool:
        """See `Store.delete`."""
        ...

    async def quarantine(self, name: str, id: str, envelope: bytes, why: str) -> None:
        """See `Store.quarantine`."""
        ...

    async def purge(self, name: str, *, unused: float, limit: int) -> list[str]:
        """See `Store.purge`."""
        ...

    async def ids(self, name: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """See `Store.ids`."""
        ...

    async def count(self, name: str) -> int:
        """See `Store.count`."""
        ...

    async def stats(self) -> StoreStats:
        """See `Store.stats`."""
        ...

    async def close(self) -> None:
        """See `Store.close`."""
        ...
