"""The record of what a live watch answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from floodline.leaks._figures.own_holders import Filling
from floodline.leaks._figures.suspect import Suspect
from floodline.leaks._suspect_record import HoldingRecord, SplitRecord
from floodline.leaks._vocabulary import Outcome, Where


@dataclass(slots=True, frozen=True, kw_only=True)
class LiveAnswer:
    """The verdict so far; rates are per second of watching. It holds no object of the program."""

    verdict: Outcome
    where: Where
    suspects: tuple[Suspect, ...] = ()
    needed: dict[str, Any] | None = None
    watched_seconds: float = 0.0
    objects: int = 0
    walks: int = 0
    expected_seconds: float = 0.0
    cost_seconds: float = 0.0
    blind_spots: tuple[str, ...] = ()
    holders: tuple[HoldingRecord, ...] = ()
    split: SplitRecord | None = None
    own_bytes: int = 0
    filling: tuple[Filling, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {
            "verdict": str(self.verdict),
            "where": str(self.where),
            "unit": "second",
            "suspects": [suspect.as_dict() for suspect in self.suspects],
            "needed": dict(self.needed) if self.needed else None,
            "watched_seconds": round(self.watched_seconds, 3),
            "objects": self.objects,
            "walks": self.walks,
            "expected_seconds": round(self.expected_seconds, 1),
            "cost_seconds": round(self.cost_seconds, 6),
            "blind_spots": list(self.blind_spots),
            "holders": [dict(one) for one in self.holders],
            "split": dict(self.split) if self.split else None,
            "own_bytes": self.own_bytes,
            "filling": [
                {"kind": one.kind, "name": one.name, "limit": one.limit, "full_in": one.left}
                for one in self.filling
            ],
        }
