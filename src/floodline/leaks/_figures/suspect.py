"""The record of one suspect: what grows, who owns it, and which line feeds it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(slots=True, frozen=True)
class Suspect:
    """One container that grows; `as_dict()` is the record that soak and report share."""

    rank: int
    verdict: str
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
    line_source: str | None = None
    echoes: tuple[str, ...] = ()
    function: str | None = None
    unit: str = "item"
    cap: int | None = None
    capped: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON record."""
        record = asdict(self)
        for name in ("function", "unit", "cap", "capped"):
            del record[name]
        record["echoes"] = list(self.echoes)
        return record

    def but(self, **changes: Any) -> Suspect:
        """Return the same suspect with other values of some fields."""
        return replace(self, **changes)
