"""Judges every container: does it grow without end, and which rule says most about it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from floodline._python.kinds import Kind
from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._findings.building import make
from floodline.scan._findings.confidence import certain, confidence_of, is_vague
from floodline.scan._findings.finding import HIGH, LOW, MEDIUM, Confidence, Finding
from floodline.scan._program.program import Held
from floodline.scan._proofs.evidence import REFUTED, Evidence
from floodline.scan._proofs.grounds import Out
from floodline.scan._proofs.judge import Grown, Judge
from floodline.scan._proofs.removal import Removal
from floodline.scan._rules.callbacks import tasks
from floodline.scan._rules.detectors import Case, Detector, Pattern, Search
from floodline.scan._rules.false_bounds import (
    ages,
    exit_stacks,
    limits,
    statuses,
    trimmed_copies,
    twin_containers,
)
from floodline.scan._rules.growth import (
    cleanup,
    closures,
    locks,
    lookups,
    once_sets,
    registering_instances,
    skipped_removal,
    unbounded,
    weak_references,
)
from floodline.scan._rules.registry import DETECTORS

CANNOT_GROW = {"bounded", "weak"}

# The first that fits names the finding; if none does, it is an unbounded container.
ORDER = (
    # something removes, but not as often as it grows
    cleanup.ON_ONE_PATH,
    cleanup.NEVER_CALLED,
    ages.REMOVED_WHEN_ASKED,
    # nothing removes: what is added
    registering_instances.ITSELF,
    tasks.TASK,
    tasks.FUTURE,
    locks.LOCK,
    weak_references.DEAD_REFERENCE,
    # who holds it
    exit_stacks.STACK,
    closures.CAPTURED,
    # what looks like a bound
    limits.ONLY_LOGS,
    ages.AGE_READ,
    statuses.FLIPPED,
    trimmed_copies.READ_IN_PART,
    # how it is filled
    once_sets.SEEN_VALUES,
    twin_containers.BOUNDED_TWIN,
)
OTHERWISE = (lookups.READ, skipped_removal.PAIR)


def in_order(
    detectors: Sequence[Detector],
) -> tuple[tuple[Pattern, ...], tuple[Search, ...]]:
    """Return the patterns and searches in the order they are tried: the listed ones first.

    So a new rule need not be listed, unless it has to come before one that is.
    """
    known = (*ORDER, *OTHERWISE, unbounded.ANY)
    new = [detector for detector in detectors if detector not in known]
    patterns = [detector for detector in new if isinstance(detector, Pattern)]
    searches = [detector for detector in new if isinstance(detector, Search)]
    return (*ORDER, *patterns, unbounded.ANY), (*OTHERWISE, *searches)


PATTERNS, SEARCHES = in_order(DETECTORS)


def containers(judge: Judge) -> Iterator[Finding]:
    """Yield what was found, in no particular order; one finding per container."""
    for held in judge.program.held.values():
        if held.changes:
            yield from _container(judge, held)


def _container(judge: Judge, held: Held) -> Iterator[Finding]:
    kinds = {made.kind for made in held.made}
    if kinds & CANNOT_GROW:
        return
    holder = judge.holders.proof(held)
    if holder.state == REFUTED:
        return  # most containers: no need to ask the other three
    found = _unbounded(judge, held, holder, kinds)
    for search in SEARCHES:
        found = found or search.find(judge, held, holder)
    if found:
        yield found


def _unbounded(judge: Judge, held: Held, holder: Evidence, kinds: set[Kind]) -> Finding | None:
    grown = [g for g in judge.growth(held, kinds) if g[1].verb != "lookup"]
    removals: dict[int, Removal] = {}  # by depth: one container may grow in many places
    for file, change, path, key in grown:
        if path.state == REFUTED:
            continue
        growing = [(f, c) for f, c, _, _ in grown if c.depth <= change.depth]
        removal = removals.get(change.depth) or judge.removals.judge(held, change.depth, growing)
        removals[change.depth] = removal
        removal = certain(key, removal)
        proofs = (holder, path, key)
        confidence = confidence_of((*proofs, removal.proof), removal)
        if confidence:
            case = Case(judge, held, kinds, change, growing, removal)
            pattern = next(pattern for pattern in PATTERNS if pattern.fits(case))
            confidence = _doubted(confidence, case, pattern, file, proofs)
            last, line = pattern.tells(case)
            return make(
                judge.program, held, pattern.rule, file, change.at, confidence, (*proofs, last),
                [(f.path, c.at.line) for f, c in growing], removal.ways, risk_line=line,
            )  # fmt: skip
    return None


def _doubted(
    confidence: Confidence,
    case: Case,
    pattern: Pattern,
    file: FileFacts,
    proofs: tuple[Evidence, Evidence, Evidence],
) -> Confidence:
    """Return the confidence after what is known besides the four proofs."""
    unseen = pattern.lives_unseen
    if confidence == HIGH and (unseen or _is_at_start(case.removal)):
        confidence = MEDIUM
    if confidence == MEDIUM and is_vague(
        case.judge, file, case.change, *proofs, needs_event=unseen
    ):
        return LOW
    return confidence


def _is_at_start(removal: Removal) -> bool:
    """Return True if the best way out runs at start-up, and nothing else is seen to run it."""
    return removal.proof.reason.ground is Out.AT_START


def explain(judge: Judge, held: Held) -> Iterator[str]:
    """Yield lines on what is known about a container: why it is reported, or why not."""
    kinds = {made.kind for made in held.made}
    if kinds & CANNOT_GROW:
        yield "cannot grow: it is bounded or weak where it is created"
        return
    holder = judge.holders.proof(held)
    yield f"{holder.state}: {holder.reason} ({holder.at})"
    grown = judge.growth(held, kinds)
    if not grown:
        yield "refuted: nothing was found that makes it grow"
        return
    _, change, path, key = grown[0]
    removal = judge.removals.judge(held, change.depth, _places(grown))
    for proof in (path, key, removal.proof):
        yield f"{proof.state}: {proof.reason} ({proof.at})"
    found = next(_container(judge, held), None)
    yield f"reported as {found.rule}, {found.confidence}" if found else "not reported"


def _places(grown: list[Grown]) -> list[tuple[FileFacts, Change]]:
    return [(file, change) for file, change, _, _ in grown]
