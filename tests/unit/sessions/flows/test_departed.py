"""Gone means gone: what is watched, for how long, and how many."""

from __future__ import annotations

import gc

import pytest

from floodline.sessions._flows import departed as departed_module
from floodline.sessions._flows.departed import Departed
from worker_threads import Worker, events_of


class State:
    pass


def test_none_is_not_watched_and_what_has_no_weak_reference_is_counted() -> None:
    departed = Departed("here")
    departed.watch(None, "a", 0.0)
    departed.watch({}, "b", 0.0)
    assert (len(departed), departed.unchecked) == (0, 1)


def test_the_list_of_the_watched_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departed_module, "MAX_WATCHED", 2)
    departed, states = Departed("here"), [State() for _ in range(3)]
    for state in states:
        departed.watch(state, "x", 0.0)
    assert (len(departed), departed.unchecked) == (2, 1)


def test_a_state_is_reported_only_after_the_grace_and_a_full_collection() -> None:
    departed, state = Departed("retaining here"), State()
    departed.watch(state, "session a", 0.0)
    gc.collect()
    assert departed.check(29.0) == 0
    assert departed.check(30.0) == 1
    assert departed.check(31.0) == 0
    (event,) = events_of("retained", "retaining here")
    assert event.fields.items() >= {"label": "session a", "seconds": 30.0, "count": 1}.items()
    assert "session a" not in event.fields["path"]


def test_the_freed_before_and_after_a_living_one_are_forgotten() -> None:
    departed, state = Departed("here"), State()
    departed.watch(State(), "freed", 0.0)
    departed.watch(state, "alive", 0.0)
    departed.watch(State(), "freed", 0.0)
    assert departed.check(1.0) == 0
    assert len(departed) == 1
    del state
    assert departed.check(1.0) == 0
    assert len(departed) == 0


def test_two_threads_may_check_at_once() -> None:
    departed = Departed("here")

    def check() -> None:
        for n in range(300):
            departed.watch(State(), "x", float(n))
            departed.check(float(n))

    for worker in [Worker(check) for _ in range(4)]:
        worker.result()
    departed.check(1000.0)
    assert len(departed) == 0
