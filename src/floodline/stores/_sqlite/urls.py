"""The URL of a SQLite file."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from floodline.errors import ConfigError

SQLITE = "sqlite:///relative.db, sqlite:////absolute/path.db"


def sqlite_path(url: str, known: str = SQLITE) -> str:
    """Return the path in `sqlite:///relative.db` or `sqlite:////absolute/path.db`."""
    parts = urlsplit(url)
    path = unquote(parts.path[1:])
    if parts.netloc or not path or parts.query or parts.fragment:
        raise ConfigError(f"store URL {url!r} names no file; give {known}")
    return path
