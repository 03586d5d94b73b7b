"""The evidence for one of the four claims about a container, and how sure it is."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from floodline.scan._facts.reasons import Reason


class State(StrEnum):
    """How sure a claim is, the surest first."""

    PROVED = "proved"
    ASSUMED = "assumed"
    UNKNOWN = "unknown"
    REFUTED = "refuted"


PROVED, ASSUMED, UNKNOWN, REFUTED = State
STATES = list(State)


class Evidence(NamedTuple):
    """The reason for a claim, how sure it is, and the line that shows it (`path:line`)."""

    reason: Reason
    state: State
    at: str


def place(path: str, line: int) -> str:
    """Return a place in the form that editors read."""
    return f"{path}:{line}"
