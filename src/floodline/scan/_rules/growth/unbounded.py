"""FLD101: it grows, nothing removes from it, and no other rule says more."""

from __future__ import annotations

from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD101 = Rule(
    "FLD101", "unbounded-container", "{} grows and nothing removes from it",
    "bound it: BoundedMap(max_items=..., idle=...) or deque(maxlen=...)",
)  # fmt: skip


def _is_any(_: Case) -> bool:
    return True


ANY = Pattern(FLD101, _is_any)
DETECTORS: tuple[Detector, ...] = (ANY,)
