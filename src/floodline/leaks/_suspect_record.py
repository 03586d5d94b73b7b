"""The JSON records of suspects and holders, for readers that do not need the engine."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from floodline.leaks._vocabulary import LineSource, Outcome


class CallerRecord(TypedDict):
    """The nearest line of the program's own code."""

    file: str
    line: int


class SuspectRecord(TypedDict):
    """A suspect in JSON; soak and report share it.

    `caller` is present if the feeding line lies in a library, and the caller is known.
    """

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
    caller: NotRequired[CallerRecord]


class HoldingRecord(TypedDict):
    """A place that holds memory now; `bytes` is estimated and includes what is below it.

    `own` is without that, `share` is of resident memory, `within` a listed place that includes it.
    """

    owner: str
    path: str
    type: str
    items: int
    own: int
    bytes: int
    share: float
    within: str | None


class SplitRecord(TypedDict):
    """Resident memory, split by who manages it; 0 where an allocator does not report."""

    resident: int
    python: int
    malloc: int
    malloc_free: int
    mapped: int
    unexplained: int
