"""FLD105: a `defaultdict` whose entry comes back when a reader asks for it."""

from __future__ import annotations

from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.building import make
from floodline.scan._findings.confidence import confidence_of, is_vague
from floodline.scan._findings.features import features
from floodline.scan._findings.finding import HIGH, MEDIUM, Finding
from floodline.scan._findings.ranking import at_least_medium, level_of, rank_of
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
        if _only_takes(held, change):
            continue
        fills = change.function in grows
        if found := _inserted(judge, held, (holder, path, key), (file, change), fills=fills):
            return found
    return None


def _only_takes(held: Held, change: Change) -> bool:
    """Return True if a lookup takes something out of what it finds, and no key ever goes."""
    taken = [c for _, c in held.changes if c.verb == "shrink"]
    here = (change.function, change.at.line)
    return all(c.depth for c in taken) and any((c.function, c.at.line) == here for c in taken)


def _inserted(
    judge: Judge,
    held: Held,
    proofs: tuple[Evidence, Evidence, Evidence],
    where: tuple[FileFacts, Change],
    *,
    fills: bool,
) -> Finding | None:
    """Return the finding of one lookup, `None` if the key leaves again or too little is known."""
    file, change = where
    told = Evidence(Told.INSERTS(), PROVED, place(file.path, change.at.line))
    best = judge.removals.judge(held, 0, [where])
    if best.when == RUNS or (fills and best.when != NONE):
        return None
    removal = Removal(NONE, told, ())
    confidence = confidence_of((*proofs, told), removal)
    if is_vague(judge, file, change, *proofs) or confidence not in (HIGH, MEDIUM):
        return None
    rank = at_least_medium(rank_of(features(judge, held, file, change, proofs, removal)))
    return make(
        judge.program, held, FLD106 if makes_locks(held) else FLD105, file, change.at,
        level_of(rank), (*proofs, told), [(file.path, change.at.line)], best.ways, rank=rank,
    )  # fmt: skip


READ = Search(FLD105, _looked_up)
DETECTORS: tuple[Detector, ...] = (READ,)
