"""The flight recorder: a probe inside the watched process, a recorder outside it, the recording.

Every watched process imports the probe, so this module imports nothing until it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodline._lazy import lazy_names

if TYPE_CHECKING:
    from floodline.recorder._probe.dormant import watch
    from floodline.recorder._recorder import Recorder
    from floodline.recorder._recording.replay import Recording, read_recording

__all__ = ["Recorder", "Recording", "read_recording", "watch"]

_HOMES = {
    "Recorder": "_recorder",
    "Recording": "_recording.replay",
    "read_recording": "_recording.replay",
    "watch": "_probe.dormant",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
