"""One rank for each finding, 0 to 100, from a small fitted table; levels are cuts of it."""

from __future__ import annotations

import math

from floodline.scan._findings import weights
from floodline.scan._findings.features import Features
from floodline.scan._findings.finding import HIGH, LOW, MEDIUM, Confidence

UNSEEN_KEYS = {"caller", "derived", "checked", "unknown"}
UNSEEN_PATHS = {"uncalled", "unknown"}


def rank_of(known: Features) -> int:
    """Return the rank: the probability of the model, in percent; below high if there is a doubt."""
    score = sum(
        weights.WEIGHTS[column].get(value, 0.0) for column, value in known._asdict().items()
    )
    rank = round(100 / (1 + math.exp(-score)))
    return rank if known.doubts == "none" else below_high(rank)


def rank_in_program(known: Features) -> int:
    """Return the rank in a program that shows its events.

    If neither the caller nor the origin of the key is seen there, only the name of the key is left:
    unless it is that of an id, the rank is at most low. The same holds for items of an instance
    that nothing is seen to create, and for items that callers bring.
    """
    rank = rank_of(known)
    return min(rank, weights.MEDIUM - 1) if _is_vague(known) else rank


def _is_vague(known: Features) -> bool:
    if known.intent in ("cap", "status", "age"):
        return False  # whoever limits, ends or dates what is kept expects much of it
    if known.word == "kind" and known.key in UNSEEN_KEYS:
        return True
    if known.key in ("unknown", "checked") and known.word == "other":
        return True
    if known.path not in UNSEEN_PATHS:
        return False
    if known.key == "stores":
        return True  # as often as not a register
    if known.word == "none":
        return known.life == "unmade"  # items without a key, in an instance that nothing creates
    return known.key in UNSEEN_KEYS and known.word != "id"


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
