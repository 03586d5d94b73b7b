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
