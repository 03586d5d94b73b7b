"""FLD108: a local that an inner function fills, and that lives as long as that function."""

from __future__ import annotations

from floodline.scan._facts.references import LOCAL
from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD108 = Rule(
    "FLD108", "captured-container", "{} is captured by a function that lives on",
    "bound it, or use functools.lru_cache(maxsize=...)",
)  # fmt: skip


def _is_captured(case: Case) -> bool:
    made = case.held.made[0]
    inner = f"{made.function}.<locals>."
    return made.ref.kind == LOCAL and case.change.function.startswith(inner)


# whether the closure's holder runs it is not seen
CAPTURED = Pattern(FLD108, _is_captured, lives_unseen=True)
DETECTORS: tuple[Detector, ...] = (CAPTURED,)
