"""One rank for each finding, 0 to 100, from a small fitted table; levels are cuts of it."""

from __future__ import annotations

import math

from floodline.scan._findings import weights
from floodline.scan._findings.features import Features
from floodline.scan._findings.finding import HIGH, LOW, MEDIUM, Confidence

UNSEEN_KEYS = {"caller", "derived", "checked", "unknown"}
IDS = {"who", "id"}
LASTING = {"kept", "library", "entry"}
SEEN_KEYS = {"new", "event"}
UNSEEN_PATHS = {"uncalled", "unknown"}


def rank_of(known: Features) -> int:
    """Return the rank: the probability of the model, in percent; below high if there is a doubt."""
    score = sum(
        weights.WEIGHTS[column].get(value, 0.0) for column, value in known._asdict().items()
    )
    rank = round(100 / (1 + math.exp(-score)))
    return rank if known.doubts == "none" else below_high(rank)


def rank_in_program(known: Features) -> int:
    """Return the rank in a program that shows its events: what is too vague there is low."""
    rank = rank_of(known)
    return min(rank, weights.MEDIUM - 1) if _is_vague(known) else rank


def _is_vague(known: Features) -> bool:
    if known.path == "unnamed" or known.life in ("unnamed", "passing", "anew"):
        return True
    if known.intent in ("cap", "status", "age"):
        return False  # whoever limits, ends or dates what is kept expects much of it
    if known.word == "none":
        return _is_vague_item(known)
    if _is_made_for_each(known):
        return False
    if known.word == "kind" and known.key in UNSEEN_KEYS:
        return True
    if known.word == "other" and known.key in ("unknown", "checked", "caller"):
        return True
    unsure = known.life not in LASTING and known.key not in SEEN_KEYS and known.word != "who"
    if known.removal == "never" and unsure:
        return True  # a clean-up without a caller, of an object that may be gone before
    return known.path in UNSEEN_PATHS and known.key in UNSEEN_KEYS and known.word not in IDS


def _is_made_for_each(known: Features) -> bool:
    """Return True if something that stays creates what it keeps for a key, and removes nothing.

    What is given with a key may be a setting; who creates it has not seen the key before.
    """
    stays = _stays(known) and known.removal == "none" and known.path != "unknown"
    if known.what == "work":
        return stays and known.key in ("checked", "derived")
    vague = known.word == "other" and known.key in ("unknown", "caller")
    return stays and vague and known.what in ("made", "member")


def _stays(known: Features) -> bool:
    """Return True if what holds the container stays: what start-up creates does, for events."""
    return known.life in LASTING or (known.life == "run" and known.path == "event")


def _is_vague_item(known: Features) -> bool:
    """Return True for items without a key that may well go: with their object, or by an event."""
    if known.what == "item" and not _stays(known) and known.removal != "end":
        return True  # whoever clears it when it ends expects it to last
    unsure = known.key == "stores" or known.life == "unmade" or known.removal == "event"
    return known.path in UNSEEN_PATHS and unsure


def level_of(rank: int) -> Confidence:
    """Return the level of a rank."""
    return HIGH if rank >= weights.HIGH else MEDIUM if rank >= weights.MEDIUM else LOW


def usual_rank(level: Confidence) -> int:
    """Return the rank of a finding that no table ranks: the middle of its level."""
    cuts = {
        LOW: (0, weights.MEDIUM),
        MEDIUM: (weights.MEDIUM, weights.HIGH),
        HIGH: (weights.HIGH, 101),
    }
    return sum(cuts[level]) // 2


def below_high(rank: int) -> int:
    """Return a rank that is at most the best of medium."""
    return min(rank, weights.HIGH - 1)


def at_least_medium(rank: int) -> int:
    """Return a rank that is at least the lowest of medium."""
    return max(rank, weights.MEDIUM)
