"""Leaks of libraries: what their callers hand in stays, and no line of the library looks wrong."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from floodline.scan import Scan


@pytest.fixture
def reported(tmp_path) -> Callable[[str], list[str]]:
    def scan(code: str) -> list[str]:
        (tmp_path / "lib.py").write_text(dedent(code), encoding="utf-8")
        findings = Scan([tmp_path], library=True).report().findings
        return [f"{f.rule} {f.symbol}" for f in findings if f.confidence != "low"]

    return scan


ANY_OF = """
    class Event:
        def __init__(self):
            self.callbacks = []

        def fire(self):
            called, self.callbacks = self.callbacks, None

    class Timeout(Event):
        def __init__(self):
            self.callbacks = []

    class AnyOf(Event):
        def __init__(self, events):
            self.callbacks = []
            self.events = tuple(events)
            for event in self.events:
                event.callbacks.append(self._check)

        def _check(self, event):
            {}

    def run(queue):
        while queue:
            queue.pop().fire()
    """


def test_a_waiter_for_any_of_several_is_kept_by_the_others(reported):
    assert reported(ANY_OF.format("self.done = event")) == ["FLD110 lib.Event.callbacks"]


def test_a_waiter_that_takes_its_listener_back_is_not(reported):
    taken_back = "[e.callbacks.remove(self._check) for e in self.events]"
    assert reported(ANY_OF.format(taken_back)) == []


LENT = """
    def create(arguments, hooks, connect, keep):
        {outside}

        def opened(record):
            {inside}
            for hook in hooks:
                hook(record, given)
            return connect(*given)

        return keep(opened)
    """


def test_a_captured_list_that_every_callback_gets(reported):
    code = LENT.format(outside="given = list(arguments)", inside="pass")
    assert reported(code) == ["FLD108 lib.create.<locals>.opened{given}"]


@pytest.mark.parametrize(
    ("outside", "inside"),
    [
        ("given = ()", "given = list(arguments)"),  # each call has its own
        ("given = list(arguments); given.append(1)", "pass"),  # a result that is built
        ("given = list(arguments); keep(given)", "pass"),  # somebody else has it too
    ],
)
def test_a_list_that_is_not_lent_again_and_again(reported, outside, inside):
    assert reported(LENT.format(outside=outside, inside=inside)) == []


TASKS = """
    class Event:
        def __init__(self, machine, {taken}):
            self.machine = machine
            self.model = {given}

    class Machine:
        tasks = {{}}

        def trigger(self, model):
            self._run(Event(self, {passed}))

        def _run(self, event):
            self._switch(event.model)

        def _switch(self, model):
            self.tasks[model] = current()
    """


@pytest.mark.parametrize(
    ("passed", "found"), [("model", ["FLD101 lib.Machine.tasks"]), ('"one"', [])]
)
def test_a_key_is_followed_through_the_attribute_that_a_constructor_sets(reported, passed, found):
    assert reported(TASKS.format(taken="model", given="model", passed=passed)) == found


def test_an_attribute_that_no_argument_has_stays_unknown(reported):
    assert reported(TASKS.format(taken="text", given="parse(text)", passed="model")) == []
