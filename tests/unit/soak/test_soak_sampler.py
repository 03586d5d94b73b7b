"""Samples without a walk: only where nothing has changed, and only if the next walk agrees."""

from __future__ import annotations

import gc

import pytest

from floodline.leaks._heap import Slots, roots
from floodline.soak import _sampler
from floodline.soak._sampler import Sampler, take_census


class Program:
    """One list and one text; the census sees the list alone."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.text = ""


@pytest.fixture
def program(monkeypatch):
    made = Program()
    monkeypatch.setattr(roots, "_modules", lambda walk: walk.push(made, walk.slots.root("program")))
    for name in ("_orphans", "_frames", "count_at_exit"):
        monkeypatch.setattr(roots, name, lambda walk: None)
    monkeypatch.setattr(_sampler, "take_census", lambda: (5, len(made.rows)))
    return made


@pytest.fixture
def walks(monkeypatch):
    """The number of walks so far."""
    done = []
    survey = _sampler.survey
    monkeypatch.setattr(
        _sampler, "survey", lambda *given, **more: done.append(1) or survey(*given, **more)
    )
    return done


def text_of(sampler: Sampler) -> list[int]:
    slot = sampler.series.slots.get("program.text")
    return sampler.series.column(slot.index, "text") if slot else []


def test_every_third_sample_of_a_calm_program_has_a_walk(program, walks):
    sampler = Sampler(Slots())
    for at in range(1, 11):
        sampler.sample(at, (), decides=at == 10)
    assert sampler.series.rounds == list(range(1, 11))
    assert len(walks) == 4
    assert len(set(sampler.series.process("bytes"))) == 1


def test_a_sample_that_decides_has_its_walk(program, walks):
    sampler = Sampler(Slots())
    for at in (1, 2, 3):
        sampler.sample(at, (), decides=True)
    assert len(walks) == 3


def test_what_grows_is_walked_each_time(program, walks):
    sampler = Sampler(Slots())
    for at in range(1, 6):
        program.rows.append(at)
        sampler.sample(at, ())
    assert (sampler.series.rounds, len(walks)) == ([1, 2, 3, 4, 5], 5)


def test_growth_that_the_census_misses_is_found_and_ends_the_saving(program, walks):
    sampler = Sampler(Slots())
    for at in range(1, 9):
        program.text += "x"
        sampler.sample(at, ())
    assert sampler.series.rounds == [1, 5, 6, 7, 8]  # those in between would have been guesses
    assert text_of(sampler) == [1, 5, 6, 7, 8]


def test_a_restart_begins_with_a_walk(program, walks):
    sampler = Sampler(Slots())
    for _ in range(2):
        sampler.sample(1, ())
        sampler.restart()
    assert len(walks) == 2


class Liar(type):
    def __eq__(cls, other: object) -> bool:
        raise AssertionError("user code ran")

    def __hash__(cls) -> int:
        raise AssertionError("user code ran")


class Long(list[int], metaclass=Liar):
    def __len__(self) -> int:
        raise AssertionError("user code ran")


def test_the_census_counts_containers_and_runs_no_user_code():
    kept = Long([1])
    rows: list[object] = [kept]
    gc.collect()
    objects, length = take_census()
    rows.extend([[]] * 1000)
    again, longer = take_census()
    assert longer - length >= 1000
    assert abs(again - objects) < 100
