"""Two maps that grow together with one key, of which only one is cleaned on some path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from floodline._python.mutations import TAKES_NAMED
from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._findings.finding import HIGH, MEDIUM, Finding, make
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.proof import UNKNOWN, Proof, place
from floodline.scan._proofs.removal import RUNS, Removal
from floodline.scan._rules.judge import Judge, confidence_of

Drop = tuple[FileFacts, Change]


def siblings(program: Program, judge: Judge) -> Iterator[Finding]:
    """Yield the maps that keep a key which their sibling drops."""
    families: dict[str, list[Held]] = defaultdict(list)
    for held in program.held.values():
        kinds = {made.kind for made in held.made}
        if held.made[0].ref[:2] in ("s:", "g:") and kinds & {"map", "set", "lookup"}:
            families[held.key.rpartition(".")[0] + held.key.partition(":")[0]].append(held)
    for family in families.values():
        for left in family:
            for dropped in family:
                if left is not dropped:
                    yield from _left_behind(program, judge, left, dropped)


def _left_behind(program: Program, judge: Judge, left: Held, dropped: Held) -> Iterator[Finding]:
    together = _functions(left, "grow") & _functions(dropped, "grow")
    cleaned = {name for name, _ in _functions(left, "shrink")}
    if not together or not cleaned or any(limit.acts for _, limit in left.limits):
        return
    for file, change in _drops(dropped):
        function = f"{file.module}:{change.function}"
        if (function, change.key_text) in _functions(dropped, "grow"):
            continue
        near = judge.reach.ancestors(function) | judge.reach.descendants(function)
        if cleaned & near or change.marks & {"except", "finally"}:
            continue
        yield from _finding(program, judge, left, file, change)
        return


def _functions(held: Held, verb: str) -> set[tuple[str, str]]:
    return {
        (f"{file.module}:{change.function}", change.key_text if verb == "grow" else "")
        for file, change in held.changes
        if change.verb == verb and not change.depth
    }


def _drops(held: Held) -> list[Drop]:
    return [
        (file, change)
        for file, change in held.changes
        if change.op in TAKES_NAMED
        and change.verb == "shrink"
        and change.key_text
        and not change.depth
    ]


def _finding(
    program: Program, judge: Judge, left: Held, file: FileFacts, change: Change
) -> Iterator[Finding]:
    kinds = {made.kind for made in left.made}
    grown = [g for g in judge.growth(left, kinds) if g[1].verb == "grow" and not g[1].depth]
    for at_file, growth, path, _ in grown:
        name = change.function.rpartition(".")[2]
        told = f"{name}() drops the key from its sibling and leaves it here"
        skipped = Proof(told, UNKNOWN, place(file.path, change.at.line))
        proofs = (judge.holders.proof(left), path, judge.paths.passing(at_file, growth), skipped)
        if confidence_of(proofs, Removal(RUNS, skipped, ())) in (HIGH, MEDIUM):
            shrinks = [(f.path, c.at.line) for f, c in left.changes if c.verb == "shrink"]
            yield make(
                program, left, "FLD205", at_file, growth.at, MEDIUM, proofs,
                [(at_file.path, growth.at.line)], (), risk_line=change.at.line, shrinks=shrinks,
            )  # fmt: skip
            return
