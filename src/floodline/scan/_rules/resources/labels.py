"""FLD504: a label of a metric whose values have no end."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts, Mark
from floodline.scan._findings.finding import MEDIUM, Finding, build
from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.proof import PROVED, UNKNOWN, Proof, place
from floodline.scan._proofs.reach import REPEATS
from floodline.scan._rules.detectors import Check, Detector

FLD504 = Rule(
    "FLD504", "label-cardinality", "{} makes a series of a metric for every value it sees",
    "put ids into logs or traces; a label has a few values", preview=True,
)  # fmt: skip


def _labels(judge: Judge) -> Iterator[Finding]:
    for file, mark in judge.marks("label"):
        yield from _label(judge, file, mark)


def _label(judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    at = place(file.path, mark.at.line)
    state, why = judge.paths.origin(file.module, mark.function, mark.detail)
    often = judge.reach.often(f"{file.module}:{mark.function}")
    if state != PROVED or often != REPEATS:
        return
    proofs = (
        Proof("a series of a metric lives as long as the process", PROVED, at),
        Proof(f"{mark.function.rpartition('.')[2]}() counts each time it runs", PROVED, at),
        Proof(f"label {mark.name}: {why}", UNKNOWN, at),
        Proof("a series is never removed", PROVED, at),
    )
    symbol = f"{file.module}.{mark.function}"
    yield build(FLD504, file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


DETECTORS: tuple[Detector, ...] = (Check(FLD504, _labels),)
