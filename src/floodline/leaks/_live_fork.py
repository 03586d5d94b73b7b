"""What a fork inherited: looking at it would copy pages that parent and children share."""

from __future__ import annotations

import os
import struct
import sys
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

MAX_PAGES = 65_536
_ALONE = 1 << 56  # of a page's word in /proc/self/pagemap: mapped by this process only


@dataclass(slots=True)
class _Fork:
    """How often this process is the child of a fork, and how many modules the last one found."""

    generation: int = 0
    modules: int = 0


FORK = _Fork()


def _before() -> None:
    FORK.modules = len(sys.modules)


def _in_child() -> None:
    FORK.generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_in_child)


class Inherited:
    """The address space that was there at the first look, but for pages that are ours alone.

    A page that this process has written to since the fork is its own already, and looking at it
    costs nothing. Where the system does not tell, all that was mapped counts as inherited.
    """

    def __init__(self) -> None:
        ranges = _mapped()
        self._begins = [begin for begin, _ in ranges]
        self._ends = [end for _, end in ranges]
        self._size = os.sysconf("SC_PAGE_SIZE")
        self._file = _open_pagemap()
        self._known: dict[int, bool] = {}

    def __contains__(self, address: object) -> bool:
        number: int = address  # type: ignore[assignment]  # only identities are asked for
        at = bisect_right(self._begins, number) - 1
        if at < 0 or number >= self._ends[at]:
            return False
        page = number // self._size
        shared = self._known.get(page)
        if shared is None:
            if len(self._known) >= MAX_PAGES:
                self._known.clear()
            shared = self._known[page] = self._is_shared(page)
        return shared

    def refresh(self) -> None:
        """Ask again which pages are ours."""
        self._known.clear()

    def close(self) -> None:
        """Close the file that tells of pages."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _is_shared(self, page: int) -> bool:
        if self._file is None:
            return True
        try:
            word = os.pread(self._file, 8, page * 8)
        except OSError:
            return True
        return len(word) < 8 or not struct.unpack("=Q", word)[0] & _ALONE


def _mapped() -> list[tuple[int, int]]:
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # no /proc: everything may be inherited
        return [(0, sys.maxsize)]
    pairs = (line.split(" ", 1)[0].split("-") for line in lines)
    return [(int(begin, 16), int(end, 16)) for begin, end in pairs]


def _open_pagemap() -> int | None:
    try:
        return os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
