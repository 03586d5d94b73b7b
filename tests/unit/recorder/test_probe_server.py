"""Strangers at the port of the recorder: they cost little, and no probe its place."""

from __future__ import annotations

import errno
import json
import socket
import threading

import pytest

from floodline.recorder import _probe_server
from floodline.recorder._probe_server import Intake, Limits
from recorder_fakes import Clock

PATIENCE = 60.0
TOKEN = "the token"


class Heard:
    """A listener that lets a test wait for what it was told."""

    def __init__(self):
        self.said = []
        self._changed = threading.Condition()

    def _note(self, what):
        with self._changed:
            self.said.append(what)
            self._changed.notify_all()

    def heard(self, pid, line):
        self._note((pid, line["kind"]))

    def hung_up(self, pid):
        self._note((pid, "gone"))

    def starved(self):
        self._note("starved")

    def wait_for(self, what):
        with self._changed:
            assert self._changed.wait_for(lambda: what in self.said, PATIENCE), self.said

    def until(self, true):
        """Wait for something that nobody tells."""
        with self._changed:
            for _ in range(6000):
                if true():
                    return
                self._changed.wait(0.01)
        raise AssertionError("it did not become true")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def open_intake(heard, clock):
    made = []

    def start(**limits):
        made.append(Intake(heard, TOKEN, limits=Limits(**limits), clock=clock))
        return made[-1]

    yield start
    for intake in made:
        intake.close()


@pytest.fixture
def call():
    lines = []

    def connect(intake, first=b""):
        host, port, _ = intake.address.split(":")
        lines.append(socket.create_connection((host, int(port)), timeout=PATIENCE))
        lines[-1].sendall(first)
        return lines[-1]

    yield connect
    for line in lines:
        line.close()


def hello(pid, token=TOKEN, **more):
    return json.dumps({"kind": "hello", "token": token, "pid": pid, **more}).encode() + b"\n"


def cut_off(line):
    """Wait for the end of a connection, and tell whether it came."""
    try:
        return line.recv(1) == b""
    except ConnectionResetError:  # there was more that nobody read
        return True


def test_a_first_line_that_never_ends_is_cut_off_early(open_intake, call):
    intake = open_intake(first_line=100)
    assert cut_off(call(intake, b"x" * 101))
    assert (len(intake._strangers), intake._unfinished) == (0, 0)


def test_a_long_hello_of_a_probe_passes(open_intake, call, heard):
    intake = open_intake()
    call(intake, hello(5, error="\U0001f40d" * 500))
    heard.wait_for((5, "hello"))


def test_a_stranger_that_says_nothing_has_a_deadline_and_a_probe_has_none(
    open_intake, call, heard, clock
):
    intake = open_intake(patience=5.0)
    probe, idle, slow = call(intake, hello(5)), call(intake), call(intake, b'{"tok')
    heard.wait_for((5, "hello"))
    call(intake, hello(6))
    heard.wait_for((6, "hello"))  # so the others were accepted too
    clock.now += 5.0
    intake.wake()
    assert cut_off(idle)
    assert cut_off(slow)
    probe.sendall(b'{"kind": "tick"}\n')
    heard.wait_for((5, "tick"))


def test_idle_strangers_never_lock_probes_out(open_intake, call, heard):
    intake = open_intake(strangers=3)
    idle = [call(intake) for _ in range(20)]
    call(intake, hello(5))
    heard.wait_for((5, "hello"))
    assert all(map(cut_off, idle[:17]))  # the oldest went first
    assert len(intake._strangers) <= 3


def test_a_hello_that_has_come_is_read_before_its_caller_makes_room(heard, clock):
    intake = Intake(heard, TOKEN, limits=Limits(strangers=1), clock=clock)
    intake.close()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    caller = _probe_server._Caller(ours)
    intake._strangers[caller] = None
    theirs.sendall(hello(5))
    intake._displace()
    assert (heard.said, list(intake._probes)) == ([(5, "hello")], [caller])
    ours.close()
    theirs.close()


def test_above_so_many_probes_the_next_is_refused_and_the_others_stay(open_intake, call, heard):
    intake = open_intake(probes=1)
    probe = call(intake, hello(5))
    heard.wait_for((5, "hello"))
    assert cut_off(call(intake, hello(6)))
    probe.sendall(b'{"kind": "tick"}\n')
    heard.wait_for((5, "tick"))
    assert (6, "hello") not in heard.said


def test_a_message_that_never_ends_costs_a_probe_its_connection(open_intake, call, heard):
    intake = open_intake(line=1000)
    probe = call(intake, hello(5))
    probe.sendall(b"x" * 1001)
    assert cut_off(probe)
    heard.wait_for((5, "gone"))
    assert intake._unfinished == 0


def test_all_unfinished_lines_together_are_bounded(open_intake, call, heard):
    intake = open_intake(unfinished=1000)
    first, second = call(intake, hello(5)), call(intake, hello(6))
    first.sendall(b"x" * 600 + b"\n" + b"y" * 600)  # the first line is no message
    assert cut_off(first)
    third = call(intake, hello(7) + b'{"kind": "tick", "x": "' + b"x" * 500)
    heard.wait_for((7, "hello"))
    second.sendall(b'{"kind": "tick", "x": "' + b"x" * 600)
    assert cut_off(second)
    third.sendall(b'"}\n')
    heard.wait_for((7, "tick"))


class Starved:
    """A server socket that has no descriptor for so many callers."""

    def __init__(self, server, times):
        self._server, self.times = server, times
        self.tries = 0

    def accept(self):
        self.tries += 1
        if self.times > 0:
            self.times -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._server.accept()

    def __getattr__(self, name):
        return getattr(self._server, name)


def starve(intake, times):
    """Let an intake that waits find no descriptors from now on."""
    real = intake._server
    intake._select.unregister(real)
    intake._server = Starved(real, times)
    intake._select.register(intake._server, _probe_server.selectors.EVENT_READ)
    return intake._server


def test_without_descriptors_accepting_pauses_and_says_so_once_a_minute(
    open_intake, call, heard, clock
):
    intake = open_intake(pause=1.0)
    server = starve(intake, 3)
    call(intake, hello(5))  # it waits in the queue of the kernel
    heard.wait_for("starved")
    for tries in (1, 2, 3):
        heard.until(lambda: intake._resume_at is not None)
        assert server.tries == tries  # it does not spin
        clock.now = intake._resume_at
        intake.wake()
        heard.until(lambda tries=tries: server.tries > tries)
    heard.wait_for((5, "hello"))
    assert heard.said.count("starved") == 1


def test_without_descriptors_a_stranger_makes_room_first(open_intake, call, heard):
    intake = open_intake()
    idle = call(intake)
    call(intake, hello(5))
    heard.wait_for((5, "hello"))
    server = starve(intake, 1)
    call(intake, hello(6))
    heard.wait_for((6, "hello"))
    assert cut_off(idle)
    assert (intake._resume_at, server.times) == (None, 0)


def test_a_caller_that_cannot_be_watched_is_let_go(open_intake, call, heard, monkeypatch):
    intake = open_intake()
    real = intake._select.register

    def refuse(*_):
        monkeypatch.setattr(intake._select, "register", real)
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(intake._select, "register", refuse)
    assert cut_off(call(intake))
    call(intake, hello(5))
    heard.wait_for((5, "hello"))


def test_the_limits_leave_descriptors_for_the_rest(monkeypatch):
    figures = {}
    for limit in (64, 256, 1024, 1 << 20):
        monkeypatch.setattr(_probe_server, "descriptor_limit", lambda limit=limit: limit)
        found = Limits.of_process()
        figures[limit] = (found.strangers, found.probes)
    assert figures == {64: (8, 8), 256: (32, 8), 1024: (64, 768), 1 << 20: (64, 1000)}
