"""Reads the locals of frames without keeping alive what the program drops."""

from __future__ import annotations

import sys
import types
from typing import Any

from floodline.leaks._objects.running_frames import KNOWN_LAYOUT, running_locals

READS_RUNNING = sys.version_info >= (3, 13)  # without pinning what the program drops
_OPTIMIZED = 0x1  # a function's frame, whose `f_locals` is a copy
_OWN = tuple(f"floodline.{part}" for part in ("leaks", "soak", "pytest_plugin", "recorder"))


SEES_RUNNING = READS_RUNNING or KNOWN_LAYOUT


def variables_of(frame: types.FrameType) -> dict[str, Any]:
    """Return the variables of a function that may be running in another thread."""
    return read_locals(frame) if READS_RUNNING else running_locals(frame)


def code_label(code: types.CodeType, names: dict[str, Any]) -> str:
    """Return `module.outer.<locals>.inner` for a code object and its globals."""
    module = dict.get(names, "__name__")
    return f"{module}.{code.co_qualname}" if type(module) is str else code.co_qualname


def frame_of(holder: Any) -> types.FrameType | None:
    """Return the frame of a generator or coroutine, a frame itself, None for anything else."""
    kind = type(holder)
    if kind is types.GeneratorType:
        frame: types.FrameType | None = holder.gi_frame
    elif kind is types.CoroutineType:
        frame = holder.cr_frame
    elif kind is types.AsyncGeneratorType:
        frame = holder.ag_frame
    else:
        frame = holder if kind is types.FrameType else None
    return frame


def read_locals(frame: types.FrameType) -> dict[str, Any]:
    """Return the locals of a function's frame; nothing for the body of a module or class.

    Before 3.13 reading them creates a copy that stays in the frame and keeps alive what the
    program drops later, so the copy is emptied again unless something else holds it too.
    """
    if not frame.f_code.co_flags & _OPTIMIZED:
        return {}
    if READS_RUNNING:  # pragma: no cover  # seen only there
        return dict(frame.f_locals)
    held = frame.f_locals
    found = dict(held)
    if sys.getrefcount(held) <= 3:
        held.clear()
    return found


def read_local(frame: types.FrameType, name: str) -> Any:
    """Return one variable of a function's frame, None if it is not bound.

    It may be called in a trace function. Before 3.13 the interpreter then restores all variables
    from the copy that is read here, so that copy is not emptied.
    """
    return frame.f_locals.get(name)


def is_ours(frame: types.FrameType) -> bool:
    """Return True if a frame runs the engine itself, or the file that starts it in a child."""
    name = dict.get(frame.f_globals, "__name__")
    if type(name) is str and own_module(name):
        return True
    return dict.__contains__(frame.f_globals, "_floodline_engine")


def own_module(name: str) -> bool:
    """Return True if a module belongs to the engine, whose growth is not the program's."""
    return name.startswith(_OWN)


def running_frames() -> list[types.FrameType]:
    """Return the frames that are running, except the engine's."""
    found = []
    for top in sys._current_frames().values():
        frame: types.FrameType | None = top
        while frame is not None:
            if not is_ours(frame):
                found.append(frame)
            frame = frame.f_back
        del top  # a frame that holds itself would keep its variables alive
    return found


def frames_of(label: str) -> list[types.FrameType]:
    """Return the running frames of a function."""
    return [f for f in running_frames() if code_label(f.f_code, f.f_globals) == label]
