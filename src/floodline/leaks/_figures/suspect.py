"""The record of one suspect: what grows, what owns it, and which line feeds it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from floodline.leaks._figures.trend import Trend
from floodline.leaks._suspect_record import SuspectRecord
from floodline.leaks._vocabulary import LineSource, Outcome, Unit


def outcome_of(trend: Trend) -> Outcome:
    """Return what a container's trend says about it; on its own it never proves a bound."""
    return Outcome.GROWING if trend.kind == "growing" else Outcome.UNDECIDED


def below(length: int, cap: int | None, *, capped: bool) -> bool:
    """Return True if this length is below a limit; the limit itself may be unknown."""
    return capped and (cap is None or length <= cap * 1.05)


@dataclass(slots=True, frozen=True)
class Suspect:
    """One container that grows; `as_dict()` is the record that soak and report share."""

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
    file: str | None = None
    line: int | None = None
    line_source: LineSource | None = None
    echoes: tuple[str, ...] = ()
    function: str | None = None
    unit: Unit = "item"
    cap: int | None = None
    capped: bool = False
    caller: tuple[str, int] | None = None  # of the program, if the line is in a library

    def as_dict(self) -> SuspectRecord:
        """Return the JSON record."""
        record: SuspectRecord = {
            "rank": self.rank,
            "verdict": self.verdict,
            "owner": self.owner,
            "defined_in": self.defined_in,
            "path": self.path,
            "type": self.type,
            "holds": self.holds,
            "len": self.len,
            "per_round": self.per_round,
            "bytes_per_round": self.bytes_per_round,
            "file": self.file,
            "line": self.line,
            "line_source": self.line_source,
            "echoes": list(self.echoes),
        }
        if self.caller is not None:
            record["caller"] = {"file": self.caller[0], "line": self.caller[1]}
        return record

    def but(self, **changes: Any) -> Suspect:
        """Return a copy of the suspect with some fields replaced."""
        return replace(self, **changes)
