"""Records where tasks were started: the program's only line behind one waiting in a library."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from floodline.leaks._source.place import Place

MAX_NOTED = 10_000


class Births:
    """The place that started each task seen so far, by the identity of its coroutine."""

    def __init__(self, place: Callable[[types.FrameType], Place | None]) -> None:
        self._place = place
        self._noted: dict[int, Place] = {}
        self._create = _code_of_create_task()

    def note(self, frame: types.FrameType) -> None:
        """Record the caller if a frame creates a new task."""
        if frame.f_code is not self._create:
            return
        begun = frame.f_locals.get("coro")  # inside a tracer: changes there would be written back
        place = self._place(frame)
        if begun is not None and place is not None:
            if len(self._noted) >= MAX_NOTED:
                self._noted.clear()
            self._noted[id(begun)] = place

    def place(self) -> Place | None:
        """Return where the running task was started."""
        if self._create is None:
            return None
        tasks: Any = sys.modules["asyncio"].tasks
        try:
            task = tasks.current_task()
        except RuntimeError:  # no loop is running in this thread
            return None
        return self._noted.get(id(task.get_coro())) if task is not None else None


def _code_of_create_task() -> types.CodeType | None:
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    code: types.CodeType = asyncio.base_events.BaseEventLoop.create_task.__code__
    return code
