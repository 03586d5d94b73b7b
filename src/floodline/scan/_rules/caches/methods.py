"""FLD301: a cache on a method belongs to the class, and keeps every instance."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts, Function, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import HIGH, LOW, MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.evidence import PROVED, REFUTED, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._rules.caches.decorated import Kept, is_bound, lasting
from floodline.scan._rules.detectors import Check, Detector

FLD301 = Rule(
    "FLD301", "method-cache-keeps-self", "{} keeps every instance it was called on",
    "cache on the instance (functools.cached_property) or a module-level function",
    boundable=False,
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    OF_CLASS = "the cache belongs to the class and outlives its instances"
    EVERY_INSTANCE = "one entry for every instance and argument"
    KEYED_BY_SELF = "self is part of the key"
    LAST_ONES_STAY = "the most recent entries stay, with their instances"


def _methods(judge: Judge) -> Iterator[Finding]:
    for file, mark, function in lasting(judge):
        if is_bound(function):
            yield from _cached(judge, file, mark, function)


def _cached(judge: Judge, file: FileFacts, mark: Mark, function: Function) -> Iterator[Finding]:
    owner = f"{file.module}:{function.owner}"
    at = place(file.path, mark.at.line)
    unbounded = mark.detail == "unbounded"
    one = judge.holders.instance(owner).state == PROVED
    if one and (not unbounded or function.parameters == ("self",)):
        return
    size = Kept.FOR_EVER() if unbounded else Told.LAST_ONES_STAY()
    proofs = (
        Evidence(Told.OF_CLASS(), PROVED, at),
        Evidence(Told.EVERY_INSTANCE(), PROVED, at),
        Evidence(Told.KEYED_BY_SELF(), PROVED, at),
        Evidence(size, PROVED, at),
    )
    confidence = MEDIUM if judge.trusts() else LOW
    if unbounded and _comes_and_goes(judge, owner):
        confidence = HIGH
    symbol = f"{file.module}.{mark.name}"
    yield build(FLD301, file.path, mark.at, symbol, confidence, proofs, grows=[at])


def _comes_and_goes(judge: Judge, owner: str) -> bool:
    """Return True if instances are seen to be created for each event."""
    return judge.holders.instance(owner).state == REFUTED and any(
        judge.paths.events.why(making.function) for making in judge.program.makings.get(owner, ())
    )


DETECTORS: tuple[Detector, ...] = (Check(FLD301, _methods),)
