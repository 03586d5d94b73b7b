"""Ids that were seen are remembered for ever; the check before that is no limit."""

import itertools
import time

seen = set()


def is_new(number):
    if number in seen:
        return False
    seen.add(number)
    return True


for number in itertools.count():
    is_new(number * 1_000_003)
    time.sleep(0.005)
