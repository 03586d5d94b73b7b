"""One rank for each finding, 0 to 100, from a small fitted table; levels are cuts of it."""

from __future__ import annotations

import math

from floodline.scan._findings import weights
from floodline.scan._findings.features import Features
from floodline.scan._findings.finding import HIGH, LOW, MEDIUM, Confidence


def rank_of(known: Features) -> int:
    """Return the rank: the probability of the fitted model, in percent."""
    score = sum(
        weights.WEIGHTS[column].get(value, 0.0) for column, value in known._asdict().items()
    )
    return round(100 / (1 + math.exp(-score)))


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
