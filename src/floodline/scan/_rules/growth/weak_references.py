"""FLD111: weak references that keep alive: values that refer to their keys, piles of finalizers."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import INSTANCE
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._findings.building import build, make
from floodline.scan._findings.confidence import confidence_of
from floodline.scan._findings.finding import HIGH, MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.grounds import Holder, Key
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.reach import Often
from floodline.scan._proofs.removal import NONE, PUBLIC, RUNS, Removal
from floodline.scan._rules.detectors import Case, Check, Detector, Pattern

FLD111 = Rule(
    "FLD111", "weak-container-kept-alive", "{} keeps dead weak references",
    "use weakref.WeakSet, or prune in the callback of weakref.ref",
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    OBJECT = "{} is a distinct object"
    VALUE_KEEPS_KEY = "the value seems to refer to its key, which then never dies"
    ADDS = "{}() adds one each time it runs"
    GOES_WITH_OBJECT = "a finalizer stays until its object dies"


def _is_reference(case: Case) -> bool:
    return case.change.value == "weakref" and "map" not in case.kinds


def _keys(judge: Judge) -> Iterator[Finding]:
    """Yield weak containers that keep their keys alive."""
    for held in judge.program.held.values():
        if any(made.fills == "WeakKeyDictionary" for made in held.made):
            yield from _kept_alive(judge, held)


def _finalizers(judge: Judge) -> Iterator[Finding]:
    """Yield the functions that pile up finalizers on objects that live on."""
    for file, mark in judge.marks("finalize"):
        if _is_finalize(judge.program, file, mark):
            yield from _finalized(judge, file, mark)


def _kept_alive(judge: Judge, held: Held) -> Iterator[Finding]:
    for file, change in held.changes:
        if change.verb != "grow" or change.value != "key" or change.depth:
            continue
        if judge.removals.judge(held, 0, [(file, change)]).when in (RUNS, PUBLIC):
            return
        at = place(file.path, change.at.line)
        proofs = (
            judge.holders.proof(held),
            judge.paths.path(held, file, change),
            Evidence(Told.OBJECT(change.key_text), PROVED, at),
            Evidence(Told.VALUE_KEEPS_KEY(), UNKNOWN, at),
        )
        confidence = confidence_of(proofs, Removal(NONE, proofs[3], ()))
        if confidence in (HIGH, MEDIUM):
            grows = [(file.path, change.at.line)]
            yield make(judge.program, held, FLD111, file, change.at, confidence, proofs, grows, ())
            return


def _is_finalize(program: Program, file: FileFacts, mark: Mark) -> bool:
    if "." in mark.detail:
        return mark.detail == "weakref.finalize"
    return program.names.imports[file.module].get(mark.detail) == "weakref:finalize"


def _finalized(judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    """Yield a finding if each use of an object that lives on adds a finalizer."""
    name = mark.function.rpartition(".")[2]
    function = f"{file.module}:{mark.function}"
    if judge.reach.often(function) is not Often.REPEATS or name in MAKERS:
        return
    at = place(file.path, mark.at.line)
    owner = mark.function.rpartition(".")[0]
    holder = Evidence(Holder.MODULE(), PROVED, at)
    if mark.ref and mark.ref.kind == INSTANCE:
        holder = judge.holders.instance(f"{file.module}:{owner}")
    proofs = (
        holder,
        Evidence(Told.ADDS(name), judge.paths.seen(function), at),
        Evidence(Key.EVERY_CALL(), PROVED, at),
        Evidence(Told.GOES_WITH_OBJECT(), PROVED, at),
    )
    confidence = confidence_of(proofs, Removal(NONE, proofs[3], ()))
    if confidence in (HIGH, MEDIUM):
        symbol = f"{file.module}.{mark.function}"
        yield build(FLD111, file.path, mark.at, symbol, confidence, proofs, grows=[at])


DEAD_REFERENCE = Pattern(FLD111, _is_reference)
DETECTORS: tuple[Detector, ...] = (
    DEAD_REFERENCE,
    Check(FLD111, _keys),
    Check(FLD111, _finalizers),
)
