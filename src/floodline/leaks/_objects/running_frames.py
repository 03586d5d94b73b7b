"""Reads the variables of running functions before Python 3.13 without touching their frames.

There `frame.f_locals` makes a copy that stays in the frame, keeps alive what the program drops, and
is written back if a tracer or profiler is active. So the variables are read from the interpreter's
own frame, if a check shows that it is laid out as this module knows it.
"""

from __future__ import annotations

import gc
import struct
import sys
import types
from typing import Any

try:
    import ctypes

    _BUILT = True
except ImportError:  # pragma: no cover  # a Python built without it
    _BUILT = False

_POINTER = struct.calcsize("P")
_FRAME = 2 * _POINTER + _POINTER  # in a frame object: the header, the frame before it
_LOCALS = 8 * _POINTER + 8  # in the interpreter's frame: eight pointers and some flags
_OPTIMIZED = 0x1  # a function's frame


def _names(code: types.CodeType) -> tuple[str, ...]:
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    return (*code.co_varnames, *cells, *code.co_freevars)


def _read(frame: types.FrameType) -> dict[str, Any]:
    """Return the variables of a function's frame that are bound."""
    at = ctypes.c_void_p.from_address(id(frame) + _FRAME).value
    found: dict[str, Any] = {}
    if not at:
        return found
    for number, name in enumerate(_names(frame.f_code)):
        place = at + _LOCALS + number * _POINTER
        if ctypes.c_void_p.from_address(place).value:
            value: Any = ctypes.py_object.from_address(place).value
            if type(value) is types.CellType:
                value = next(iter(gc.get_referents(value)), None)
            found[name] = value
    return found


def _is_known() -> bool:
    """Return True if variables, cells and unbound names of a running frame read as they should."""

    def inner(first: object, second: object) -> bool:
        third = [second]
        read = _read(sys._getframe())
        same = read.get("first") is first and read.get("third") is third
        return same and read.get("second") is second and "unbound" not in read and bool(outer)
        unbound = (lambda: second, 1)  # makes a cell of a parameter, and is never bound
        return bool(unbound)

    outer = [object()]
    return inner(object(), [])


def _check() -> bool:
    supported = sys.implementation.name == "cpython" and sys.version_info[:2] in ((3, 11), (3, 12))
    return supported and _BUILT and sys.maxsize > 1 << 32 and _is_known()


KNOWN_LAYOUT = _check()


def running_locals(frame: types.FrameType) -> dict[str, Any]:
    """Return the variables of a function's frame; nothing for the body of a module or class."""
    if not KNOWN_LAYOUT or not frame.f_code.co_flags & _OPTIMIZED:
        return {}
    return _read(frame)
