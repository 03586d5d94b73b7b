"""FLD109 across functions: add a key, do what can fail, `self._forget(key)`, and no `finally`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from floodline._python.mutations import TAKES_NAMED
from floodline._python.removals import QUIET
from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.origins import Origin
from floodline.scan._facts.vocabulary import HARMLESS
from floodline.scan._findings.building import make
from floodline.scan._findings.confidence import confidence_of
from floodline.scan._findings.finding import HIGH, MEDIUM, Finding
from floodline.scan._program.edges import Edge
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.evidence import UNKNOWN, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import RUNS, Removal
from floodline.scan._rules.detectors import Check, Detector
from floodline.scan._rules.growth.skipped_removal import FLD109, Told

SAFE = {"finally", "except"}
CHOICE = {"branch", "absent", "none", "for", "while", "limit", "once"}


class Step(NamedTuple):
    """One line of a function that adds or removes a key, itself or through a helper."""

    line: int
    key: Origin | None
    direct: bool
    change: Change
    file: FileFacts


def _removed_by_callees(judge: Judge) -> Iterator[Finding]:
    """Yield the maps whose entry is left behind between two steps, one of them in a helper."""
    for held in judge.program.held.values():
        adds = [(f, c) for f, c in held.changes if c.verb == "grow" and c.key_text and not c.depth]
        drops = [(f, c) for f, c in held.changes if c.verb in ("shrink", "replace")]
        if not adds or not drops or any(limit.acts for _, limit in held.limits):
            continue
        if all(c.op in TAKES_NAMED and c.key_text and not c.marks & SAFE for _, c in drops):
            found = _left_behind(judge, held, adds, drops)
            if found:
                yield found


def _left_behind(
    judge: Judge,
    held: Held,
    adds: list[tuple[FileFacts, Change]],
    drops: list[tuple[FileFacts, Change]],
) -> Finding | None:
    program = judge.program
    for function in _functions(program, adds) & _functions(program, drops):
        first = _steps(program, function, adds)
        last = _steps(program, function, drops)
        if not first or not last or not _alone(judge, function, drops):
            continue
        added, removed = first[0], last[0]
        if added.key != removed.key or (added.direct and removed.direct):
            continue
        risk = _risk(program, function, added.line, removed.line)
        if risk:
            found = _finding(judge, held, added, removed, function, risk)
            if found:
                return found
    return None


def _functions(program: Program, changes: list[tuple[FileFacts, Change]]) -> set[str]:
    own = {f"{file.module}:{change.function}" for file, change in changes}
    return own | {edge.caller for item in own for edge in program.callers.get(item, ())}


def _steps(program: Program, function: str, changes: list[tuple[FileFacts, Change]]) -> list[Step]:
    """Return the steps of a function in order; `[]` if one is where it may not run."""
    found = []
    for file, change in changes:
        own = f"{file.module}:{change.function}"
        if change.marks & CHOICE:
            return []
        if own == function:
            found.append(Step(change.at.line, change.key, True, change, file))
        for edge in program.callers.get(own, ()):
            if edge.caller == function and own != function:
                if edge.call.guard or edge.repeats or edge.guessed:
                    return []
                found.append(Step(edge.call.line, _given(edge), False, change, file))
    return sorted(found, key=lambda step: step.line)


def _given(edge: Edge) -> Origin | None:
    return edge.call.arguments[0].origin if edge.call.arguments else None


def _alone(judge: Judge, function: str, drops: list[tuple[FileFacts, Change]]) -> bool:
    """Return True if only this function removes, apart from what happens at the end."""
    for file, change in drops:
        own = f"{file.module}:{change.function}"
        callers = {edge.caller for edge in judge.program.callers.get(own, ())}
        others = {item for item in callers - {function} if not judge.reach.is_end(item)}
        if others or judge.reach.is_passed(own) or (own != function and not callers):
            return False
    return True


def _risk(program: Program, function: str, first: int, last: int) -> int:
    """Return the first line between two lines that calls something that may fail."""
    module, _, name = function.partition(":")
    lines = [
        call.line
        for call in program.names.modules[module].calls
        if call.function == name and first < call.line < last and not call.again
        and call.callee.name not in QUIET | HARMLESS
    ]  # fmt: skip
    return min(lines, default=0)


def _finding(
    judge: Judge, held: Held, added: Step, removed: Step, function: str, risk: int
) -> Finding | None:
    path = judge.program.names.modules[function.partition(":")[0]].path
    told = Told.SKIPPED_IF_FAILS(str(removed.line), "call")
    proofs = (
        judge.holders.proof(held),
        judge.paths.path(held, added.file, added.change),
        judge.paths.passing(added.file, added.change),
        Evidence(told, UNKNOWN, place(path, risk)),
    )
    if confidence_of(proofs, Removal(RUNS, proofs[3], ())) not in (HIGH, MEDIUM):
        return None
    return make(
        judge.program, held, FLD109, added.file, added.change.at, MEDIUM, proofs,
        [(added.file.path, added.change.at.line)], (), risk_line=risk,
        shrinks=[(removed.file.path, removed.change.at.line)],
    )  # fmt: skip


DETECTORS: tuple[Detector, ...] = (Check(FLD109, _removed_by_callees),)
