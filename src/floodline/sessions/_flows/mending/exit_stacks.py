"""Judges from an `ExitStack` whether a use that was entered through it may still be left.

Such a use has no `with` statement of its own (see `with_blocks`). The stack keeps what it must
call in a queue, which `pop_all` hands on to the next stack, and takes a callback out before the
call. A use that is not in the queue has been left, or its `__exit__` was broken off at the entry,
unless a stack is just putting it in or calling it: then its frame is on the stack of a thread,
since neither can be suspended there.
"""

from __future__ import annotations

import sys
from collections import deque
from contextlib import AsyncExitStack, ExitStack
from types import FrameType
from typing import Any

_ENTERING = (ExitStack.enter_context.__code__, AsyncExitStack.enter_async_context.__code__)
_AT_WORK = (*_ENTERING, ExitStack.__exit__.__code__, AsyncExitStack.__aexit__.__code__)
_SYNC, _ASYNC = _ENTERING


def queue_of(frame: FrameType) -> deque[Any] | None:
    """Return the queue of the stack through which `frame` enters a use, if it does."""
    code = frame.f_code
    if code is not _SYNC and code is not _ASYNC:
        return None
    queue = getattr(frame.f_locals.get("self"), "_exit_callbacks", None)
    return queue if isinstance(queue, deque) else None


def has_dropped(queue: deque[Any], hold: object) -> bool:
    """Return True if no stack will ever call the exit of `hold`, nor is about to."""
    if any(getattr(callback, "__self__", None) is hold for _, callback in list(queue)):
        return False
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            if any(frame.f_code is code for code in _AT_WORK) and _works_on(frame, queue):
                return False
            frame = frame.f_back
    return True


def _works_on(frame: FrameType, queue: deque[Any]) -> bool:
    stack = frame.f_locals.get("self")
    return getattr(stack, "_exit_callbacks", queue) is queue
