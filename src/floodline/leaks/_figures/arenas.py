"""Reads how much memory Python's own allocator has mapped; only its debug output says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

_CURRENT = re.compile(rb"# arenas allocated current\s*=\s*([\d,]+)")
_EACH = re.compile(rb"arenas \* (\d+) bytes/arena")


@cache
def _printer() -> Callable[[], bytes] | None:
    """Return a function that has the allocator print into memory, None if unavailable.

    Redirecting file descriptor 2 instead would lose what other threads write to it meanwhile.
    """
    import ctypes

    try:
        c = ctypes.CDLL(None)
        show, stream, close, free = (
            ctypes.pythonapi._PyObject_DebugMallocStats,
            *(c.open_memstream, c.fclose, c.free),
        )
    except (AttributeError, OSError, TypeError):  # Windows, or the symbols are not exported
        return None
    show.argtypes = close.argtypes = free.argtypes = [ctypes.c_void_p]
    stream.restype = ctypes.c_void_p
    stream.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)]

    def printed() -> bytes:
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        file = stream(ctypes.byref(text), ctypes.byref(size))
        if not file:
            return b""
        show(file)
        close(file)
        found = ctypes.string_at(text, size.value)
        free(text)
        return found

    return printed


def arena_bytes() -> int | None:
    """Return the bytes of all arenas, None if the allocator is not pymalloc or cannot be asked."""
    printed = _printer()
    return _parsed(printed()) if printed is not None else None


def _parsed(text: bytes) -> int | None:
    current, each = _CURRENT.search(text), _EACH.search(text)
    if current is None or each is None:
        return None
    return int(current[1].replace(b",", b"")) * int(each[1])
