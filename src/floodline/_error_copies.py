"""A copy of an error for each caller that waited for the same result.

Raising one object in several places adds frames to its traceback each time, and keeps those frames
and their local variables alive.
"""

from __future__ import annotations

import copy
from types import TracebackType
from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def twin_of(error: E, traceback: TracebackType | None) -> E:
    """Return an equal error to raise, or the error itself if it cannot be copied.

    `traceback` is the one of the original failure, without the frames of other callers.
    """
    try:
        twin = copy.copy(error)  # runs user code, and so does the constructor it calls
    except Exception:
        return error.with_traceback(traceback)
    if type(twin) is not type(error):
        return error.with_traceback(traceback)
    twin.args = error.args  # the constructor may have changed them
    if notes := getattr(error, "__notes__", None):
        twin.__notes__ = list(notes)
    twin.__cause__, twin.__context__ = error.__cause__, error.__context__
    twin.__suppress_context__ = error.__suppress_context__
    return twin.with_traceback(traceback)
