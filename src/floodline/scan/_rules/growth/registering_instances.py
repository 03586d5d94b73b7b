"""FLD110: every instance puts itself into a container when it is created."""

from __future__ import annotations

from floodline.scan._facts.origins import FRESH_SELF
from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD110 = Rule(
    "FLD110", "instance-registers-itself", "{} keeps every instance ever created",
    "use weakref.WeakSet, or remove the instance when it closes",
)  # fmt: skip


def _puts_itself_in(case: Case) -> bool:
    change = case.change
    maker = change.function.rpartition(".")[2] in ("__init__", "__post_init__", "__new__")
    return maker and (change.value == "self" or change.key == FRESH_SELF)


ITSELF = Pattern(FLD110, _puts_itself_in)
DETECTORS: tuple[Detector, ...] = (ITSELF,)
