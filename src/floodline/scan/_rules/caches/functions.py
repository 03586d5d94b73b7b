"""FLD302: an unbounded function cache whose arguments form an open set."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts, Mark
from floodline.scan._facts.origins import parameter
from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.grounds import Holder
from floodline.scan._proofs.judge import Judge
from floodline.scan._rules.caches.decorated import Kept
from floodline.scan._rules.detectors import Check, Detector

FLD302 = Rule(
    "FLD302", "unbounded-function-cache", "{} keeps every result it has ever returned",
    "give it a size: functools.lru_cache(maxsize=...)", preview=True,
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    ARGUMENT = "argument {}: {}"


def _functions(judge: Judge) -> Iterator[Finding]:
    for file, mark in judge.marks("cache"):
        if mark.detail == "unbounded":
            yield from _cached(judge, file, mark)


def _cached(judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    function = judge.program.names.functions[f"{file.module}:{mark.name}"]
    symbol = f"{file.module}.{mark.name}"
    if function.parameters[:1] in (("self",), ("cls",)):
        return
    at = place(file.path, mark.at.line)
    for number, name in enumerate(function.parameters):
        state, why = judge.paths.origin(file.module, mark.name, parameter(number))
        if state == PROVED:
            proofs = (
                Evidence(Holder.MODULE(), PROVED, at),
                Evidence(Kept.EVERY_ARGUMENT(), PROVED, at),
                Evidence(Told.ARGUMENT(name, why), UNKNOWN, at),
                Evidence(Kept.FOR_EVER(), PROVED, at),
            )
            yield build(FLD302, file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])
            return


DETECTORS: tuple[Detector, ...] = (Check(FLD302, _functions, gives_way=True),)
