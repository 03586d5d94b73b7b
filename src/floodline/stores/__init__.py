"""Where parked sessions are kept: the store protocol, and stores in memory, files and servers."""

from __future__ import annotations

from floodline.stores._calls import Kept
from floodline.stores._encoding.codec import Codec
from floodline.stores._encoding.envelope import seal, unseal
from floodline.stores._encoding.state_type import infer_state_type
from floodline.stores._memory.store import MemoryStore
from floodline.stores._open import open_store
from floodline.stores._owner import new_owner, owner_is_dead
from floodline.stores._postgres.store import PostgresStore
from floodline.stores._protocol import AsyncStore, Grant, Held, Record, Store, StoreStats
from floodline.stores._redis.store import RedisStore
from floodline.stores._rows.log import (
    Append,
    AsyncRowStore,
    LogStats,
    NewRow,
    Row,
    RowStore,
    unpack_rows,
)
from floodline.stores._sqlite.archive import SQLiteArchive
from floodline.stores._sqlite.store import SQLiteStore

__all__ = [
    "Append",
    "AsyncRowStore",
    "AsyncStore",
    "Codec",
    "Grant",
    "Held",
    "Kept",
    "LogStats",
    "MemoryStore",
    "NewRow",
    "PostgresStore",
    "Record",
    "RedisStore",
    "Row",
    "RowStore",
    "SQLiteArchive",
    "SQLiteStore",
    "Store",
    "StoreStats",
    "infer_state_type",
    "new_owner",
    "open_store",
    "owner_is_dead",
    "seal",
    "unpack_rows",
    "unseal",
]
