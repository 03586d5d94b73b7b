"""Descriptors that are put by for the tick, and lines that are not written every second."""

from __future__ import annotations

import resource
from pathlib import Path

from floodline.recorder import _descriptors
from floodline.recorder._descriptors import Seldom, Spare, descriptor_limit
from recorder_fakes import Clock


def opened():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_what_is_put_by_is_free_inside_and_put_by_again():
    before = opened()
    spare = Spare(5)
    assert opened() == before + 5
    with spare:
        assert opened() == before
    assert opened() == before + 5
    spare.close()
    assert opened() == before


def test_where_none_can_be_had_the_next_tick_tries_again(monkeypatch):
    def none(*_):
        raise OSError(24, "Too many open files")

    before = opened()
    with monkeypatch.context() as patch:
        patch.setattr(_descriptors.os, "open", none)
        spare = Spare(2)
        assert spare._kept == []
    with spare:
        pass
    assert opened() == before + 2
    spare.close()


def test_the_limit_is_that_of_the_process(monkeypatch):
    assert descriptor_limit() == min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 20)
    endless = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(_descriptors.resource, "getrlimit", lambda _: endless)
    assert descriptor_limit() == 1 << 20
    monkeypatch.setattr(_descriptors, "resource", None)
    assert descriptor_limit() == 1024


def test_a_line_is_written_once_a_minute_at_most():
    clock = Clock()
    seldom = Seldom(clock)
    said = []
    for _ in range(150):
        said.append(seldom())
        clock.now += 1.0
    assert [at for at, yes in enumerate(said) if yes] == [0, 60, 120]
