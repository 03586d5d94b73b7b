"""FLD105: a `defaultdict` whose entry comes back when a reader asks for it."""

from __future__ import annotations

from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.building import make
from floodline.scan._findings.confidence import confidence_of, is_vague
from floodline.scan._findings.finding import HIGH, MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Held
from floodline.scan._proofs.evidence import PROVED, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import NONE, RUNS, Removal
from floodline.scan._rules.detectors import Detector, Search
from floodline.scan._rules.growth.locks import FLD106, makes_locks

FLD105 = Rule(
    "FLD105", "lookup-inserts", "{} is a defaultdict: looking up a missing key inserts it",
    "read with .get(key), or test `key in` first",
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    INSERTS = "the lookup inserts the key, and nothing there removes it"


def _looked_up(judge: Judge, held: Held, holder: Evidence) -> Finding | None:
    if all(made.kind != "lookup" for made in held.made):
        return None
    grows = {c.function for _, c in held.changes if c.verb == "grow"}
    adds = {c.function for _, c in held.changes if c.verb in ("grow", "insert") and not c.depth}
    drops = {c.function for _, c in held.changes if c.verb == "shrink" and not c.depth}
    for file, change, path, key in judge.growth(held, {"lookup"}):
        if change.verb != "lookup" or change.function in adds | drops:
            continue
        if change.function in grows and {path.state, key.state} != {PROVED}:
            continue  # it fills what it finds there: then the event and the key have to be seen
        if change.marks & {"absent", "except", "for"} or change.depth:
            continue
        at = place(file.path, change.at.line)
        told = Evidence(Told.INSERTS(), PROVED, at)
        proofs = (holder, path, key, told)
        best = judge.removals.judge(held, 0, [(file, change)])
        if best.when == RUNS or (change.function in grows and best.when != NONE):
            continue
        confidence = confidence_of(proofs, Removal(NONE, proofs[3], ()))
        if is_vague(judge, file, change, *proofs[:3]):
            continue
        if confidence in (HIGH, MEDIUM):
            return make(
                judge.program, held, FLD106 if makes_locks(held) else FLD105, file, change.at,
                confidence, proofs, [(file.path, change.at.line)], best.ways,
            )  # fmt: skip
    return None


READ = Search(FLD105, _looked_up)
DETECTORS: tuple[Detector, ...] = (READ,)
