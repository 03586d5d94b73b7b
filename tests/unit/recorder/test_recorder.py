"""The recorder between the probes, the outside and those who look at it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest

from floodline.recorder import Recorder, _proc
from floodline.recorder._probe.link import Link
from floodline.recorder._probe_server import _Caller
from recorder_fakes import Clock, answer, sample, suspect

PATIENCE = 60.0
MIB = 1 << 20


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def alone(monkeypatch):
    """Neither the children nor the size of the process that runs the tests are the program's."""
    monkeypatch.setattr(_proc, "descendants", lambda pid: [])
    monkeypatch.setattr(_proc, "resident", lambda pid: 50 * MIB)


@pytest.fixture
def recorder(clock):
    recorder = Recorder("app.py", clock=clock, kills=lambda: 3)
    yield recorder
    recorder.close()


def link_to(recorder):
    host, port, token = recorder.address.split(":")
    first = {"kind": "hello", "token": token, "pid": os.getpid(), "command": "a", "parent": 1}
    return Link(host, int(port), lambda: first)


def until(recorder, true):
    """Tick until something is true of the state."""
    for _ in range(600):
        recorder.tick()
        if true(recorder.state()):
            return recorder.state()
        recorder.wait_for_news(0.1)
    raise AssertionError("it did not become true")


def process(state, pid):
    return next(one for one in state["processes"] if one["pid"] == pid)


def test_the_snapshot_has_the_keys_that_others_build_on(recorder):
    state = recorder.state()
    assert list(state) == [
        "schema", "tool", "python", "errors", "command", "started", "now", "closed", "line",
        "verdict", "where", "needed", "unit", "suspects", "history", "memory", "processes",
        "sessions", "containers", "holders", "events", "exit", "not_covered", "recorder",
    ]  # fmt: skip
    assert state["verdict"] == "undecided"
    assert state["unit"] == "second"
    assert set(state["memory"]) == {"points", "now", "peak", "limit", "rate", "crosses_in"}


def test_what_a_probe_sends_is_in_the_next_snapshot(recorder):
    recorder.program(os.getpid())
    link = link_to(recorder)
    holders = {"sessions": [{"name": "chats", "live": 3}], "containers": [{"name": "cache"}]}
    held = [{"owner": "app.A", "bytes": 1}, {"owner": "app.B", "bytes": 2, "path": "app.B"}]
    grown = answer("growing", suspects=[suspect()], holders=held)
    assert link.send(sample(answer=grown, **holders))
    state = until(recorder, lambda state: state["suspects"])
    assert state["verdict"] == "growing"
    assert state["suspects"][0]["pids"] == [os.getpid()]
    (chats,), (cache,) = state["sessions"], state["containers"]
    assert (chats["name"], chats["live"], chats["pid"]) == ("chats", 3, os.getpid())
    assert (cache["name"], cache["pid"]) == ("cache", os.getpid())
    assert [(one["owner"], one["path"], one["pid"]) for one in state["holders"]] == [
        ("app.B", "app.B", os.getpid()),
        ("app.A", "", os.getpid()),
    ]
    assert (chats["parked"], cache["left"]) == (None, {})  # what an older probe does not tell
    assert state["memory"]["now"] > MIB
    link.close()


def test_a_caller_without_the_token_is_cut_off(recorder):
    host, port, _ = recorder.address.split(":")
    for first in (b'{"token": "guess", "pid": 5}\n', b"GET / HTTP/1.1\n", b"[1]\n", b"7\n"):
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
            line.sendall(first)
            assert line.recv(10) == b""
    recorder.tick()
    assert recorder.state()["processes"] == []


def test_those_who_wait_are_woken_by_a_tick(recorder):
    woken = []
    before = recorder.version
    waiter = threading.Thread(target=lambda: woken.append(recorder.wait(before, PATIENCE)))
    waiter.start()
    recorder.tick()
    waiter.join(PATIENCE)
    assert woken == [before + 1]
    assert recorder.wait(before + 1, 0.001) == before + 1


def test_the_program_that_was_killed_is_told_with_its_signal(recorder, clock):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    recorder.program(child.pid)
    recorder.tick()
    child.kill()
    child.communicate()
    recorder.tick()
    recorder.ended(child.returncode)
    recorder.tick()
    state = recorder.state()
    assert state["exit"]["signal"] == "SIGKILL"
    assert process(state, child.pid)["state"] == "lost"
    assert process(state, child.pid)["exit"] == state["exit"]
    assert "SIGKILL" in state["events"][-1]["text"]


def test_a_kill_that_the_kernel_counted_is_an_oom():
    counts = iter((3, 4))
    recorder = Recorder("app.py", clock=Clock(), kills=lambda: next(counts))
    recorder.program(2**22 + 9)
    recorder.ended(-9)
    recorder.close()
    assert recorder.state()["exit"]["oom"] is True


def test_what_was_taken_between_two_looks_is_told_by_the_kernel(clock, alone):
    counts = iter((3, 4))
    recorder = Recorder("app.py", clock=clock, kills=lambda: next(counts))
    recorder.program(os.getpid())
    recorder.tick()
    recorder.ended(-9, peak=900 * MIB)
    recorder.close()
    state = recorder.state()
    assert state["memory"]["peak"] == 900 * MIB
    assert state["processes"][0]["peak"] == 900 * MIB
    assert "with 900 MiB resident" in state["exit"]["cause"]


def test_a_worker_that_the_kernel_killed_is_told_although_the_program_goes_on(clock, alone):
    kills = [3]
    recorder = Recorder("app.py", clock=clock, kills=lambda: kills[0])
    recorder.program(os.getpid())
    recorder.heard(2**22 + 1, {"kind": "hello", "command": "worker", "parent": os.getpid()})
    kills[0] = 5
    clock.now += 1
    recorder.tick()
    recorder.tick()
    told = [(one["kind"], one["text"]) for one in recorder.state()["events"][-2:]]
    assert told == [
        ("process_lost", "worker"),
        ("oom_kill", "the kernel killed 2 processes in this cgroup: out of memory"),
    ]
    recorder.close()


def test_the_last_words_of_a_program_are_heard_before_its_end_is_told(recorder):
    recorder.program(os.getpid())
    link = link_to(recorder)
    link.send(sample())
    until(recorder, lambda state: process(state, os.getpid())["threads"])
    link.send(sample(threads=77))
    link.send({"kind": "bye"})
    link.close()
    recorder.ended(0, patience=PATIENCE)
    recorder.tick()
    assert process(recorder.state(), os.getpid())["threads"] == 77
    assert recorder.state()["exit"]["cause"] == "exited normally"


def test_patience_for_last_words_ends(recorder):
    recorder.program(os.getpid())
    link = link_to(recorder)
    link.send(sample())
    until(recorder, lambda state: process(state, os.getpid())["threads"])
    recorder.ended(0, patience=0.01)
    assert not recorder.said_goodbye()
    link.close()


def test_an_end_without_a_program_is_told_too(recorder):
    recorder.ended(3)
    recorder.tick()
    assert recorder.state()["exit"]["status"] == 3


def test_a_goodbye_is_noticed(recorder):
    recorder.program(os.getpid())
    assert not recorder.said_goodbye()
    recorder.heard(os.getpid(), {"kind": "bye"})
    recorder.heard(os.getpid(), {"kind": "nothing we know"})
    assert recorder.said_goodbye()


def test_crossing_the_line_warns_once_and_asks_the_probes_to_shed(clock, monkeypatch, alone):
    recorder = Recorder("app.py", clock=clock, line=100 * MIB, kills=lambda: None)
    recorder.program(os.getpid())
    link = link_to(recorder)
    link.send(sample())
    until(recorder, lambda state: process(state, os.getpid())["threads"])
    for used in (50, 120, 130, 99, 50, 120):
        monkeypatch.setattr(_proc, "resident", lambda pid, used=used: used * MIB)
        clock.now += 1
        recorder.tick()
    kinds = [event["kind"] for event in recorder.state()["events"]]
    assert kinds.count("line_crossed") == 1  # with the same words it is counted
    assert kinds.count("line_cleared") == 1
    wishes = []
    for _ in range(600):
        wishes += link.receive()
        if len(wishes) == 3:
            break
        recorder.wait_for_news(0.1)
    assert wishes[0] == {"do": "shed", "bytes": 20 * MIB}
    link.close()
    recorder.close()


def test_a_program_that_ends_above_the_line_has_not_come_back_below_it(clock, monkeypatch, alone):
    recorder = Recorder("app.py", clock=clock, line=100 * MIB, kills=lambda: None)
    recorder.program(os.getpid())
    monkeypatch.setattr(_proc, "resident", lambda pid: 120 * MIB)
    recorder.tick()
    recorder.ended(-9)
    recorder.close()
    kinds = [event["kind"] for event in recorder.state()["events"]]
    assert kinds == ["program_started", "line_crossed", "program_ended"]


def test_the_forecast_is_for_the_line(clock, monkeypatch, alone):
    recorder = Recorder("app.py", clock=clock, line=1000 * MIB, kills=lambda: None)
    recorder.program(os.getpid())
    for n in range(60):
        monkeypatch.setattr(_proc, "resident", lambda pid, n=n: (100 + n) * MIB)
        clock.now += 1
        recorder.tick()
    memory = recorder.state()["memory"]
    assert round(memory["rate"] / MIB, 2) == 1.0
    assert round(memory["crosses_in"]) == 1000 - 159
    recorder.close()


def test_children_without_a_probe_are_found_and_told(recorder, clock):
    """A middle process stands for the program, so that its children are not the tests' own."""
    code = (
        "import subprocess, sys; "
        "child = subprocess.Popen([sys.executable, '-I', '-c', 'print(1, flush=True); input()']); "
        "child.wait()"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert program.stdout.readline()
        recorder.program(program.pid)
        for _ in range(5):
            clock.now += 2
            recorder.tick()
        state = recorder.state()
        assert any("started with -I" in one for one in state["not_covered"])
        child = next(one for one in state["processes"] if one["pid"] != program.pid)
        assert child["rss"] > MIB
        assert any("no probe" in one for one in process(state, program.pid)["blind_spots"])
    finally:
        program.communicate(b"\n")


def test_what_cannot_be_merged_stops_neither_the_recorder_nor_the_program(recorder):
    recorder.program(os.getpid())
    broken = sample(answer=answer("growing", suspects=[{"owner": "x", "verdict": "bounded"}]))
    recorder.heard(os.getpid(), broken)
    recorder.tick()
    recorder.tick()
    state = recorder.state()
    assert len(state["errors"]) == 1
    assert "KeyError" in state["errors"][0]
    recorder.heard(os.getpid(), sample())
    recorder.tick()
    assert process(recorder.state(), os.getpid())["threads"] == 2


def test_closing_twice_is_harmless(recorder):
    recorder.close()
    version = recorder.version
    recorder.close()
    assert recorder.version == version
    assert recorder.state()["closed"] is True


class Line:
    """A connection that does what a test says."""

    def __init__(self, error=None):
        self.error = error
        self.sent = []

    def fileno(self):
        return 12345

    def recv(self, size):
        raise self.error

    def send(self, line):
        if self.error:
            raise self.error
        self.sent.append(line)

    def close(self):
        pass


def test_a_probe_that_does_not_read_is_passed_over(recorder):
    intake = recorder._intake
    reads, other, broken = _Caller(Line()), _Caller(Line()), _Caller(Line(BrokenPipeError()))
    reads.pid = broken.pid = 5
    other.pid = 6
    intake._probes = dict.fromkeys((broken, reads, other))
    intake.say({"do": "shed"}, {5})
    assert (reads.line.sent, other.line.sent) == ([b'{"do": "shed"}\n'], [])


def test_a_connection_that_has_nothing_yet_is_left_and_one_that_broke_is_dropped(recorder):
    dropped = []
    intake = recorder._intake
    intake._drop = dropped.append
    intake._read(_Caller(Line(BlockingIOError())))
    assert dropped == []
    intake._read(_Caller(Line(ConnectionResetError())))
    assert len(dropped) == 1
    intake._accept()  # nobody is there
