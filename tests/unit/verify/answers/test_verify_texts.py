from __future__ import annotations

import itertools
from collections import defaultdict

import pytest

from floodline._python.at_limit import AtLimit
from floodline.verify._answers.causes import Cause
from floodline.verify._answers.texts import does, sentence
from floodline.verify._policy import FITS


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_a_sentence_of_its_own(cause):
    details = defaultdict(lambda: 7.0)
    told = sentence(cause, details)
    others = {sentence(other, details) for other in Cause if other is not cause}
    assert told
    assert "{" not in told
    assert told not in others


def test_a_sentence_has_the_details():
    details = {"name": "Cache.rows", "number": 9, "limit": 10}
    assert sentence(Cause.OTHER_NUMBER, details) == "Cache.rows is limited to 9, not 10"


def test_everything_that_a_policy_allows_can_be_said():
    kinds = set(itertools.chain(*FITS.values())) | {AtLimit.LAST, AtLimit.SOME}
    assert len({does([kind]) for kind in kinds}) == len(kinds)


def test_several_things_are_said_in_an_order_that_does_not_change():
    both = "removes the first item or removes the last item"
    assert does([AtLimit.LAST, AtLimit.FIRST]) == does([AtLimit.FIRST, AtLimit.LAST]) == both
