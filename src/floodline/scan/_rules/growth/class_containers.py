"""FLD104: a container in the class body that methods fill through `self`."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import INSTANCE, ITSELF
from floodline.scan._findings.building import make
from floodline.scan._findings.finding import MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Held
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.grounds import Holder
from floodline.scan._proofs.judge import Judge
from floodline.scan._rules.detectors import Check, Detector

FLD104 = Rule(
    "FLD104", "shared-class-container", "{} is one object for all instances of the class",
    "create it in __init__, or declare it ClassVar if sharing is intended", preview=True,
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    FILLED_BY_INSTANCES = "every instance adds to it in {}()"
    SEEN_BY_ALL = "what one instance adds, all others see"
    ONLY_ONE = "__init__ creates no other"


def _shared(judge: Judge) -> Iterator[Finding]:
    for held in judge.program.held.values():
        if not _is_meant(held):
            yield from _filled_by_instances(judge, held)


def _is_meant(held: Held) -> bool:
    """Return True if it is not created in the class body, or is declared to be shared."""
    body = f"{held.key.partition(':')[2].rpartition('.')[0]}:"
    name = held.key.rpartition(".")[2]
    if any(m.function != body or m.fills == "field" or m.ref == ITSELF for m in held.made):
        return True
    return name.isupper() or any(
        mark.kind == "classvar" and mark.name == name and mark.function == body
        for mark in held.file.marks
    )


def _filled_by_instances(judge: Judge, held: Held) -> Iterator[Finding]:
    for file, change in held.changes:
        function = judge.program.names.functions.get(f"{file.module}:{change.function}")
        by_self = function is not None and function.parameters[:1] == ("self",)
        if change.verb != "grow" or change.ref.kind != INSTANCE or change.depth or not by_self:
            continue
        at, made = place(file.path, change.at.line), place(held.file.path, held.made[0].at.line)
        proofs = (
            Evidence(Holder.CLASS(), PROVED, made),
            Evidence(Told.FILLED_BY_INSTANCES(change.function), PROVED, at),
            Evidence(Told.SEEN_BY_ALL(), UNKNOWN, at),
            Evidence(Told.ONLY_ONE(), PROVED, made),
        )
        grows = [(file.path, change.at.line)]
        yield make(judge.program, held, FLD104, file, change.at, MEDIUM, proofs, grows, ())
        return


DETECTORS: tuple[Detector, ...] = (Check(FLD104, _shared, gives_way=True),)
