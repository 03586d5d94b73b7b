"""Without a free descriptor the recorder still ticks, and takes nobody for dead."""

from __future__ import annotations

import os
import socket

import pytest

from floodline.recorder import Recorder, _proc, read_recording
from recorder_fakes import Clock, no_descriptors

PATIENCE = 60.0


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recorder(tmp_path, clock):
    recorder = Recorder("app.py", file=tmp_path / "run.rec", clock=clock, kills=lambda: 0)
    recorder.program(os.getpid())
    yield recorder
    recorder.close()


def test_a_tick_looks_and_is_written_all_the_same(recorder, clock, tmp_path):
    with no_descriptors():
        with pytest.raises(OSError, match="Too many open files"):
            os.dup(1)
        for _ in range(5):
            clock.now += 1.0
            recorder.tick()
        assert recorder.unwritten is None
    state = recorder.state()
    assert (state["errors"], len(state["memory"]["points"])) == ([], 5)
    assert read_recording(tmp_path / "run.rec").state() == state


def test_where_nothing_was_put_by_the_last_figures_stand(recorder, clock, tmp_path):
    recorder.tick()
    recorder._spare.close()
    recorder._spare.keep = lambda: None
    for _ in range(3):
        with no_descriptors():
            clock.now += 1.0
            recorder.tick()
    assert "could not be written" in recorder.unwritten
    (one,) = recorder.state()["processes"]
    assert (one["state"], one["pid"]) == ("running", os.getpid())
    errors = [event for event in recorder.state()["events"] if event["kind"] == "recording_error"]
    assert len(errors) <= 1  # counted, not repeated
    clock.now += 1.0
    recorder.tick()
    assert recorder.unwritten is None
    assert read_recording(tmp_path / "run.rec").state() == recorder.state()


def test_a_probe_waits_for_a_descriptor_and_the_recording_says_so(recorder):
    host, port, _ = recorder.address.split(":")
    line = socket.socket()
    line.settimeout(PATIENCE)
    with no_descriptors():
        line.connect((host, int(port)))
        for _ in range(600):
            recorder.tick()
            told = [event["text"] for event in recorder.state()["events"]]
            if any("file descriptors, and new probes wait" in text for text in told):
                break
            recorder.wait_for_news(0.1)
        else:
            raise AssertionError(told)
    line.close()


def test_a_process_that_cannot_be_looked_at_is_not_taken_for_dead():
    with no_descriptors():
        assert _proc.alive(os.getpid())
        assert not _proc.alive(2**22 + 9)
        assert _proc.carriers("127.0.0.1:1:token") == []
        with pytest.raises(OSError, match="Too many open files"):
            _proc.resident(os.getpid())
