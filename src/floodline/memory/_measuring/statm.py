"""Fast reading of this process's size: one `pread` on a file that stays open."""

from __future__ import annotations

import os

PATH = "/proc/self/statm"


class Statm:
    """`/proc/self/statm`, opened at the first reading and again in a forked child.

    A program that closes all descriptors (to become a daemon) closes this one too, and may reuse
    its number for something else: then the answer is not a line of numbers, the file is opened
    again, and the number is left to its new owner.
    """

    def __init__(self, path: str = PATH) -> None:
        self._path = path
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self._fd = -1
        self._file: tuple[int, int] | None = None
        self.exists = hasattr(os, "pread") and os.path.exists(path)  # noqa: PTH110  # no pathlib here

    def size(self) -> int:
        """Return the bytes of address space."""
        return self._field(0)

    def resident(self) -> int:
        """Return the bytes of resident memory."""
        return self._field(1)

    def _field(self, at: int) -> int:
        try:
            line = os.pread(self._fd, 128, 0)
            if line.count(b" ") == 6:
                return int(line.split(None, 2)[at]) * self._page
        except (OSError, ValueError):
            pass
        self._open()
        return int(os.pread(self._fd, 128, 0).split()[at]) * self._page

    def _open(self) -> None:
        self._fd = fd = os.open(self._path, os.O_RDONLY)
        status = os.fstat(fd)
        self._file = status.st_dev, status.st_ino

    def start_anew(self) -> None:
        """Drop the file in a forked child, where it still describes the parent."""
        fd, file = self._fd, self._file
        self._fd, self._file = -1, None
        try:
            status = os.fstat(fd)
        except OSError:  # never opened, or closed by others
            return
        if (status.st_dev, status.st_ino) == file:
            os.close(fd)


statm = Statm()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=statm.start_anew)
