"""Lists every container that grows with open keys, and all its ways out: safe ones too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from floodline.scan._facts.model import Change, FileFacts, Mark
from floodline.scan._facts.origins import NO_KEY
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import LOCAL
from floodline.scan._findings.building import symbol_of
from floodline.scan._findings.finding import LOW, Finding, Status
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.evidence import REFUTED, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import RUNS, How

AGES = {"ttl", "idle", "max_age"}


class Verdict(StrEnum):
    """What is known about the size of a container."""

    GROWING = "growing"
    BOUNDED = "bounded"
    UNDECIDED = "undecided"


class Told(Ground):
    """Why an entry leaves, where no proof says so."""

    COMMENT = "a comment says so"
    WEAK = "an entry disappears with its object"
    WHERE_MADE = "{} where it is created"


class Exit(NamedTuple):
    """One way out: by what means, whether it runs on its own, why, and where."""

    how: How
    runs: bool
    why: str
    at: str


class Audited(NamedTuple):
    """One container with open keys; the fields are in the order of the document."""

    symbol: str
    path: str
    line: int
    verdict: Verdict
    key: str
    holder: str
    rule: str
    confidence: str
    grows: tuple[str, ...]
    removals: tuple[Exit, ...]


def audit(program: Program, judge: Judge, findings: Iterable[Finding]) -> list[Audited]:
    """Return all containers with open keys, in source order."""
    told = {finding.symbol: finding for finding in findings if finding.confidence != LOW}
    found = [
        entry for held in program.held.values() if (entry := _container(program, judge, held, told))
    ]
    found += _capped(program, judge)
    return sorted(set(found), key=lambda entry: (entry.path, entry.line, entry.symbol))


def _container(
    program: Program, judge: Judge, held: Held, told: dict[str, Finding]
) -> Audited | None:
    kinds = {made.kind for made in held.made}
    holder = judge.holders.proof(held)
    if "bounded" in kinds or (holder.state == REFUTED and held.made[0].ref.kind == LOCAL):
        return None
    grown = [
        (file, change, key)
        for file, change, path, key in judge.growth(held, kinds)
        if key.state != REFUTED and path.state != REFUTED
    ]
    if not grown:
        return None
    made = held.made[0]
    symbol = symbol_of(program, held)
    exits, verdict = _exits(judge, held, [(file, change) for file, change, _ in grown])
    finding = told.get(symbol)
    if finding and finding.status is Status.SUPPRESSED:
        at = place(finding.path, finding.line)
        exits, verdict = (*exits, Exit(How.COMMENT, True, str(Told.COMMENT()), at)), Verdict.BOUNDED
    elif finding:
        verdict = Verdict.GROWING
    return Audited(
        symbol, held.file.path, made.at.line, verdict, _key(grown[0][2]), str(holder.reason),
        finding.rule if finding else "", finding.confidence if finding else "",
        tuple(dict.fromkeys(place(f.path, c.at.line) for f, c, _ in grown)), exits,
    )  # fmt: skip


def _exits(
    judge: Judge, held: Held, grown: list[tuple[FileFacts, Change]]
) -> tuple[tuple[Exit, ...], Verdict]:
    if any(made.kind == "weak" for made in held.made):
        at = place(held.file.path, held.made[0].at.line)
        return (Exit(How.WEAK, True, str(Told.WEAK()), at),), Verdict.BOUNDED
    removal = judge.removals.judge(held, max(change.depth for _, change in grown), grown)
    exits = tuple(Exit(way.how, way.when == RUNS, str(way.reason), way.at) for way in removal.ways)
    return exits, Verdict.BOUNDED if removal.when == RUNS else Verdict.UNDECIDED


def _key(proof: Evidence) -> str:
    """Return the key and where it comes from, or that every call adds one more."""
    return str(proof.reason.values[0] if proof.reason.values else proof.reason)


def _capped(program: Program, judge: Judge) -> Iterator[Audited]:
    """Yield containers of other packages that get their limit where they are created."""
    capped = {
        program.key(file, mark.function, mark.ref): (file, mark)
        for file in program.files
        for mark in file.marks
        if mark.kind == "capped" and mark.ref
    }
    uses = _uses(program, judge, capped)
    for key, (file, mark) in capped.items():
        if key in uses and key not in program.held:
            at = place(file.path, mark.at.line)
            how = How.TTL if set(mark.detail.split()) <= AGES else How.CAP
            exit_ = Exit(how, True, str(Told.WHERE_MADE(mark.detail)), at)
            yield Audited(
                key.replace(":", "."), file.path, mark.at.line, Verdict.BOUNDED, uses[key][0][0],
                "", "", "", tuple(dict.fromkeys(at for _, at in uses[key])), (exit_,),
            )  # fmt: skip


def _uses(
    program: Program, judge: Judge, capped: dict[str, tuple[FileFacts, Mark]]
) -> dict[str, list[tuple[str, str]]]:
    """Return where each container is given an open key, and why the key is open."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for file in program.files if capped else ():
        for change in file.changes:
            if change.verb == "grow" and change.key != NO_KEY and not change.depth:
                key = program.key(file, change.function, change.ref)
                if key in capped and (proof := judge.paths.key(file, change)).state != REFUTED:
                    found[key].append((_key(proof), place(file.path, change.at.line)))
        for call in file.calls:
            base = call.callee.base
            key = program.key_of_base(file, call.function, base) if call.arguments else ""
            if key in capped:
                origin = call.arguments[0].origin
                state, why = judge.paths.origin(file.module, call.function, origin)
                if state != REFUTED:
                    found[key].append((str(why), place(file.path, call.line)))
    return found
