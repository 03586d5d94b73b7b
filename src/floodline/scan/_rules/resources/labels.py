"""FLD504: a metric label with an open set of values."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts, Mark
from floodline.scan._facts.origins import UNKNOWN as UNKNOWN_ORIGIN
from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.reach import Often
from floodline.scan._rules.detectors import Check, Detector

FLD504 = Rule(
    "FLD504", "label-cardinality", "{} creates a time series for every value it sees",
    "put ids in logs or traces; a label should have only a few values", preview=True,
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    LIVES = "a time series lives as long as the process"
    COUNTS = "{}() updates the metric each time it runs"
    LABEL = "label {}: {}"
    NEVER_REMOVED = "a time series is never removed"


def _labels(judge: Judge) -> Iterator[Finding]:
    for file, mark in judge.marks("label"):
        yield from _label(judge, file, mark)


def _label(judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    at = place(file.path, mark.at.line)
    state, why = judge.paths.origin(file.module, mark.function, mark.origin or UNKNOWN_ORIGIN)
    often = judge.reach.often(f"{file.module}:{mark.function}")
    if state != PROVED or often is not Often.REPEATS:
        return
    proofs = (
        Evidence(Told.LIVES(), PROVED, at),
        Evidence(Told.COUNTS(mark.function.rpartition(".")[2]), PROVED, at),
        Evidence(Told.LABEL(mark.name, why), UNKNOWN, at),
        Evidence(Told.NEVER_REMOVED(), PROVED, at),
    )
    symbol = f"{file.module}.{mark.function}"
    yield build(FLD504, file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


DETECTORS: tuple[Detector, ...] = (Check(FLD504, _labels),)
