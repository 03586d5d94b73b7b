"""An error for each of those who waited for the same thing: one object for all would grow.

Each raise adds frames to the traceback of an error, and keeps them and their locals alive.
"""

from __future__ import annotations

import copy
from types import TracebackType
from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def twin_of(error: E, traceback: TracebackType | None) -> E:
    """Return an equal error to raise, or the same one if it cannot be copied.

    `traceback` is that of the place where it happened; what was added since belongs to others.
    """
    try:
        twin = copy.copy(error)  # user code, like the constructor that it calls
    except Exception:
        return error.with_traceback(traceback)
    if type(twin) is not type(error):
        return error.with_traceback(traceback)
    twin.args = error.args  # a constructor may have made others of them
    if notes := getattr(error, "__notes__", None):
        twin.__notes__ = list(notes)
    twin.__cause__, twin.__context__ = error.__cause__, error.__context__
    twin.__suppress_context__ = error.__suppress_context__
    return twin.with_traceback(traceback)
