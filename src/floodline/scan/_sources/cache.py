"""Caches what files say, by their content: an unchanged file is not read again.

One SQLite file serves all projects: several scans may use it at once, and a killed one leaves it
intact. A cache never decides anything: whatever is wrong with it, it acts as if it were empty.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

MANY_BYTES = 512 * 1024 * 1024
BATCH = 4 * 1024 * 1024  # bytes that wait to be written: more would waste memory
NAME = "scan.db"
PATIENCE = 5  # seconds to wait for another scan that is writing
CHECK = 4  # bytes of checksum in front of each entry
PAGE = 8192  # bytes: with smaller pages writing takes longer, with larger ones more memory
TABLE = """
    create table if not exists entries (
        key blob primary key, data blob not null, size integer not null, used integer not null
    )
"""


def tool_key(version: str) -> bytes:
    """Identify this tool: its version and its own files, and the Python whose grammar it reads."""
    parts = [version, sys.version, sys.implementation.cache_tag or ""]
    home = Path(__file__).parents[2]
    folders = (home / "scan", home / "_python")  # everything that reads a file, subfolders included
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        status = path.stat()
        parts.append(f"{path.relative_to(home)} {status.st_mtime_ns} {status.st_size}")
    return "\n".join(parts).encode()


class Cache:
    """Entries by key, at most `max_bytes` of them; use as a context manager.

    The least recently used leave first. `day` is the number of the current day (injected).
    """

    def __init__(self, folder: Path, version: str, *, day: int, max_bytes: int = MANY_BYTES):
        self._folder = folder
        self.salt = hashlib.blake2b(tool_key(version), digest_size=16).digest()
        self._day = day
        self._max_bytes = max_bytes
        self._base: sqlite3.Connection | None = None
        self._new: list[tuple[bytes, bytes, int, int]] = []
        self._waiting = 0
        self._old: list[tuple[int, bytes]] = []
        self._written: set[bytes] = set()  # keys of entries
        self._was_empty = False

    def __enter__(self) -> Cache:
        self._base = _opened(self._folder)
        self._was_empty = self._base is None or not _has_entries(self._base)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._base is not None:
            with suppress(*_errors()):
                if kind is None:
                    self._write(self._base)
            self._base.close()
            self._base = None

    @property
    def is_empty(self) -> bool:
        """Return True if no entry can be found: nothing was there, and nothing was written."""
        return self._was_empty and not self._written

    def key(self, *parts: bytes) -> bytes:
        """Return the key of some content: the same content and tool have the same key."""
        return key_of(self.salt, *parts)

    def get(self, key: bytes) -> bytes | None:
        """Return an entry, `None` if there is none or it is damaged."""
        if self._base is None or (self._was_empty and key not in self._written):
            return None  # asking for each file of a first scan takes long
        try:
            row = self._base.execute(
                "select data, used from entries where key=?", (key,)
            ).fetchone()
        except _errors():
            return None
        if row is None or not isinstance(row[0], bytes) or row[0][:CHECK] != _sum(row[0][CHECK:]):
            return None
        if row[1] != self._day:
            self._old.append((self._day, key))
        return row[0][CHECK:]

    def put(self, key: bytes, data: bytes) -> None:
        """Store an entry; entries are written a few MB at a time, and the rest at the end."""
        if self._base is None or len(data) >= self._max_bytes:
            return
        self._new.append((key, _sum(data) + data, len(data), self._day))
        self._waiting += len(data)
        if self._waiting >= BATCH:
            with suppress(*_errors()), self._base as base:
                self._insert(base)
            self._new, self._waiting = [], 0

    def _insert(self, base: sqlite3.Connection) -> None:
        base.executemany("insert or replace into entries values (?, ?, ?, ?)", self._new)
        self._written.update(entry[0] for entry in self._new)

    def _write(self, base: sqlite3.Connection) -> None:
        if not self._new and not self._old and not self._written:
            return
        with base:
            base.executemany("update entries set used=? where key=?", self._old)
            self._insert(base)
            base.executemany("delete from entries where key=?", self._too_many(base))

    def _too_many(self, base: sqlite3.Connection) -> Iterable[tuple[bytes]]:
        (total,) = base.execute("select coalesce(sum(size), 0) from entries").fetchone()
        if total <= self._max_bytes:
            return []
        gone = []
        for key, size in base.execute("select key, size from entries order by used, key"):
            gone.append((key,))
            total -= size
            if total <= self._max_bytes * 3 // 4:
                break
        return gone


def key_of(salt: bytes, *parts: bytes) -> bytes:
    """Return the key of some content under a salt."""
    hashed = hashlib.blake2b(key=salt, digest_size=16)
    for part in parts:
        hashed.update(b"%d:" % len(part))
        hashed.update(part)
    return hashed.digest()


def _sum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(CHECK, "big")


def _errors() -> tuple[type[Exception], ...]:
    import sqlite3

    return (sqlite3.Error, OSError)


def _opened(folder: Path) -> sqlite3.Connection | None:
    """Open the file; anything but a database is replaced, and without a disk there is none."""
    import sqlite3

    for _ in range(2):
        base = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _keep_out_of_git(folder)
            base = sqlite3.connect(folder / NAME, timeout=PATIENCE)
            base.execute("pragma synchronous=off")
            base.execute(f"pragma page_size={PAGE}")
            base.execute(TABLE)
            base.execute("select key, data, size, used from entries limit 1").fetchone()
        except sqlite3.OperationalError as error:
            _close(base)
            if "no such column" not in str(error):
                return None
        except sqlite3.DatabaseError:
            _close(base)
        except OSError:
            return None
        else:
            return base
        with suppress(OSError):
            (folder / NAME).unlink()
    return None


def _has_entries(base: sqlite3.Connection) -> bool:
    with suppress(*_errors()):
        return base.execute("select 1 from entries limit 1").fetchone() is not None
    return True  # another scan is writing


def _close(base: sqlite3.Connection | None) -> None:
    if base is not None:
        base.close()


def _keep_out_of_git(folder: Path) -> None:
    note = folder / ".gitignore"
    if not note.exists():
        note.write_text("*\n", encoding="utf-8")


def default_folder(environ: dict[str, str] | None = None, platform: str = sys.platform) -> Path:
    """Return the user's cache folder."""
    known = os.environ if environ is None else environ
    home = Path(known.get("HOME") or Path.home())
    if platform == "win32":
        base = Path(known.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(known.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "floodline"
