"""FLD102, FLD103: there is a clean-up, but it runs too rarely or never."""

from __future__ import annotations

from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.removal import END, EVENT, NEVER, PUBLIC
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD102 = Rule(
    "FLD102", "cleanup-on-one-path", "{} is emptied only by an event or at the end",
    "add a bound that needs no event: BoundedMap(idle=...), SessionScope",
)  # fmt: skip
FLD103 = Rule(
    "FLD103", "cleanup-never-called", "{} has a clean-up that nothing calls",
    "call it where the work ends, or use a bound that needs no call",
)  # fmt: skip


def _needs_an_event(case: Case) -> bool:
    return case.removal.when in (EVENT, END)


def _is_never_called(case: Case) -> bool:
    return case.removal.when in (NEVER, PUBLIC)


ON_ONE_PATH = Pattern(FLD102, _needs_an_event)
NEVER_CALLED = Pattern(FLD103, _is_never_called)
DETECTORS: tuple[Detector, ...] = (ON_ONE_PATH, NEVER_CALLED)
