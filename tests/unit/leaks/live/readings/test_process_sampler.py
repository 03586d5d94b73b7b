from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from floodline import telemetry
from floodline.leaks._live.readings import process_sampler
from floodline.leaks._live.readings.process_sampler import Sampler


def test_our_caches_in_c_code_are_left_out_while_they_fill(monkeypatch):
    own: Any = SimpleNamespace(bytes=0)
    sampler = Sampler(own, census=False)
    monkeypatch.setattr(process_sampler.sys, "getallocatedblocks", lambda: 1000)
    for second, cached in enumerate((0, 4 << 20, 8 << 20)):
        monkeypatch.setattr(process_sampler, "rss", lambda cached=cached: (100 << 20) + cached)
        monkeypatch.setattr(telemetry, "native_bytes", lambda cached=cached: cached)
        sampler.sample(float(second))
    assert len(set(sampler.process.process("rss"))) == 1
