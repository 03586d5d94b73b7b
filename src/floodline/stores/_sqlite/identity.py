"""Checks that the files under a connection are still those that the path names."""

from __future__ import annotations

import os

Identity = tuple[int, int] | None


class Files:
    """A database file and its log, by device and inode.

    SQLite keeps using files that were deleted or replaced, and what it commits to them is lost. The
    log stays the same file as long as any process has the database open. Where there can be no log,
    as on some network disks, only the file is watched.
    """

    __slots__ = ("_log", "_log_path", "_path", "file")

    def __init__(self, path: str) -> None:
        self._path, self._log_path = path, f"{path}-wal"
        self.file: Identity = None
        self._log: Identity = None

    def note(self) -> None:
        """Adopt the current files as ours; call it after the first read has created the log."""
        self.file, self._log = identify(self._path), identify(self._log_path)

    def is_same(self) -> bool:
        """Return True if the path still names our file."""
        return identify(self._path) == self.file

    def lost(self) -> str:
        """Return which of the two is no longer ours and why, if any; call it after a commit."""
        file = identify(self._path)
        if file != self.file:
            return _what(self._path, file)
        if self._log is None or (log := identify(self._log_path)) == self._log:
            return ""
        return _what(self._log_path, log)


def identify(path: str) -> Identity:
    """Return device and inode of a file, None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - around each batch; a Path costs more
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _what(path: str, now: Identity) -> str:
    return f"{path!r} was {'deleted' if now is None else 'replaced'} while in use"
