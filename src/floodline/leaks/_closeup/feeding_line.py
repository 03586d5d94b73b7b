"""Finds the line that feeds a container by watching lengths from one line event to the next."""

from __future__ import annotations

import gc
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from floodline.leaks._objects.anatomy import is_standard
from floodline.leaks._objects.frames import code_label, is_ours
from floodline.leaks._objects.territory import is_program_file
from floodline.leaks._source.place import Place
from floodline.leaks._source.task_origins import Births

MAX_STAYED = 10_000
_LOOP = "asyncio.base_events.BaseEventLoop._run_once"
Length = Callable[[], int]


class Watch:
    """The lengths of one suspect's containers, and the lines whose growth has stayed.

    What a later line removes cancels the newest growth, so that a line that fills and empties in
    turn is not shown, but the one whose growth is never removed.
    """

    def __init__(
        self,
        lengths: list[Length],
        owner: str,
        *,
        private: str | None = None,
        told: Callable[[], Place | None] | None = None,
    ) -> None:
        self.lengths, self.owner, self.private = lengths, owner, private
        self.told = told  # knows the line better than line events do
        self.blind = False  # other threads are running that cannot be traced
        self._last = [length() for length in lengths]
        self._stayed: list[list[tuple[Place, int]]] = [[] for _ in lengths]

    @property
    def fed(self) -> bool:
        """True if growth was seen that has stayed."""
        return any(self._stayed)

    def compare(self, place: Callable[[Watch], Place | None]) -> None:
        """Read all lengths, and attribute growth to the line that `place` returns."""
        for index, length in enumerate(self.lengths):
            change = length() - self._last[index]
            if change:
                self._last[index] += change
                self._book(self._stayed[index], change, place)

    def _book(
        self, stayed: list[tuple[Place, int]], change: int, place: Callable[[Watch], Place | None]
    ) -> None:
        while change < 0 and stayed:
            at, size = stayed.pop()
            change += size
            if change > 0:
                stayed.append((at, change))
                return
        if change <= 0:
            return
        found = self.told() if self.told else place(self)
        if found is not None:
            stayed.append((found, change))
            del stayed[:-MAX_STAYED]

    def place(self) -> Place | None:
        """Return the line with the most growth that has stayed."""
        sums: Counter[Place] = Counter()
        for stayed in self._stayed:
            for place, size in stayed:
                sums[place] += size
        return sums.most_common(1)[0][0] if sums else None


class Feeder:
    """Traces lines while entered, only if no other tracer is set, and only the first suspects."""

    def __init__(self, watches: list[Watch]) -> None:
        self.watches = watches
        self.active = False
        self._at: dict[int, tuple[types.FrameType, int]] = {}
        self._births = Births(_place_in_program)
        self._tool: int | None = None
        self._collecting = gc.isenabled()

    def __enter__(self) -> Feeder:
        self.active = self._start_monitoring() if sys.version_info >= (3, 12) else self._settrace()
        if self.active:
            gc.disable()  # else finalizers would run inside the tracer, with their lines unseen
        return self

    def __exit__(self, *_: object) -> None:
        if not self.active:
            return
        if self._tool is not None:
            self._stop_monitoring()
        else:
            sys.settrace(None)
            threading.settrace(None)
            self._trace_callers(None)
        self._at.clear()
        self.active = False
        if self._collecting:
            gc.enable()

    def _settrace(self) -> bool:
        if sys.gettrace() is not None:
            return False
        for watch in self.watches:
            watch.blind = len(sys._current_frames()) > 1
        threading.settrace(self._on_trace)
        sys.settrace(self._on_trace)
        self._trace_callers(self._on_trace)  # a round may be part of a running function
        return True

    def _trace_callers(self, tracer: Any) -> None:
        frame: types.FrameType | None = sys._getframe()
        while frame is not None:
            if not is_ours(frame):
                frame.f_trace = tracer
            frame = frame.f_back

    def _start_monitoring(self) -> bool:
        tools: Any = sys.monitoring  # type: ignore[attr-defined]  # only asked for on 3.12
        free = next((n for n in (4, 3, 5, 2, 1, 0) if tools.get_tool(n) is None), None)
        if free is None:
            return False
        self._tool = free
        tools.use_tool_id(free, "floodline")
        events = tools.events
        for event in (events.PY_START, events.PY_RESUME, events.LINE):
            tools.register_callback(free, event, self._on_line)
        for event in (events.PY_RETURN, events.PY_YIELD, events.PY_UNWIND):
            tools.register_callback(free, event, self._on_leave)
        tools.set_events(
            free,
            events.PY_START | events.PY_RESUME | events.LINE
            | events.PY_RETURN | events.PY_YIELD | events.PY_UNWIND,
        )  # fmt: skip
        return True

    def _stop_monitoring(self) -> None:
        tools: Any = sys.monitoring  # type: ignore[attr-defined]  # only asked for on 3.12
        tools.set_events(self._tool, 0)
        tools.free_tool_id(self._tool)
        self._tool = None

    def _on_line(self, *_: object) -> None:
        frame = sys._getframe(1)
        self._moved(frame, frame.f_lineno)

    def _on_leave(self, *_: object) -> None:
        back = sys._getframe(1).f_back
        self._moved(back, back.f_lineno if back else 0)

    def _on_trace(self, frame: types.FrameType, event: str, _: object) -> Any:
        if not self.active:  # a frame that was elsewhere when the trace ended
            return None
        if event == "return":
            back = frame.f_back
            self._moved(back, back.f_lineno if back else 0)
        else:
            self._moved(frame, frame.f_lineno)
        return self._on_trace

    def _moved(self, frame: types.FrameType | None, line: int | None) -> None:
        """Attribute growth since the last event to the line that has just run."""
        thread = threading.get_ident()
        if frame is not None:
            self._births.note(frame)
        now = (frame, line or 0) if frame is not None else None
        before = self._at.get(thread)
        if before is None and frame is not None and _begins(frame):
            before = now
        self._compare(before)
        if now is None:
            self._at.pop(thread, None)
        else:
            self._at[thread] = now

    def _compare(self, before: tuple[types.FrameType, int] | None) -> None:
        for watch in self.watches:
            watch.compare(lambda watch: _place(*before, watch, self._births) if before else None)


def _place(
    frame: types.FrameType, line: int, watch: Watch, births: Births | None = None
) -> Place | None:
    """Return the line to show: not one of the standard library below a line of the program.

    A container that only one function can reach (a cell, a local) is fed where that function hands
    it out, if it is on the stack; what a library's task feeds, where that task was started.
    """
    chain = _chain(frame, line)
    labels = [_label(at) for at, _ in chain]
    if watch.private in labels:
        return _shown(*chain[labels.index(watch.private)])
    if births is not None and _LOOP in labels:
        inside = _first_of_program(chain[: labels.index(_LOOP)]) or births.place()
        if inside is not None:
            return inside
    return _first_of_program(chain) or (_shown(*chain[0]) if chain else None)


def _place_in_program(frame: types.FrameType) -> Place | None:
    return _first_of_program(_chain(frame, frame.f_lineno))


def _first_of_program(chain: list[tuple[types.FrameType, int]]) -> Place | None:
    for at, number in chain:
        if not is_standard(_label(at)):
            return replace(_shown(at, number), caller=_caller(chain, at))
    return None


def _caller(
    chain: list[tuple[types.FrameType, int]], shown: types.FrameType
) -> tuple[str, int] | None:
    """Return the nearest line of the program's own code, if what is shown is a library's."""
    if is_program_file(shown.f_code.co_filename):
        return None
    places = ((at.f_code.co_filename, number) for at, number in chain)
    return next((one for one in places if is_program_file(one[0])), None)


def _chain(frame: types.FrameType, line: int) -> list[tuple[types.FrameType, int]]:
    """Return the callers of a frame; the caller of a new thread is the code that starts it."""
    chain = _callers(frame, line)
    if chain and _label(chain[-1][0]) == "threading.Thread._bootstrap":
        chain += _starting()
    return chain


def _callers(frame: types.FrameType, line: int) -> list[tuple[types.FrameType, int]]:
    chain = [(frame, line)]
    back = frame.f_back
    while back is not None and len(chain) < 200:
        chain.append((back, back.f_lineno))
        back = back.f_back
    return [(at, number) for at, number in chain if not is_ours(at)]


def _starting() -> list[tuple[types.FrameType, int]]:
    """Return the callers of the thread that waits for another to start."""
    for frame in sys._current_frames().values():
        chain = _callers(frame, frame.f_lineno)
        if any(_label(at) == "threading.Thread.start" for at, _ in chain):
            return chain
    return []


def _begins(frame: types.FrameType) -> bool:
    """Return True if a thread runs its first function; until then only lists of threads grew."""
    back = frame.f_back
    return back is not None and _label(back) == "threading.Thread._bootstrap_inner"


def _label(frame: types.FrameType) -> str:
    return code_label(frame.f_code, frame.f_globals)


def _shown(frame: types.FrameType, line: int) -> Place:
    return Place(frame.f_code.co_filename, line, frame.f_code.co_name)
