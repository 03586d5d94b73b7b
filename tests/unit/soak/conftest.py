"""What the tests of soak runs share."""

from __future__ import annotations

import pytest

from floodline import soak
from floodline.leaks import Suspect
from soak_programs import module, narrow


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Soak a program of which alone the walks know, on this thread."""

    def soak_it(source, *, rounds=60, name="soaked", **options):
        made = module(name, source, tmp_path, monkeypatch)
        narrow(monkeypatch, made)
        parts = {k: vars(made)[k] for k in ("setup", "teardown") if k in vars(made)}
        return soak.run(made.round, rounds=rounds, **parts, **options)

    return soak_it


@pytest.fixture
def suspect():
    """A container that grows, with a line that was seen to feed it."""
    return Suspect(
        rank=1, verdict="growing", owner="app.plans.PlanService._memory_services",
        defined_in="app.plans.PlanService", path="app.main.SERVICE._memory_services", type="dict",
        holds="MemoryService ×271", len=271, per_round=1.0, bytes_per_round=4000.0,
        file="app/plans.py", line=455, line_source="trace", function="get_memory_service",
        echoes=("weakref.X",),
    )  # fmt: skip
