"""Translates SQLite's errors into ours: the path, what happened, the next step."""

from __future__ import annotations

import sqlite3

from floodline.errors import FloodlineError, StoreCorrupt, StoreUnavailable, TooLarge

_CORRUPT = {
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_NOTADB": "is not a SQLite database",
}
_UNAVAILABLE = {
    "SQLITE_BUSY": "is locked by another process; find out which one, or raise busy_timeout",
    "SQLITE_LOCKED": "is locked by another connection; find out which one",
    "SQLITE_FULL": "cannot grow: the disk is full; free some space, nothing was lost",
    "SQLITE_READONLY": "cannot be written; give this user write access to it and its directory",
    "SQLITE_PERM": "may not be opened; give this user read and write access",
    "SQLITE_CANTOPEN": "cannot be opened; check the path, the permissions and the open-file limit",
    "SQLITE_IOERR": "cannot be read or written; check the disk, its space and its quota",
}
_CONTRADICTIONS = (  # the last two of sums with a figure that is no number
    *("no such", "malformed", "unsupported file format", "Could not decode to UTF-8"),
    *("table ", "index ", "attached databases must use the same text encoding"),
    *("NOT NULL constraint failed: meta.", "NOT NULL constraint failed: totals."),
)
_DROP = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")


def translate(error: sqlite3.Error, path: str) -> FloodlineError:
    """Return our error for one of SQLite's; the caller raises it from the original."""
    kind = _kind(error)
    said = f" ({getattr(error, 'sqlite_errorname', None) or type(error).__name__}: {error})"
    if kind not in _CORRUPT and _contradicts_schema(error):
        kind = "SQLITE_CORRUPT"
    if kind in _CORRUPT:
        return StoreCorrupt(
            f"{path!r} {_CORRUPT[kind]} and was left as it is; restore a copy of it, "
            f"recover it with `sqlite3 {path} .recover`, or choose another path{said}"
        )
    if kind in _UNAVAILABLE:
        return StoreUnavailable(f"{path!r} {_UNAVAILABLE[kind]}{said}")
    if kind == "SQLITE_TOOBIG":
        return TooLarge(f"{path!r} cannot hold a value of that size; keep sessions smaller{said}")
    return StoreUnavailable(f"{path!r} refused an operation{said}")


def _contradicts_schema(error: sqlite3.Error) -> bool:
    """Return True if a file lacks what our statements, which never change, ask for."""
    return str(error).startswith(_CONTRADICTIONS)


def undecodable(error: UnicodeDecodeError, path: str) -> StoreCorrupt:
    """Return our error for invalid text, which Python meets before SQLite can report it."""
    return StoreCorrupt(
        f"{path!r} is damaged and was left as it is; restore a copy of it, recover it with "
        f"`sqlite3 {path} .recover`, or choose another path ({error})"
    )


def breaks_connection(error: sqlite3.Error) -> bool:
    """Return True if a fresh connection is safer than continuing with this one."""
    return _kind(error) in _DROP or _contradicts_schema(error)


def is_busy(error: sqlite3.Error) -> bool:
    """Return True if another process or connection has the lock."""
    return _kind(error) in ("SQLITE_BUSY", "SQLITE_LOCKED")


def _kind(error: sqlite3.Error) -> str:
    """Return the primary code: SQLITE_IOERR for SQLITE_IOERR_WRITE."""
    name = getattr(error, "sqlite_errorname", None) or ""
    if name == "SQLITE_IOERR_SHORT_READ":  # a page number beyond the end: not the disk's fault
        return "SQLITE_CORRUPT"
    return "_".join(name.split("_")[:2])
