"""FLD205: two containers grow together with one key, and only one of them is cleaned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from floodline._python.mutations import TAKES_NAMED
from floodline.scan._facts.circumstances import Circumstance
from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import INSTANCE, MODULE
from floodline.scan._findings.building import make
from floodline.scan._findings.confidence import confidence_of
from floodline.scan._findings.finding import HIGH, MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Held
from floodline.scan._proofs.evidence import UNKNOWN, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import RUNS, How, Removal, Way
from floodline.scan._rules.detectors import Case, Check, Detector, Pattern

FLD205 = Rule(
    "FLD205", "bounded-but-sibling-grows", "{} keeps what line {line} removes from its sibling",
    "remove the key from both in one function, and call that",
)  # fmt: skip
BOUNDS = {How.CAP, How.TTL}
Drop = tuple[FileFacts, Change]


class Told(Ground):
    """What the finding says."""

    TWIN_IS_BOUNDED = "{}, while its sibling is bounded"
    DROPPED_FROM_TWIN = "{}() removes the key from its sibling and leaves it here"


def _bounds_of_twins(case: Case) -> Iterator[Way]:
    """Yield what bounds other containers of the owner that grow with the same key."""
    places = {
        (f.module, c.function, c.key_text) for f, c in case.growing if c.key_text and not c.depth
    }
    for other in case.judge.family(case.held) if places else ():
        growing = [
            (f, c)
            for f, c in other.changes
            if c.verb == "grow" and (f.module, c.function, c.key_text) in places
        ]
        if growing and other is not case.held:
            ways = case.judge.removals.judge(other, 0, growing).ways
            yield from (way for way in ways if way.when == RUNS and way.how in BOUNDS)


def _has_bounded_twin(case: Case) -> bool:
    return any(True for _ in _bounds_of_twins(case))


def _told(case: Case) -> tuple[Evidence, int]:
    twin, proof = next(_bounds_of_twins(case)), case.removal.proof
    told = Told.TWIN_IS_BOUNDED(proof.reason)
    return Evidence(told, proof.state, twin.at), twin.line


def _uneven(judge: Judge) -> Iterator[Finding]:
    """Yield the maps that keep a key that their twin drops."""
    families: dict[str, list[Held]] = defaultdict(list)
    for held in judge.program.held.values():
        kinds = {made.kind for made in held.made}
        if held.made[0].ref.kind in (INSTANCE, MODULE) and kinds & {"map", "set", "lookup"}:
            families[held.key.rpartition(".")[0] + held.key.partition(":")[0]].append(held)
    for family in families.values():
        grown = [(held, _functions(held, "grow")) for held in family] if len(family) > 1 else []
        for left, kept in grown:
            cleaned = {name for name, _ in _functions(left, "shrink")} if kept else ()
            for dropped, added in grown if cleaned else ():
                if left is not dropped and not kept.isdisjoint(added):
                    yield from _left_behind(judge, left, dropped, {*cleaned}, added)


def _left_behind(
    judge: Judge, left: Held, dropped: Held, cleaned: set[str], added: set[tuple[str, str]]
) -> Iterator[Finding]:
    if any(limit.acts for _, limit in left.limits):
        return
    for file, change in _drops(dropped):
        function = f"{file.module}:{change.function}"
        if (function, change.key_text) in added:
            continue
        near = judge.reach.ancestors(function) | judge.reach.descendants(function)
        if cleaned & near or change.marks & {"except", "finally"} or _was_empty(change):
            continue
        yield from _finding(judge, left, file, change)
        return


def _was_empty(change: Change) -> bool:
    """Return True if an entry is dropped because nothing is in it: its key may live on."""
    entry = f"{change.ref.name}[{change.key_text}]"
    names = (entry, f"self.{entry}", f"cls.{entry}")
    return any(Circumstance("empty", name) in change.marks for name in names)


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


def _finding(judge: Judge, left: Held, file: FileFacts, change: Change) -> Iterator[Finding]:
    kinds = {made.kind for made in left.made}
    grown = [g for g in judge.growth(left, kinds) if g[1].verb == "grow" and not g[1].depth]
    for at_file, growth, path, _ in grown:
        name = change.function.rpartition(".")[2]
        told = Told.DROPPED_FROM_TWIN(name)
        skipped = Evidence(told, UNKNOWN, place(file.path, change.at.line))
        proofs = (judge.holders.proof(left), path, judge.paths.passing(at_file, growth), skipped)
        if confidence_of(proofs, Removal(RUNS, skipped, ())) in (HIGH, MEDIUM):
            shrinks = [(f.path, c.at.line) for f, c in left.changes if c.verb == "shrink"]
            yield make(
                judge.program, left, FLD205, at_file, growth.at, MEDIUM, proofs,
                [(at_file.path, growth.at.line)], (), risk_line=change.at.line, shrinks=shrinks,
            )  # fmt: skip
            return


BOUNDED_TWIN = Pattern(FLD205, _has_bounded_twin, _told)
DETECTORS: tuple[Detector, ...] = (BOUNDED_TWIN, Check(FLD205, _uneven))
