"""The path of a SQLite file, from a path or a URL, checked before anything is opened."""

from __future__ import annotations

import os
from pathlib import Path
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


def checked_path(path: str | os.PathLike[str]) -> str:
    """Return the absolute path of a file that a store can use."""
    text = os.fspath(path)
    if not text or "\0" in text:
        raise ConfigError(f"path={path!r} names no file; give a path such as 'agent.db'")
    if text == ":memory:":
        raise ConfigError("path=':memory:' would be lost at each reconnect; use MemoryStore()")
    return str(Path(text).absolute())  # a later chdir must not move the store
