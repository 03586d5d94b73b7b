"""Judges from a frame whether the body of its `with` statement may still run.

An exception can arrive at the entry of `__exit__`, before its first line, and nothing calls it a
second time then. The frame of the `with` statement shows it. The body is what the exception table
of its code assigns to the handler of that statement, and everything from which control can flow
there without entering the statement again: the compiler leaves single jumps out of the table. A
frame that is elsewhere has left the body for good, with two exceptions: a loop has entered the
same statement again, for another use; or the call of `__exit__` is just beginning, since a thread
may be switched out before the first line of it. A call that is under way differs from one that was
broken off by the stack of its thread.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

# instructions after which control does not continue with the next one
_ENDS = frozenset(
    (
        "RETURN_VALUE",
        "RETURN_CONST",
        "RAISE_VARARGS",
        "RERAISE",
        "JUMP_FORWARD",
        "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
    )
)


class _Blocks:
    """The handlers of one code object, and how control flows in it."""

    def __init__(self, code: CodeType) -> None:
        import dis  # seldom needed, and slow to import

        steps = list(dis.get_instructions(code))
        jumps = {*dis.hasjrel, *dis.hasjabs}
        self._before: dict[int, list[int]] = {step.offset: [] for step in steps}
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if step.opcode in jumps:
                self._before[step.argval].append(step.offset)
            if following is not None and step.opname not in _ENDS:
                self._before[following.offset].append(step.offset)
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

    def may_call_exit(self, place: int) -> bool:
        """Return True if the instruction at `place` is one that calls an `__exit__`."""
        if place not in self._offsets:
            return False
        at = self._offsets.index(place)
        if self._names[at] == "WITH_EXCEPT_START":
            return True
        before = [name for name in self._names[max(0, at - 4) : at] if name != "PRECALL"]
        return self._names[at] == "CALL" and before[-3:] == ["LOAD_CONST"] * 3

    def is_inside(self, place: int, site: int, body: int) -> bool:
        """Return True if control at `place` may still be in the body entered at `site`."""
        seen: set[int] = set()
        handler = self._covering(place)
        while handler is not None and handler not in seen:
            if handler == body:
                return True
            seen.add(handler)
            handler = self._covering(handler)
        return place in self._leading_to(site, body)

    def _leading_to(self, site: int, body: int) -> set[int]:
        """Return the places from which control can come into the body, but not past `site`."""
        found = {place for place in self._offsets if self._covering(place) == body}
        waiting = list(found)
        while waiting:
            for place in self._before[waiting.pop()]:
                if place not in found and place != site:
                    found.add(place)
                    waiting.append(place)
        return found


_blocks = lru_cache(maxsize=256)(_Blocks)


def has_left(frame: FrameType, site: int) -> bool:
    """Return True if the body of the statement that `frame` entered at `site` is certainly over."""
    blocks, place = _blocks(frame.f_code), frame.f_lasti
    body = blocks.body_of(site)
    if body is None or place == site:  # entering it, this time or once more
        return False
    if blocks.is_inside(place, site, body):
        return False
    return not (blocks.may_call_exit(place) and _is_running(frame))


def _is_running(frame: FrameType) -> bool:
    """Return True if `frame` is on the stack of a thread, so that a call of it is under way."""
    for top in sys._current_frames().values():
        one: FrameType | None = top
        while one is not None:
            if one is frame:
                return True
            one = one.f_back
    return False
