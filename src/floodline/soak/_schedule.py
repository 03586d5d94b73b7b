"""After which rounds to sample."""

from __future__ import annotations

import random

LEAST_SAMPLES = 14
MOST_SAMPLES = 40
LATE_SAMPLES = 6


def default_warmup(rounds: int) -> int:
    """Return a tenth of the rounds, at most a hundred."""
    return min(100, max(1, rounds // 10)) if rounds > 1 else 0


def traced_rounds(rounds: int) -> int:
    """Return how many of the last rounds look for the feeding line."""
    return min(10, max(1, rounds // 20)) if rounds >= 20 else 0


def positions(first: int, last: int, cost: float, budget: float) -> list[int]:
    """Return rounds between `first` and `last`, both sampled, as many as the budget allows.

    They are spread unevenly, so that a cycle of the program does not look like a slope, and are
    dense in the last tenth, which decides.
    """
    wanted = min(MOST_SAMPLES, max(LEAST_SAMPLES, int(budget / max(cost, 1e-6))))
    if last - first + 1 <= wanted:
        return list(range(first, last + 1))
    spread = random.Random(first * 7919 + last)  # no secret: the same run, the same samples
    step = (last - first) / (wanted - LATE_SAMPLES)
    chosen = {first, last}
    for k in range(1, wanted - LATE_SAMPLES):
        chosen.add(round(first + (k + spread.uniform(-0.35, 0.35)) * step))
    late = last - (last - first) / 10
    for k in range(LATE_SAMPLES):
        chosen.add(round(late + (last - late) * k / LATE_SAMPLES))
    return sorted(chosen)
