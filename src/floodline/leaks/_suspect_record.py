"""The JSON record of a suspect, for readers of answers that do not need the engine."""

from __future__ import annotations

from typing import TypedDict

from floodline.leaks._vocabulary import LineSource, Outcome


class SuspectRecord(TypedDict):
    """A suspect in JSON; soak and report share it."""

    rank: int
    verdict: Outcome
    owner: str
    defined_in: str
    path: str
    type: str
    holds: str
    len: int
    per_round: float
    bytes_per_round: float
    file: str | None
    line: int | None
    line_source: LineSource | None
    echoes: list[str]
