"""Weak references that do not let go: a value that refers to its key, a finalizer for each use."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts, Mark
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._findings.finding import LOW, Finding, build, make
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.proof import PROVED, UNKNOWN, Proof, place
from floodline.scan._proofs.reach import REPEATS
from floodline.scan._proofs.removal import NONE, PUBLIC, RUNS, Removal
from floodline.scan._rules.judge import Judge, confidence_of


def weak(program: Program, judge: Judge) -> Iterator[Finding]:
    """Yield weak containers that keep their keys alive, and objects that collect finalizers."""
    for held in program.held.values():
        if any(made.fills == "WeakKeyDictionary" for made in held.made):
            yield from _kept_alive(program, judge, held)
    for file in program.files:
        for mark in file.marks:
            if mark.kind == "finalize" and _is_finalize(program, file, mark):
                yield from _finalized(judge, file, mark)


def _kept_alive(program: Program, judge: Judge, held: Held) -> Iterator[Finding]:
    for file, change in held.changes:
        if change.verb != "grow" or change.value != "key" or change.depth:
            continue
        if judge.removals.judge(held, 0, [(file, change)]).when in (RUNS, PUBLIC):
            return
        at = place(file.path, change.at.line)
        proofs = (
            judge.holders.proof(held),
            judge.paths.path(held, file, change),
            Proof(f"{change.key_text} is an object of its own", PROVED, at),
            Proof("the value seems to refer to its key, which then never dies", UNKNOWN, at),
        )
        confidence = confidence_of(proofs, Removal(NONE, proofs[3], ()))
        if confidence not in ("", LOW):
            grows = [(file.path, change.at.line)]
            yield make(program, held, "FLD111", file, change.at, confidence, proofs, grows, ())
            return


def _is_finalize(program: Program, file: FileFacts, mark: Mark) -> bool:
    if "." in mark.detail:
        return mark.detail == "weakref.finalize"
    return program.names.imports[file.module].get(mark.detail) == "weakref:finalize"


def _finalized(judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    """A finalizer is kept until its object dies: one for each use of an object that lives on."""
    name = mark.function.rpartition(".")[2]
    function = f"{file.module}:{mark.function}"
    if judge.reach.often(function) != REPEATS or name in MAKERS:
        return
    at = place(file.path, mark.at.line)
    owner = mark.function.rpartition(".")[0]
    holder = Proof("held by the module", PROVED, at)
    if mark.name[:2] == "s:":
        holder = judge.holders.instance(f"{file.module}:{owner}")
    proofs = (
        holder,
        Proof(f"{name}() adds one each time it runs", judge.paths.seen(function), at),
        Proof("every call adds one more", PROVED, at),
        Proof("a finalizer goes only with its object", PROVED, at),
    )
    confidence = confidence_of(proofs, Removal(NONE, proofs[3], ()))
    if confidence not in ("", LOW):
        symbol = f"{file.module}.{mark.function}"
        yield build("FLD111", file.path, mark.at, symbol, confidence, proofs, grows=[at])
