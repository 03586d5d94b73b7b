"""Stores by URL."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from floodline.errors import ConfigError
from floodline.stores._memory import MemoryStore
from floodline.stores._sqlite import SQLiteStore

_KNOWN = "sqlite:///relative.db, sqlite:////absolute/path.db or memory://"


def open_store(url: str) -> MemoryStore | SQLiteStore:
    """Open `sqlite:///agent.db` (relative), `sqlite:////var/lib/agent.db` or `memory://`."""
    if not isinstance(url, str):
        raise ConfigError(f"open_store({url!r}) takes a URL; give {_KNOWN}")
    parts = urlsplit(url)
    if parts.scheme == "memory" and not parts.netloc and not parts.path:
        return MemoryStore()
    if parts.scheme == "sqlite":
        path = unquote(parts.path[1:])
        if parts.netloc or not path or parts.query or parts.fragment:
            raise ConfigError(f"store URL {url!r} names no file; give {_KNOWN}")
        return SQLiteStore(path)
    raise ConfigError(f"store URL {url!r} has an unknown form; give {_KNOWN}")
