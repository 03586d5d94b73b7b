from __future__ import annotations

from floodline.leaks._live.readings.rare_steps import LONG, MINUTE, SHORT, RareSteps


class Steps(RareSteps):
    """Rare steps with a clock of their own, and when the long ones were taken."""

    def __init__(self) -> None:
        self.now, self.spent, self.long = 0.0, 0.0, []
        super().__init__(lambda: self.now, lambda: self.spent)

    def wish(self, kind: str, seconds: float, size: int = 1) -> bool:
        """Take one of so many seconds if it is allowed."""
        if not self.allows(kind, self.expected(kind, size, seconds)):
            return False
        self.take(kind, lambda: self._spend(seconds), size)
        if seconds > SHORT:
            self.long.append((self.now, kind))
        return True

    def _spend(self, seconds: float) -> None:
        self.spent += seconds


def test_two_in_any_minute_may_be_long_whoever_asks():
    steps = Steps()
    for second in range(600):
        steps.now = float(second)
        for kind in ("count", "census", "search"):
            steps.wish(kind, 2 * SHORT)
    times = [at for at, _ in steps.long]
    assert len(times) == 20
    assert all(later - at >= MINUTE for at, later in zip(times, times[2:], strict=False))


def test_of_those_that_wait_the_one_that_was_served_longest_ago_comes_first():
    steps = Steps()
    for second in range(240):
        steps.now = float(second)
        for kind in ("count", "census", "search"):
            steps.wish(kind, 2 * SHORT)
    kinds = [kind for _, kind in steps.long]
    assert {kind: kinds.count(kind) for kind in kinds} == {"count": 3, "census": 3, "search": 2}


def test_what_takes_no_longer_is_not_rare():
    steps = Steps()
    assert all(steps.wish("count", SHORT / 2) for _ in range(50))
    assert steps.long == []
    assert all(steps.wish("split", 2 * SHORT) for _ in range(2))
    assert steps.wish("count", SHORT / 2)
    assert not steps.wish("census", 2 * SHORT)


def test_what_it_took_for_a_unit_tells_what_more_of_them_will_take():
    steps = Steps()
    assert steps.wish("count", 0.001, size=100_000)
    assert steps.expected("count", 4_000_000) > 0.040
    assert steps.expected("count", 100_000) < SHORT
    assert steps.wish("split", 2 * SHORT)
    assert steps.wish("split", 2 * SHORT)
    assert not steps.allows("count", steps.expected("count", 4_000_000))
    assert steps.longest("count", 1_000) == SHORT
    steps.now = MINUTE
    assert steps.allows("count", steps.expected("count", 4_000_000))
    assert steps.longest("count", 1_000) == LONG
    assert steps.longest("count", 1_000_000) > 2 * LONG  # a full collection takes longer


def test_one_may_take_as_long_as_a_full_collection_which_is_shorter_where_counting_is():
    steps = Steps()
    first = steps.longest("search", 1_000_000)
    assert steps.wish("count", 0.020, size=1_000_000)
    assert steps.longest("search", 1_000_000) == first
    steps.now = MINUTE
    assert steps.wish("count", 0.006, size=1_000_000)
    assert LONG < steps.longest("search", 1_000_000) < first / 1.9


def test_one_that_is_reserved_is_left_by_the_others():
    steps = Steps()
    steps.reserved = "split"
    assert steps.wish("count", 2 * SHORT)
    assert not steps.wish("malloc", 2 * SHORT)
    assert steps.wish("split", 2 * SHORT)
