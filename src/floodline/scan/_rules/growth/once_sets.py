"""FLD107: a set that remembers every value, to do something once for each."""

from __future__ import annotations

from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD107 = Rule(
    "FLD107", "once-set-by-user-data", "{} remembers every value it has ever seen",
    "bound it: BoundedMap(max_items=...) as a set of recent values",
)  # fmt: skip


def _asks_whether_it_is_there(case: Case) -> bool:
    return "set" in case.kinds and "absent" in case.change.marks


SEEN_VALUES = Pattern(FLD107, _asks_whether_it_is_there)
DETECTORS: tuple[Detector, ...] = (SEEN_VALUES,)
