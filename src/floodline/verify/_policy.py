"""Judges whether a bound that was found in the source is the claimed one."""

from __future__ import annotations

from enum import Enum, auto

from floodline._python.at_limit import AtLimit
from floodline.scan._facts.calls import METHOD
from floodline.scan._facts.model import Change
from floodline.scan._facts.references import INSTANCE, MODULE, OWN
from floodline.verify._answers.answer import Evidence, Judgement, evidence
from floodline.verify._answers.causes import Cause, Verdict
from floodline.verify._answers.texts import does
from floodline.verify._claims import Claim, Policy
from floodline.verify._source.claimed_code import Bound, Source

_OLDEST = {AtLimit.FIRST, AtLimit.LEAST}
FITS: dict[str, set[AtLimit]] = {
    Policy.LRU: _OLDEST,
    Policy.OLDEST: _OLDEST,
    Policy.FIFO: _OLDEST,
    Policy.WINDOW: _OLDEST,
    Policy.BATCH: {AtLimit.ALL},
    Policy.REJECT: {AtLimit.REJECT},
}


class _Renewal(Enum):
    """What makes an entry the newest again."""

    NONE = auto()
    READ = auto()
    WRITE = auto()
    NOT_SEEN = auto()


def judge_bound(
    claim: Claim, source: Source, where: str, bound: Bound, name: str, changes: list[Change]
) -> Judgement:
    """Compare the number and the policy of a bound with those of the claim."""
    at = f"{where}:{bound.line}"
    if bound.number is None:
        unknown = evidence(Cause.NUMBER_NOT_KNOWN, at, name=name)
        return Judgement(Verdict.UNKNOWN, (unknown,))
    if bound.number != claim.limit:
        other = evidence(Cause.OTHER_NUMBER, at, name=name, number=bound.number, limit=claim.limit)
        return Judgement(Verdict.REFUTED, (other,))
    kinds = bound.takes - {AtLimit.RENEWED}
    if AtLimit.BLOCK in kinds:
        refuses = evidence(Cause.LETS_NOBODY_ADD, at, name=name, number=bound.number)
        rejects = claim.policy == Policy.REJECT
        return Judgement(Verdict.PROVED if rejects else Verdict.REFUTED, (refuses,))
    told = f"{bound.number} ({bound.shown})" if bound.shown else str(bound.number)
    by = f": {bound.by}" if bound.by else ""
    seen = evidence(Cause.REMOVES, at, name=name, number=told, does=f"{does(kinds)}{by}")
    if AtLimit.SOME in kinds:
        unseen = evidence(Cause.POLICY_NOT_SEEN, at, policy=claim.policy)
        return Judgement(Verdict.UNKNOWN, (seen, unseen))
    if not kinds <= FITS[claim.policy]:
        differs = evidence(Cause.OTHER_POLICY, at, policy=claim.policy)
        return Judgement(Verdict.REFUTED, (seen, differs))
    if claim.policy not in (Policy.LRU, Policy.FIFO):
        return Judgement(Verdict.PROVED, (seen,))
    renewal, line = _renewal(source, bound, changes, lru=claim.policy == Policy.LRU)
    return _by_order(renewal, seen, f"{where}:{line}", lru=claim.policy == Policy.LRU)


def _by_order(renewal: _Renewal, seen: Evidence, at: str, *, lru: bool) -> Judgement:
    """Distinguish lru from fifo: does reading an entry renew it?"""
    if renewal is _Renewal.NOT_SEEN or (renewal is _Renewal.WRITE and lru):
        unseen = evidence(Cause.RENEWAL_NOT_SEEN, at)
        return Judgement(Verdict.UNKNOWN, (seen, unseen))
    renews = renewal is _Renewal.READ
    if lru and renews:
        return Judgement(Verdict.PROVED, (seen, evidence(Cause.READ_RENEWS, at)))
    if lru:
        return Judgement(Verdict.REFUTED, (seen, evidence(Cause.READ_RENEWS_NOT, at)))
    if renews:
        return Judgement(Verdict.REFUTED, (seen, evidence(Cause.READ_RENEWS_FIFO, at)))
    return Judgement(Verdict.PROVED, (seen,))


def _renewal(
    source: Source, bound: Bound, changes: list[Change], *, lru: bool
) -> tuple[_Renewal, int]:
    """Return what renews an entry, and the line that shows it."""
    if AtLimit.RENEWED in bound.takes:
        return _Renewal.READ, bound.line
    renewal, line = _moved(source, changes)
    if renewal is _Renewal.NONE and lru and AtLimit.LEAST in bound.takes:
        renewal = _Renewal.NOT_SEEN  # the key that decides which entry leaves may be its last use
    return renewal, line or bound.line


def _moved(source: Source, changes: list[Change]) -> tuple[_Renewal, int]:
    """Return what moves an entry to the end: a function that adds nothing, or one that adds."""
    names = {c.ref.name for c in changes if c.ref.kind in (INSTANCE, MODULE)}
    adding = {c.function for c in changes if c.op == "[]="}
    found = (_Renewal.NONE, 0)
    for call in source.facts.calls:
        base = call.callee.base
        moves = (
            call.callee.kind == METHOD
            and call.callee.name == "move_to_end"
            and base.kind in (OWN, MODULE)
        )
        if moves and base.name.rpartition(".")[2] in names:
            if call.function not in adding:
                return _Renewal.READ, call.line
            found = (_Renewal.WRITE, call.line)
    taking = {c.function: c.at.line for c in changes if c.verb == "shrink" and c.op == "pop"}
    both = [f for f in taking if f in adding]
    if found[0] is _Renewal.NONE and both:
        return _Renewal.WRITE, taking[both[0]]
    return found
