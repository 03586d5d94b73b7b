"""Judges every container: does it grow without end, and which rule says most about it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from floodline._python.kinds import Kind
from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.references import LOCAL
from floodline.scan._findings.building import make
from floodline.scan._findings.confidence import certain
from floodline.scan._findings.features import features
from floodline.scan._findings.finding import LOW, Finding
from floodline.scan._findings.ranking import below_high, level_of, rank_in_program, rank_of
from floodline.scan._program.program import Held
from floodline.scan._proofs.evidence import REFUTED, Evidence
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
    any_of_several,
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
Places = list[tuple[FileFacts, Change]]

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
OTHERWISE = (lookups.READ, skipped_removal.PAIR, any_of_several.LISTENS)


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
    if holder.state == REFUTED and held.made[0].ref.kind == LOCAL:
        return  # most containers: no need to ask the other three
    found = _unbounded(judge, held, holder, kinds)
    for search in SEARCHES if holder.state != REFUTED else ():
        if found is None or found.confidence == LOW:  # a rule must not hide a better one
            found = search.find(judge, held, holder) or found
    if found:
        yield found


def _unbounded(judge: Judge, held: Held, holder: Evidence, kinds: set[Kind]) -> Finding | None:
    """Return the finding of the place that ranks highest, `None` if the structure refutes all."""
    grown = [g for g in judge.growth(held, kinds) if g[1].verb != "lookup"]
    by_depth: dict[int, tuple[Places, Removal]] = {}  # one container may grow in many places
    best: tuple[int, Grown, Case] | None = None
    ranked = rank_of if judge.trusts() else rank_in_program
    for file, change, path, key in grown:
        if path.state == REFUTED or key.state == REFUTED:
            continue
        depth = change.depth
        if depth not in by_depth:
            growing = [(f, c) for f, c, _, _ in grown if c.depth <= depth]
            by_depth[depth] = growing, judge.removals.judge(held, depth, growing)
        growing, removal = by_depth[depth]
        if removal.proof.state == REFUTED:
            continue
        removal = certain(key, removal)
        rank = ranked(features(judge, held, file, change, (holder, path, key), removal))
        if best is None or rank > best[0]:
            case = Case(judge, held, kinds, change, growing, removal)
            best = rank, (file, change, path, key), case
    return _told(best[0], holder, best[1], best[2]) if best else None


def _told(rank: int, holder: Evidence, grown: Grown, case: Case) -> Finding:
    file, change, path, key = grown
    pattern = next(pattern for pattern in PATTERNS if pattern.fits(case))
    if pattern.lives_unseen:
        rank = below_high(rank)
    last, line = pattern.tells(case)
    return make(
        case.judge.program, case.held, pattern.rule, file, change.at, level_of(rank),
        (holder, path, key, last), [(f.path, c.at.line) for f, c in case.growing],
        case.removal.ways, risk_line=line, rank=rank,
    )  # fmt: skip


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
    yield (
        f"reported as {found.rule}, {found.confidence}, rank {found.rank}"
        if found
        else "not reported"
    )


def _places(grown: list[Grown]) -> Places:
    return [(file, change) for file, change, _, _ in grown]
