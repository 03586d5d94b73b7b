"""What a scenario raised, as text: its own lines, without the engine's above them."""

from __future__ import annotations

import os
import traceback

MOST = 4000  # characters, the last ones
_HERE = os.path.dirname(__file__) + os.sep  # noqa: PTH120  # a prefix of texts
_IMPORT = "<frozen importlib"


def failure_text(error: BaseException) -> str:
    """Return the traceback of an error from the first line of the scenario on."""
    told = traceback.TracebackException.from_exception(error)
    stack = told.stack
    first = next((n for n, frame in enumerate(stack) if not _is_engine(frame)), len(stack))
    del stack[:first]
    lines = list(told.format())
    if not stack:
        lines = list(told.format_exception_only())
    return "".join(lines)[-MOST:].rstrip()


def _is_engine(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith((_HERE, _IMPORT))
