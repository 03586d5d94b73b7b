"""Stores by URL."""

from __future__ import annotations

from urllib.parse import urlsplit

from floodline.errors import ConfigError
from floodline.stores._memory.store import MemoryStore
from floodline.stores._sqlite.paths import SQLITE, sqlite_path
from floodline.stores._sqlite.store import SQLiteStore

_KNOWN = f"{SQLITE} or memory://"


def open_store(url: str) -> MemoryStore | SQLiteStore:
    """Open `sqlite:///agent.db` (relative), `sqlite:////var/lib/agent.db` or `memory://`."""
    if not isinstance(url, str):
        raise ConfigError(f"open_store({url!r}) takes a URL; give {_KNOWN}")
    parts = urlsplit(url)
    if parts.scheme == "memory" and not parts.netloc and not parts.path:
        return MemoryStore()
    if parts.scheme == "sqlite":
        return SQLiteStore(sqlite_path(url, _KNOWN))
    raise ConfigError(f"store URL {url!r} has an unknown form; give {_KNOWN}")
