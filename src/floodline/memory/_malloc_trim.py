"""Returns free memory that malloc keeps to the system, if the C library can (glibc)."""

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
    """Give malloc's free pages back to the system; return True if there were any.

    If the C library has no `malloc_trim`, nothing happens.
    """
    trim = _malloc_trim()
    return trim is not None and trim(0) == 1
