"""The flight recorder: a probe inside the watched process, a recorder outside it, the recording.

The probe is imported by every watched process, so nothing is imported here before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floodline.recorder._dormant import watch
    from floodline.recorder._recorder import Recorder
    from floodline.recorder._replay import Recording, read_recording

__all__ = ["Recorder", "Recording", "read_recording", "watch"]

_HOMES = {
    "Recorder": "_recorder",
    "Recording": "_replay",
    "read_recording": "_replay",
    "watch": "_dormant",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"floodline.recorder.{_HOMES[name]}"), name)
