"""Give memory that malloc keeps back to the system, where the C library can do that (glibc)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    import ctypes

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # musl, macOS; Windows cannot open None
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim


def trim_malloc() -> bool:
    """Return whole free pages of malloc to the system; tell whether there were any.

    Where the C library has no `malloc_trim`, nothing happens.
    """
    trim = _malloc_trim()
    return trim is not None and trim(0) == 1
