"""Finds where a kept error was raised again: each raise makes its traceback longer."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

from floodline.leaks._objects.anatomy import derives
from floodline.leaks._source.place import Place

MAX_NEW = 1000  # steps of a traceback from where it was caught to where it was raised
_traceback: Callable[[Any], types.TracebackType | None] = vars(BaseException)[
    "__traceback__"
].__get__


class Raised:
    """The kept errors of one suspect; `times` counts raises, `place` is the last one.

    Before 3.12 the traceback is set when the error is caught, far from the line that raised it;
    only the traceback itself knows that line.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self._errors = [one for one in values if derives(type(one), BaseException)]
        self._last: list[types.TracebackType | None] = list(map(_traceback, self._errors))
        self._times = 0
        self.place: Place | None = None

    def __bool__(self) -> bool:
        return bool(self._errors)

    def times(self) -> int:
        """Check all errors; return how often one has had a new traceback so far."""
        for index, error in enumerate(self._errors):
            now = _traceback(error)
            if now is not None and now is not self._last[index]:
                self._times += 1
                self.place = _innermost(now, self._last[index])
                self._last[index] = now
        return self._times


def _innermost(now: types.TracebackType, before: types.TracebackType | None) -> Place:
    """Return the line of the last step that a traceback has gained."""
    at = now
    for _ in range(MAX_NEW):
        if at.tb_next is None or at.tb_next is before:
            break
        at = at.tb_next
    code = at.tb_frame.f_code
    return Place(code.co_filename, at.tb_lineno, code.co_name)
