"""FLD106: a lock for every key, and none of them is ever removed."""

from __future__ import annotations

from floodline.scan._facts.vocabulary import LOCKS
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Held
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD106 = Rule(
    "FLD106", "per-key-lock-map", "{} keeps a lock for every key it has ever seen",
    "drop the lock with its key, or use a fixed number of striped locks",
)  # fmt: skip


def makes_locks(held: Held) -> bool:
    """Return True if a `defaultdict` creates a lock for each key it is asked for."""
    return any(made.fills in LOCKS for made in held.made)


def _is_lock(case: Case) -> bool:
    return case.change.value == "lock"


LOCK = Pattern(FLD106, _is_lock)
DETECTORS: tuple[Detector, ...] = (LOCK,)
