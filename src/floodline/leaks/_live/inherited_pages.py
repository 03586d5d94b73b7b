"""What a fork inherited: looking at it would copy pages that parent and children share."""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from io import FileIO
from itertools import chain, islice
from pathlib import Path

MAX_PAGES = 1_000_000  # what lies beyond counts as inherited
AT_ONCE = 65_536
HARDLY_SHARED = 0.9  # of all pages are ours alone
WORD = 8  # bytes that tell of a page
# of a page's word in /proc/self/pagemap: it is in memory; this process alone has it
_PRESENT, _ALONE = 1 << 63, 1 << 56


class Inherited:
    """The address space that was there at the first look, but for pages that were ours alone.

    A page that this process has written to since the fork is its own already, and looking at it
    costs nothing. Later on looking itself makes pages ours, so they are asked for once. Where the
    system does not tell, all that was mapped counts as inherited. `alone` says that hardly any
    page is shared: the parent has ended, as that of a daemon does.
    """

    def __init__(self) -> None:
        ranges = _mapped()
        self._begins = [begin for begin, _ in ranges]
        self._ends = [end for _, end in ranges]
        self._size = os.sysconf("SC_PAGE_SIZE")
        present, ours = 0, set()
        for page, word in _pages(ranges, self._size):
            present += 1
            if word & _ALONE:
                ours.add(page)
        self._ours = frozenset(ours)
        self.alone = bool(present) and len(ours) >= HARDLY_SHARED * present

    def __contains__(self, address: object) -> bool:
        number: int = address  # type: ignore[assignment]  # only identities are asked for
        at = bisect_right(self._begins, number) - 1
        if at < 0 or number >= self._ends[at]:
            return False
        return number // self._size not in self._ours


def _mapped() -> list[tuple[int, int]]:
    """Return the address ranges that can hold objects."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # no /proc: everything may be inherited
        return [(0, sys.maxsize)]
    fields = (line.split(" ", 2) for line in lines)
    pairs = (field[0].split("-") for field in fields if field[1].startswith("rw"))
    return [(int(begin, 16), int(end, 16)) for begin, end in pairs]


def _pages(ranges: list[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """Return the pages that are in memory, each with what the system says of it."""
    try:
        with Path("/proc/self/pagemap").open("rb", buffering=0) as file:
            told = (_pages_between(file, begin // size, end // size) for begin, end in ranges)
            yield from islice(chain.from_iterable(told), MAX_PAGES)
    except OSError:  # not told here
        return


def _pages_between(file: FileIO, first: int, last: int) -> Iterator[tuple[int, int]]:
    while first < last:
        file.seek(first * WORD)
        words = array("Q")
        told = file.read(min(last - first, AT_ONCE) * WORD)
        words.frombytes(told[: len(told) // WORD * WORD])
        if not words:
            return
        yield from ((page, word) for page, word in enumerate(words, first) if word & _PRESENT)
        first += len(words)
