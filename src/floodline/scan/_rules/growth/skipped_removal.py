"""FLD109: a function adds and removes an entry, and may exit in between."""

from __future__ import annotations

from floodline.scan._facts.model import Pair
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import LOCAL
from floodline.scan._findings.building import make
from floodline.scan._findings.confidence import confidence_of
from floodline.scan._findings.finding import HIGH, MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Held
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import PUBLIC, RUNS, Removal
from floodline.scan._rules.detectors import Detector, Search

FLD109 = Rule(
    "FLD109", "removal-skipped-on-error", "{} keeps an entry if line {line} exits early",
    "remove it in `finally`, or use a context manager",
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    LEFT_BY = "the removal on line {} is skipped by the {}"
    SKIPPED_IF_FAILS = "the removal on line {} is skipped if the {} fails"


def _paired(judge: Judge, held: Held, holder: Evidence) -> Finding | None:
    for file, pair in held.pairs:
        if not _only_way(judge, held, pair):
            continue
        change = next(
            c for f, c in held.changes if f is file and c.at == pair.added and c.verb == "grow"
        )
        path, key = judge.paths.path(held, file, change), judge.paths.passing(file, change)
        if holder.state == UNKNOWN and path.state != PROVED and not judge.trusts():
            continue  # neither what keeps it nor what calls it is seen
        # an exit takes the function's locals along, unless it is caught inside
        local = held.made[0].ref.kind == LOCAL and held.made[0].function == pair.function
        risk = UNKNOWN if pair.risk == "call" or local else PROVED
        if risk == UNKNOWN and path.state != PROVED and not judge.trusts():
            continue  # neither that it fails nor what calls it is seen
        told = Told.LEFT_BY if pair.risk in ("return", "raise") else Told.SKIPPED_IF_FAILS
        reason = told(str(pair.removed_line), pair.risk)
        skipped = Evidence(reason, risk, place(file.path, pair.risk_line))
        proofs = (holder, path, key, skipped)
        confidence = confidence_of(proofs, Removal(RUNS, skipped, ()))
        if confidence in (HIGH, MEDIUM):
            return make(
                judge.program, held, FLD109, file, change.at, confidence, proofs,
                [(file.path, pair.added.line)], (), risk_line=pair.risk_line,
                shrinks=[(file.path, pair.removed_line)],
            )  # fmt: skip
    return None


def _only_way(judge: Judge, held: Held, pair: Pair) -> bool:
    """Return True if nothing else that runs would remove the entry: no limit, no sweeper."""
    if any(limit.acts for _, limit in held.limits):
        return False
    return judge.removals.elsewhere(held, pair.depth, pair.function) not in (RUNS, PUBLIC)


PAIR = Search(FLD109, _paired)
DETECTORS: tuple[Detector, ...] = (PAIR,)
