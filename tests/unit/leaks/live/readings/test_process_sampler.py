from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from floodline import telemetry
from floodline.leaks._live.readings import process_sampler
from floodline.leaks._live.readings.process_sampler import Sampler
from floodline.leaks._live.readings.rare_steps import RareSteps


def never_rare() -> RareSteps:
    return RareSteps(lambda: 0.0, lambda: 0.0)


def test_our_caches_in_c_code_are_left_out_while_they_fill(monkeypatch):
    own: Any = SimpleNamespace(bytes=0)
    sampler = Sampler(own, never_rare(), census=False)
    monkeypatch.setattr(process_sampler.sys, "getallocatedblocks", lambda: 1000)
    for second, cached in enumerate((0, 4 << 20, 8 << 20)):
        monkeypatch.setattr(process_sampler, "rss", lambda cached=cached: (100 << 20) + cached)
        monkeypatch.setattr(telemetry, "native_bytes", lambda cached=cached: cached)
        sampler.sample(float(second))
    assert len(set(sampler.process.process("rss"))) == 1


def test_the_objects_of_our_own_tracks_are_left_out(monkeypatch):
    own: Any = SimpleNamespace(bytes=0)
    tracks: list[int] = []
    sampler = Sampler(own, never_rare(), tracks=lambda: len(tracks))
    for second in range(0, 40, 4):
        tracks.extend(range(100))
        ours = len(tracks)
        monkeypatch.setattr(process_sampler, "count", lambda ours=ours: 5000 + 3 * ours)
        allocated = 9000 + 8 * ours
        monkeypatch.setattr(process_sampler.sys, "getallocatedblocks", lambda told=allocated: told)
        sampler.sample(float(second))
    assert set(sampler.process.process("objects")) == {5000}
    assert set(sampler.process.process("blocks")) == {9000}


class Timed(RareSteps):
    """Rare steps whose time is told, in a heap of so many objects."""

    def __init__(self, each: float) -> None:
        self.now, self.spent, self.each = 0.0, 0.0, each
        super().__init__(lambda: self.now, lambda: self.spent)

    def count(self, objects: int) -> int:
        self.spent += self.each * objects
        return objects


def sampled(monkeypatch, each: float, seconds: int, grown: int) -> tuple[Sampler, list[float]]:
    own: Any = SimpleNamespace(bytes=0)
    rare, counted = Timed(each), []
    sampler = Sampler(own, rare)
    monkeypatch.setattr(process_sampler.sys, "getallocatedblocks", lambda: 9000)

    def count() -> int:
        counted.append(rare.now)
        return rare.count(600_000 + grown * int(rare.now))

    monkeypatch.setattr(process_sampler, "count", count)
    for second in range(seconds):
        rare.now = float(second)
        sampler.sample(rare.now)
    return sampler, counted


def test_rare_counts_that_rise_evenly_climb(monkeypatch):
    sampler, counted = sampled(monkeypatch, each=20e-9, seconds=100, grown=100)
    assert 2 < len(counted) < 6
    assert 95 < sampler.process.climb < 105


def test_one_step_between_rare_counts_is_no_climb():
    process = process_sampler.Process()
    for at, objects in ((0.0, 300_000), (30.0, 300_010), (60.0, 302_000)):
        process.count(at, objects)
    assert process.climb == 0.0


def test_rare_counts_that_agree_do_not_climb_and_two_are_too_few(monkeypatch):
    sampler, counted = sampled(monkeypatch, each=20e-9, seconds=100, grown=0)
    assert len(counted) > 2
    assert sampler.process.climb == 0.0
    assert not sampler.process.few_counts
    sampler.process.restart()
    sampler.process.count(101.0, 5)
    assert sampler.process.few_counts


def test_counting_by_type_puts_off_no_count_that_is_cheap(monkeypatch):
    own: Any = SimpleNamespace(bytes=0)
    sampler = Sampler(own, never_rare())
    counted: list[float] = []
    monkeypatch.setattr(process_sampler, "count", lambda: counted.append(sampler._next) or 5000)
    monkeypatch.setattr(sampler.process.counted, "is_due", lambda now, *_: now % 2 == 1)
    monkeypatch.setattr(sampler.process.counted, "work", lambda *_: None)
    for second in range(60):
        sampler.sample(float(second), harder=True)
    assert len(counted) >= 14
