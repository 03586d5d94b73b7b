"""The work of a task of ours, which must be done whatever becomes of the task."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from floodline.sessions._flows.requests import Flow


@dataclass(slots=True, frozen=True)
class Work:
    """What a task does, and what must be done if it was cancelled before its first step."""

    flow: Flow[Any]
    instead: Flow[Any]

    def was_not_begun(self) -> bool:
        """Return True if nothing of the flow has run."""
        return inspect.getgeneratorstate(self.flow) == inspect.GEN_CREATED
