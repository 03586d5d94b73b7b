"""Whether the body of a `with` statement may still run, read from where its frame stands.

An exception can arrive at the entry of `__exit__`, before the first line of it; nobody calls it a
second time then. But the frame of the `with` statement shows it: the body is what the exception
table of its code covers by the handler of that statement, and no way leads out of the body except
past `__exit__`. So a frame that stands elsewhere has left it, finished or not, for good; unless a
loop has entered the same statement anew, for another use.
"""

from __future__ import annotations

from functools import lru_cache
from types import CodeType, FrameType
from typing import Any


class _Blocks:
    """The handlers of one code object."""

    def __init__(self, code: CodeType) -> None:
        import dis  # seldom needed, and slow to import

        steps = list(dis.get_instructions(code))
        self._names = [step.opname for step in steps]
        self._offsets = [step.offset for step in steps]
        table: Any = dis.Bytecode(code)
        self._handlers: list[tuple[int, int, int]] = [
            (entry.start, entry.end, entry.target) for entry in table.exception_entries
        ]

    def body_of(self, site: int) -> int | None:
        """Return the handler of the `with` statement that calls `__enter__` at `site`."""
        if site not in self._offsets:
            return None
        at = self._offsets.index(site)
        if self._names[at] == "BEFORE_WITH":
            return self._handler_above(at + 1, at + 2)
        if self._names[at] == "SEND" and "BEFORE_ASYNC_WITH" in self._names[max(0, at - 3) : at]:
            return self._handler_above(at + 1, at + 7)
        return None  # entered by hand, or by an ExitStack

    def _handler_above(self, first: int, last: int) -> int | None:
        before = self._covering(self._offsets[first - 1])
        for place in self._offsets[first:last]:
            handler = self._covering(place)
            if handler is not None and handler != before and self._ends_with(handler):
                return handler
        return None

    def _ends_with(self, handler: int) -> bool:
        at = self._offsets.index(handler)
        return "WITH_EXCEPT_START" in self._names[at : at + 2]

    def _covering(self, place: int) -> int | None:
        for start, end, target in self._handlers:
            if start <= place < end:
                return target
        return None

    def is_inside(self, place: int, body: int) -> bool:
        """Return True if an exception at `place` would come to the handler `body` in the end."""
        seen: set[int] = set()
        handler = self._covering(place)
        while handler is not None and handler not in seen:
            if handler == body:
                return True
            seen.add(handler)
            handler = self._covering(handler)
        return False


_blocks = lru_cache(maxsize=256)(_Blocks)


def has_left(frame: FrameType, site: int) -> bool:
    """Return True if the body of the statement that `frame` entered at `site` is surely over."""
    blocks, place = _blocks(frame.f_code), frame.f_lasti
    body = blocks.body_of(site)
    if body is None or place == site:  # entering it, this time or once more
        return False
    return not blocks.is_inside(place, body)
