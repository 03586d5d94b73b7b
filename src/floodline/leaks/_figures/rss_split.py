"""Splits the resident memory of this process: Python, malloc in use, malloc free, mapped."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from floodline import telemetry
from floodline.leaks._figures.arenas import arena_bytes
from floodline.leaks._suspect_record import SplitRecord
from floodline.memory import rss


@dataclass(slots=True, frozen=True)
class Split:
    """One reading in bytes and in blocks; 0 where an allocator does not report."""

    rss: int
    blocks: int
    malloc_used: int
    malloc_free: int
    malloc_mapped: int
    arenas: int = 0


@cache
def _mallinfo2() -> Callable[[], tuple[int, int, int]] | None:
    import ctypes

    class Info(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_size_t)
            for name in (
                *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
                *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
            )
        ]

    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):  # musl, macOS, an old glibc; Windows
        return None
    ask.argtypes, ask.restype = [], Info

    def read() -> tuple[int, int, int]:
        info = ask()
        return info.uordblks, info.fordblks, info.hblkhd

    return read


def read_malloc() -> tuple[int, int, int]:
    """Return the bytes of malloc in use, free but held, and mapped; 0 if unknown."""
    ask = _mallinfo2()
    return ask() if ask else (0, 0, 0)


def split_record() -> SplitRecord:
    """Return who manages the resident memory; it takes about 6 ms per GiB of Python objects."""
    one = read_split()
    known = one.arenas + one.malloc_used + one.malloc_free + one.malloc_mapped
    return {
        "resident": one.rss,
        "python": one.arenas,
        "malloc": one.malloc_used,
        "malloc_free": one.malloc_free,
        "mapped": one.malloc_mapped,
        "unexplained": max(0, one.rss - known),
    }


def read_split() -> Split:
    """Measure now; seldom in a live server: the allocator writes its whole debug output."""
    blocks = sys.getallocatedblocks()
    return Split(rss(), blocks, *read_malloc(), arena_bytes() or 0)


def judged_split() -> Split:
    """Measure now, less what our own caches in C code hold: they fill to a limit, and stop."""
    one, cached = read_split(), telemetry.native_bytes()
    return replace(one, rss=one.rss - cached, malloc_used=max(0, one.malloc_used - cached))


def judged_malloc() -> tuple[int, int, int]:
    """Return malloc's figures, less what our own caches in C code hold."""
    used, free, mapped = read_malloc()
    return max(0, used - telemetry.native_bytes()), free, mapped
