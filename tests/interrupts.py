"""Raise an exception at the n-th place where CPython would deliver an asynchronous one.

Places are the entry of a Python function and the first step of a resumed generator (RESUME), the
return of a call into C, and a jump backwards: where the interpreter looks at its eval breaker. A
trace function that sees every opcode raises there and nowhere else; where the next instruction is
covered by other handlers than the place itself, nothing is raised, for the interpreter would unwind
differently (`skipped` counts them).
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

CALLS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX"}
INLINES_STAR_CALLS = sys.version_info >= (3, 12)


class Interrupt(BaseException):
    """What arrives."""


class SoftInterrupt(Exception):
    """What arrives if the handler raises an ordinary exception, as a soft time limit does."""


class _Facts:
    def __init__(self, code: CodeType) -> None:
        self.ops: dict[int, tuple[str, int]] = {}
        self.before: dict[int, int] = {}  # the instruction above, in the order of the code
        last = 0
        for instruction in dis.get_instructions(code):
            self.ops[instruction.offset] = (instruction.opname, instruction.arg or 0)
            self.before[instruction.offset] = last
            last = instruction.offset
        self._table = dis.Bytecode(code).exception_entries

    def handler(self, offset: int) -> int:
        return next((e.target for e in self._table if e.start <= offset < e.end), -1)


facts = lru_cache(maxsize=None)(_Facts)


class Interrupter:
    """Counts places below the functions that `inside` accepts; raises at those numbered."""

    def __init__(
        self,
        inside: Callable[[FrameType], bool],
        *places: int,
        error: type[BaseException] = Interrupt,
    ) -> None:
        self._inside, self._places, self._error = inside, set(places), error
        self.count = self.skipped = 0
        self.raised: list[str] = []
        self._before: Any = None
        self._roots = 0  # frames of `inside` under way
        self._previous: dict[FrameType, int] = {}
        self._called: set[FrameType] = set()  # frames whose current call entered Python code

    def __enter__(self) -> Interrupter:
        self._before = sys.gettrace()  # as of coverage
        sys.settrace(self._on_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        self._previous.clear()
        self._called.clear()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out what is done in the block."""
        sys.settrace(None)
        yield
        sys.settrace(self._on_call)

    def raise_at_exit(self) -> None:
        """Raise at the entry of the next function that `inside` accepts."""
        self._places = {self.count + 1}
        sys.settrace(self._on_call)

    def _place(self, frame: FrameType, what: str) -> None:
        self.count += 1
        if self.count in self._places:
            self.raised.append(f"{frame.f_code.co_qualname}:{frame.f_lineno} {what}")
            raise self._error(self.raised[-1])

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event != "call":
            return None
        root = self._inside(frame)
        if not root and not self._roots:
            return None
        if "interrupts.py" in frame.f_code.co_filename or _is_user_code(frame):
            return None
        if root:
            self._roots += 1
        if frame.f_back is not None:
            self._called.add(frame.f_back)
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self._previous[frame] = -1
        name, argument = facts(frame.f_code).ops.get(frame.f_lasti, ("RESUME", 0))
        try:
            if name != "RESUME" or argument & 3 < 2:
                self._place(frame, "resume")
        except BaseException:
            if root:
                self._roots -= 1
            raise
        return self._on_step

    def _on_step(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return":
            self._previous.pop(frame, None)
            self._called.discard(frame)
            if self._inside(frame):
                self._roots -= 1
        elif event == "opcode":
            known, now = facts(frame.f_code), frame.f_lasti
            before = self._previous.get(frame, -1)
            self._previous[frame] = now
            if before >= 0:
                self._after(frame, known, before, now)
        return self._on_step

    def _after(self, frame: FrameType, known: _Facts, before: int, now: int) -> None:
        name = known.ops[before][0]
        through_python = frame in self._called
        self._called.discard(frame)
        if name == "JUMP_BACKWARD":
            attributed = known.before[now] if sys.version_info < (3, 12) else before
        elif name in CALLS:
            star = name == "CALL_FUNCTION_EX" and not INLINES_STAR_CALLS
            if through_python and not star:
                return
            attributed = before
        else:
            return
        if now in known.ops and known.ops[now][0] == "PUSH_EXC_INFO":
            return  # the call raised
        if known.handler(attributed) != known.handler(now):
            self.skipped += 1
            return
        self._place(frame, f"after {name}")


def _is_user_code(frame: FrameType) -> bool:
    return frame.f_code.co_filename.rpartition("/")[2].startswith("test_")


def in_methods(*codes: CodeType) -> Callable[[FrameType], bool]:
    """Accept the frames of these functions."""
    known = set(codes)
    return lambda frame: frame.f_code in known
