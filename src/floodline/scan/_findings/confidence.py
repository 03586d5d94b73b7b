"""How sure a finding is: what four proofs are worth, and which doubts add up.

One thing may be unknown. A function without a visible caller whose callers supply the key is one
doubt, since those callers are not in the source. Anything on top of that is a second one.
"""

from __future__ import annotations

from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.origins import NO_KEY
from floodline.scan._findings.finding import HIGH, LOW, MEDIUM, Confidence
from floodline.scan._program.commands import COMMAND_LINE
from floodline.scan._proofs.events import in_a_loop
from floodline.scan._proofs.evidence import ASSUMED, PROVED, REFUTED, UNKNOWN, Evidence
from floodline.scan._proofs.grounds import Holder, Origin
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import EVENT, NONE, Removal


def confidence_of(proofs: tuple[Evidence, ...], removal: Removal) -> Confidence | None:
    """High: all four proved. Medium: one is unknown, or the holder is assumed. Low: naive rule."""
    states = [proof.state for proof in proofs]
    if states[3] == REFUTED:
        return None
    unknown = states.count(UNKNOWN)
    if REFUTED not in states and unknown <= 1:
        return HIGH if not unknown and ASSUMED not in states else MEDIUM
    naive = removal.when == NONE and REFUTED not in states[:2]
    return LOW if naive else None


def is_vague(
    judge: Judge,
    file: FileFacts,
    change: Change,
    holder: Evidence,
    path: Evidence,
    key: Evidence,
    *,
    needs_event: bool = False,
) -> bool:
    """Return True if there is too much doubt for medium, in a program that shows its events.

    With `needs_event` an event has to be seen: nothing else shows that the function runs at all.
    """
    if judge.trusts():
        return False
    if path.state != PROVED and judge.decorates(f"{file.module}:{change.function}"):
        return True
    if COMMAND_LINE & set(file.module.split(".")) and not in_a_loop(change):
        path = path._replace(state=UNKNOWN)  # a command is an event that comes once
    if needs_event and path.state != PROVED:
        return True
    return _is_open(change, holder, path, key)


def _is_open(change: Change, holder: Evidence, path: Evidence, key: Evidence) -> bool:
    """Return True if there is doubt beyond the caller: the holder, how often it grows, the keys.

    A list that stores its argument is a registry, as long as no event is seen to fill it.
    """
    seen = path.state == PROVED
    passing = not seen and holder.reason.rests_on(Holder.HANDED_ON)
    if holder.state == UNKNOWN and (passing or key.state != PROVED):
        return True
    if seen:
        return False
    if UNKNOWN in (path.state, key.state):
        return True
    return key.state == ASSUMED and change.key == NO_KEY


def certain(key: Evidence, removal: Removal) -> Removal:
    """Return a removal without its doubt, if its event has to arrive for each of ever new keys.

    An event may arrive for every user there is. A client that got a new id may never come back.
    """
    new = key.state == PROVED and key.reason.rests_on(Origin.NEW_EACH_TIME)
    if removal.when != EVENT or not new:
        return removal
    return removal._replace(proof=removal.proof._replace(state=PROVED))
