from __future__ import annotations

from floodline.memory import Cgroup, MemoryBudget
from floodline.memory._budget import thresholds


def test_shares_are_of_the_lowest_cgroup_limit_and_its_usage_counts(monkeypatch):
    found = Cgroup("/x", 1000, 700, 2)
    monkeypatch.setattr(thresholds.cgroup, "binding", lambda root: found)
    check = MemoryBudget("80%", target="75%", every=None).check()
    assert (check.limit, check.target, check.used) == (800, 750, 700)


def test_a_cgroup_limit_above_the_memory_of_the_machine_is_none(monkeypatch):
    found = Cgroup("/x", 2001, 700, 2)
    monkeypatch.setattr(thresholds.cgroup, "binding", lambda root: found)
    monkeypatch.setattr(thresholds, "machine_memory", lambda: 2000)
    check = MemoryBudget("80%", every=None, probe=lambda: 5).check()
    assert (check.limit, check.used) == (1600, 5)


def test_without_usage_of_the_cgroup_the_own_counts(monkeypatch):
    found = Cgroup("/x", 1 << 40, None, 2)
    monkeypatch.setattr(thresholds.cgroup, "binding", lambda root: found)
    monkeypatch.setattr(thresholds, "machine_memory", lambda: 1 << 40)
    check = MemoryBudget("50%", every=None).check()
    assert check.limit == 1 << 39
    assert check.used > 1_000_000
    assert MemoryBudget("50%", every=None, probe=lambda: 5).check().used == 5


def test_without_a_cgroup_shares_are_of_the_machine(monkeypatch):
    monkeypatch.setattr(thresholds.cgroup, "binding", lambda root: None)
    monkeypatch.setattr(thresholds, "machine_memory", lambda: 1 << 40)
    check = MemoryBudget("80%", every=None).check()
    assert check.limit == int((1 << 40) * 0.8)
    assert check.used > 1_000_000
