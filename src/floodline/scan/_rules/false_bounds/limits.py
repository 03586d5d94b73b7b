"""FLD201: the size is compared with a limit, and the branch does not act."""

from __future__ import annotations

from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD201 = Rule(
    "FLD201", "limit-only-logs", "{} is compared with a limit, but the branch only logs",
    "remove, flush or refuse at the limit: Batch(sink, max_items=...)",
)  # fmt: skip


def _only_logs(case: Case) -> bool:
    return any(not limit.acts for _, limit in case.held.limits)


ONLY_LOGS = Pattern(FLD201, _only_logs)
DETECTORS: tuple[Detector, ...] = (ONLY_LOGS,)
