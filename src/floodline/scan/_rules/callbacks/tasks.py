"""FLD401, FLD402: tasks and futures that are kept after they are done."""

from __future__ import annotations

from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD401 = Rule(
    "FLD401", "task-never-discarded", "{} keeps tasks that are done",
    "task.add_done_callback(tasks.discard)",
)  # fmt: skip
FLD402 = Rule(
    "FLD402", "futures-not-reaped", "{} keeps futures that are done",
    "take results as they complete (as_completed), or drop each future when it is done",
)  # fmt: skip


def _is_task(case: Case) -> bool:
    return case.change.value == "task"


def _is_future(case: Case) -> bool:
    return case.change.value == "future"


TASK = Pattern(FLD401, _is_task)
FUTURE = Pattern(FLD402, _is_future)
DETECTORS: tuple[Detector, ...] = (TASK, FUTURE)
