"""FLD206: an exit stack or a task group enters more and more, and is never unwound."""

from __future__ import annotations

from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD206 = Rule(
    "FLD206", "exit-stack-or-task-group-grows",
    "{} enters more and more contexts and is never unwound",
    "open one ExitStack per unit of work",
)  # fmt: skip


def _is_stack(case: Case) -> bool:
    return case.kinds == {"stack"}


STACK = Pattern(FLD206, _is_stack)
DETECTORS: tuple[Detector, ...] = (STACK,)
