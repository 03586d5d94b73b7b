"""Doubts that add up, and one that goes: what is too little for medium, and what is more.

One thing may be unknown. That nobody is seen to run a function and that its callers give the key
is one thing: the callers are not in the source. What comes on top of it is a second one.
"""

from __future__ import annotations

from floodline.scan._facts.model import Change
from floodline.scan._proofs.holders import HANDED_ON
from floodline.scan._proofs.proof import ASSUMED, PROVED, UNKNOWN, Proof
from floodline.scan._proofs.removal import EVENT, Removal

NEW_EACH_TIME = "a new value each time"  # as the proof of the keys says it


def is_vague(change: Change, holder: Proof, path: Proof, key: Proof) -> bool:
    """Whether more is open than who calls: who holds it, how often it grows, or the keys.

    A list that takes what it is given is a register, as long as no event is seen to fill it.
    """
    seen = path.state == PROVED
    passing = not seen and holder.claim.endswith(HANDED_ON)
    if holder.state == UNKNOWN and (passing or key.state != PROVED):
        return True
    if seen:
        return False
    if UNKNOWN in (path.state, key.state):
        return True
    return key.state == ASSUMED and change.key == "append"


def certain(key: Proof, removal: Removal) -> Removal:
    """Return a removal without its doubt, if its event has to come for each of ever new keys.

    An event may come for every user that there is. Whoever got a new id may never come again.
    """
    if removal.when != EVENT or key.state != PROVED or NEW_EACH_TIME not in key.claim:
        return removal
    return removal._replace(proof=removal.proof._replace(state=PROVED))
