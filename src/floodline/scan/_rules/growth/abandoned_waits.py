"""FLD109 across functions: a caller waits for an answer under a key, gives up, and the key stays.

The entry is removed where the answer arrives. If it never does, because the wait timed out, was
cancelled or failed, nothing removes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from floodline._python.mutations import TAKES_NAMED
from floodline.scan._facts.model import Change, FileFacts, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.building import make
from floodline.scan._findings.confidence import confidence_of
from floodline.scan._findings.finding import HIGH, MEDIUM, Finding
from floodline.scan._program.program import Held
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import RUNS, How, Removal
from floodline.scan._rules.detectors import Check, Detector
from floodline.scan._rules.growth.skipped_removal import FLD109

ENOUGH = {How.CAP, How.TTL, How.FINALLY}


class Told(Ground):
    """What the finding says."""

    TIMES_OUT = "nothing removes it if the wait times out; only an answer does"
    FAILS = "nothing removes it if the wait is cancelled or fails; only an answer does"


def _waits(judge: Judge) -> Iterator[Finding]:
    """Yield the maps in which the key of an answer that never arrives stays."""
    for held in judge.program.held.values():
        for file, mark in held.signs:
            if mark.kind == "waits" and (found := _abandoned(judge, held, file, mark)):
                yield found
                break


def _abandoned(judge: Judge, held: Held, file: FileFacts, mark: Mark) -> Finding | None:
    here = f"{file.module}:{mark.function}"
    added = [
        (f, c)
        for f, c in held.changes
        if f is file and c.verb == "grow" and c.function == mark.function
        and not c.depth and c.at.line < mark.at.line
    ]  # fmt: skip
    removed = [(f, c) for f, c in held.changes if c.verb in ("shrink", "replace") and not c.depth]
    if not added or not removed or _is_cleaned(judge, here, removed):
        return None
    removal = judge.removals.judge(held, 0, added)
    if any(way.when == RUNS and way.how in ENOUGH for way in removal.ways):
        return None
    change = added[-1][1]
    told, sure = Told.FAILS(), UNKNOWN
    if mark.detail == "timeout":
        told, sure = Told.TIMES_OUT(), PROVED
    proofs = (
        judge.holders.proof(held),
        judge.paths.path(held, file, change),
        judge.paths.passing(file, change),
        Evidence(told, sure, place(file.path, mark.at.line)),
    )
    confidence = confidence_of(proofs, Removal(RUNS, proofs[3], ()))
    if confidence not in (HIGH, MEDIUM):
        return None
    return make(
        judge.program, held, FLD109, file, change.at, confidence, proofs,
        [(file.path, change.at.line)], removal.ways, risk_line=mark.at.line,
    )  # fmt: skip


def _is_cleaned(judge: Judge, here: str, removed: list[tuple[FileFacts, Change]]) -> bool:
    """Return True if the waiting function or a caller cleans up, or something empties the map."""
    program = judge.program
    removers = {f"{file.module}:{change.function}" for file, change in removed}
    near = {here, *(edge.caller for edge in program.callers.get(here, ()))}
    called = {edge.callee for item in near for edge in program.edges_of.get(item, ())}
    handed = {
        item for item in removers if "add_done_callback" in program.by_reference.get(item, ())
    }
    if removers & (near | called) or handed:
        return True
    return any(
        change.op not in TAKES_NAMED and not judge.reach.is_end(f"{file.module}:{change.function}")
        for file, change in removed
    )


DETECTORS: tuple[Detector, ...] = (Check(FLD109, _waits),)
