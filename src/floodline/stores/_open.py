"""Stores by URL."""

from __future__ import annotations

from urllib.parse import urlsplit

from floodline.errors import ConfigError
from floodline.stores._memory.store import MemoryStore
from floodline.stores._postgres.store import SCHEMES as POSTGRES
from floodline.stores._postgres.store import PostgresStore
from floodline.stores._redis.store import SCHEMES as REDIS
from floodline.stores._redis.store import RedisStore
from floodline.stores._server.addresses import mask
from floodline.stores._sqlite.paths import SQLITE, sqlite_path
from floodline.stores._sqlite.store import SQLiteStore

_KNOWN = f"{SQLITE}, redis://host:6379/0, postgresql://user@host/database or memory://"


def open_store(url: str) -> MemoryStore | SQLiteStore | RedisStore | PostgresStore:
    """Open the store at a URL.

    `sqlite:///agent.db` (relative), `sqlite:////var/lib/agent.db`, `memory://`; `redis://`,
    `rediss://`, `valkey://`, `valkeys://` and `unix://` for Redis and Valkey; `postgresql://` and
    `postgres://`, which reach libpq as they are.
    """
    if not isinstance(url, str):
        raise ConfigError(f"open_store({url!r}) takes a URL; give {_KNOWN}")
    scheme = url.partition("://")[0]  # several hosts may be more than `urlsplit` understands
    if scheme in REDIS:
        return RedisStore(url)
    if scheme in POSTGRES:
        return PostgresStore(url)
    parts = urlsplit(url)
    if parts.scheme == "memory" and not parts.netloc and not parts.path:
        return MemoryStore()
    if parts.scheme == "sqlite":
        return SQLiteStore(sqlite_path(url, _KNOWN))
    raise ConfigError(f"store URL {mask(url)!r} has an unknown form; give {_KNOWN}")
