"""Tells what a fork inherited: reading it would copy pages that parent and children share."""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from io import FileIO
from itertools import chain, islice
from pathlib import Path

MAX_PAGES = 1_000_000  # anything beyond counts as inherited
AT_ONCE = 65_536
HARDLY_SHARED = 0.9  # share of all pages that is ours alone
WORD = 8  # bytes per page in /proc/self/pagemap
# bits of that entry: the page is in memory; only this process has it
_PRESENT, _ALONE = 1 << 63, 1 << 56


class Inherited:
    """The address space as it was at the first look, except for pages that were ours alone.

    A page that this process has written to since the fork is already its own, and reading it costs
    nothing. Later, reading itself makes pages ours, so they are looked up only once. If the system
    does not say, everything that was mapped counts as inherited. `alone` means that hardly any
    page is shared, because the parent has ended, as a daemon's does.
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
    """Return the pages that are in memory, each with what the system says about it."""
    try:
        with Path("/proc/self/pagemap").open("rb", buffering=0) as file:
            told = (_pages_between(file, begin // size, end // size) for begin, end in ranges)
            yield from islice(chain.from_iterable(told), MAX_PAGES)
    except OSError:  # not available here
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
