"""The line that raises an error which is kept, and the line that begins a task of the library."""

from __future__ import annotations

import contextlib

import pytest

from floodline.leaks._closeup.closeup import look_closer
from floodline.leaks._closeup.feeding_line import Feeder
from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.trend import Trend
from floodline.leaks._heap.roots import survey
from floodline.leaks._heap.slots import Slots
from floodline.leaks._source.reraised import Raised
from soak_programs import line_of, module, narrow

SOURCE = """
CLOSED = ValueError("closed")
FULL = {"a": ValueError("full")}

def deep(error):
    raise error                        # raises

def call(error):
    try:
        deep(error)
    except ValueError:
        pass
"""


def watch_of(key, made, monkeypatch):
    narrow(monkeypatch, made)
    slots = Slots()
    survey(slots)
    one = Candidate(slots.get(key), "count", Trend("growing", 1.0, 10.0, 1.0), 10.0, 5)
    return look_closer(slots, [one])[0].watch()


@pytest.mark.parametrize(
    ("key", "pick"),
    [
        ("kept.CLOSED→traceback", lambda made: made.CLOSED),
        ("kept.FULL[*]→traceback", lambda made: made.FULL["a"]),
    ],
)
def test_an_error_that_is_raised_again_shows_the_line_that_raises(
    key, pick, tmp_path, monkeypatch, untraced
):
    made = module("kept", SOURCE, tmp_path, monkeypatch)
    made.call(pick(made))
    watch = watch_of(key, made, monkeypatch)
    with Feeder([watch]):
        made.call(pick(made))
        made.call(pick(made))
    assert watch.fed
    assert watch.place().line == line_of(SOURCE, "# raises")
    assert watch.place().function == "deep"


def test_an_error_counts_once_each_time_it_has_a_new_traceback():
    error, calm = ValueError("kept"), ValueError("calm")
    raised = Raised([error, calm, "no error"])
    assert raised
    assert not Raised(["no error"])

    def fail():
        raise error

    for times in (1, 2):
        with contextlib.suppress(ValueError):
            fail()
        assert raised.times() == times
    assert raised.times() == 2
    assert raised.place.function == "fail"
    error.__traceback__ = None
    assert raised.times() == 2
