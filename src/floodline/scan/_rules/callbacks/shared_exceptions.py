"""FLD407: one exception object, raised again and again, keeps the frames of its last raise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import CLASS, Base
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import LEVELS, LOW, MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.commands import COMMAND_LINE
from floodline.scan._program.program import Program
from floodline.scan._proofs.evidence import ASSUMED, PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.reach import Often
from floodline.scan._rules.detectors import Check, Detector

FLD407 = Rule(
    "FLD407", "shared-exception-raised", "{} is a single object that is raised again and again",
    "raise a new one each time: its traceback keeps the frames of the last raise", boundable=False,
)  # fmt: skip
FAILS = ("Error", "Exception", "Warning", "Interrupt", "Exit")


class Told(Ground):
    """What the finding says."""

    RAISED = "raised whenever the function fails this way; how often, the source does not show"
    HELD_BY_MODULE = "{} is held by the module"
    ADDS_FRAMES = "each raise adds to its traceback and context"
    STAYS = "the traceback stays until the next raise"
    STAYS_UNLESS_DROPPED = "the traceback stays unless the code that catches it drops it: {}"


def _exceptions(judge: Judge) -> Iterator[Finding]:
    """Yield one finding per exception, at the best place, with all places that raise it."""
    by_symbol: dict[str, list[Finding]] = defaultdict(list)
    for file, mark in judge.marks("raise"):
        for finding in _raised(judge, file, mark):
            by_symbol[finding.fingerprint].append(finding)
    for group in by_symbol.values():
        best = max(group, key=lambda finding: LEVELS.index(finding.confidence))
        places = dict.fromkeys(place for finding in (best, *group) for place in finding.grows)
        yield best._replace(grows=tuple(places))


def _raised(judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    key = judge.program.names.resolve(file.module, mark.detail)
    module, _, name = key.partition(":")
    made = judge.program.names.globals.get(module, {}).get(name)
    if not made or not _is_error(judge.program, module, made):
        return
    at = place(file.path, mark.at.line)
    often = judge.reach.often(f"{file.module}:{mark.function}")
    once = bool(COMMAND_LINE & set(file.module.split(".")))
    if once:
        often = Often.STARTS
    path = Evidence(Told.RAISED(), ASSUMED if often is Often.REPEATS else UNKNOWN, at)
    proofs = (
        Evidence(Told.HELD_BY_MODULE(name), PROVED, at), path,
        Evidence(Told.ADDS_FRAMES(), PROVED, at),
        Evidence(Told.STAYS(), PROVED, at),
    )  # fmt: skip
    if handled := judge.paths.events.why(f"{file.module}:{mark.function}"):
        told = Told.STAYS_UNLESS_DROPPED(handled)
        proofs = (*proofs[:3], Evidence(told, UNKNOWN, at))
    confidence = LOW if once else MEDIUM
    yield build(FLD407, file.path, mark.at, f"{module}.{name}", confidence, proofs, grows=[at])


def _is_error(program: Program, module: str, made: Base) -> bool:
    if made.name.endswith(FAILS):
        return True
    key = program.names.class_of(module, made.name) if made.kind == CLASS else ""
    names = program.names
    return bool(key) and any(
        base.endswith(FAILS) for item in names.order(key) for base in names.classes[item].bases
    )


DETECTORS: tuple[Detector, ...] = (Check(FLD407, _exceptions),)
