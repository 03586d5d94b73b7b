"""FLD202: only a slice of a list is read, while the list itself keeps growing."""

from __future__ import annotations

from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD202 = Rule(
    "FLD202", "trimmed-copy-only", "{} is trimmed only where it is read",
    "trim the stored list: BoundedLog(max_items=...), Conversation",
)  # fmt: skip


def _is_read_in_part(case: Case) -> bool:
    return bool(case.held.slices) and case.kinds == {"list"}


READ_IN_PART = Pattern(FLD202, _is_read_in_part)
DETECTORS: tuple[Detector, ...] = (READ_IN_PART,)
