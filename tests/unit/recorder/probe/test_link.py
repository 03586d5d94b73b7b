"""The probe's end of the connection never holds the program up, and loses no event in vain."""

from __future__ import annotations

import json
import os
import socket
from itertools import pairwise

import pytest

from floodline.recorder._probe import link as link_module
from floodline.recorder._probe.link import FIRST_WAIT, KEPT, LONGEST_WAIT, Link
from recorder_fakes import Clock

PATIENCE = 60.0


class Server:
    """A recorder that reads when it is told to; nobody else gets its port while it is away."""

    def __init__(self, *, away=False):
        self.server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.server.bind(("127.0.0.1", 0))
        self.server.settimeout(PATIENCE)
        self.port = self.server.getsockname()[1]
        self.line = None
        if not away:
            self.server.listen()

    def accept(self):
        self.line, _ = self.server.accept()
        self.line.settimeout(PATIENCE)
        self.lines = self.line.makefile("r")
        return self.read()

    def read(self):
        return json.loads(self.lines.readline())

    def hang_up(self):
        self.lines.close()
        self.line.close()

    def close(self):
        if self.line is not None:
            self.hang_up()
        self.server.close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def link(server, clock):
    link = Link("127.0.0.1", server.port, lambda: {"kind": "hello"}, clock=clock)
    yield link
    link.close()


def event(n):
    return {"kind": "x", "text": str(n)}


def test_the_first_line_is_the_hello(link, server):
    assert link.send({"kind": "tick", "events": [event(1)]})
    assert server.accept() == {"kind": "hello"}
    assert server.read() == {"kind": "tick", "events": [event(1)]}


def test_wishes_of_the_recorder_are_received_without_waiting(link, server):
    assert link.receive() == []
    link.send({"kind": "tick"})
    server.accept()
    assert link.receive() == []
    server.line.sendall(b'{"do": "shed", "bytes": 7}\nnonsense\n[1]\n{"do": "dance"}\n{"do": ')
    received = []
    while not received:
        received = link.receive()
    assert received == [{"do": "shed", "bytes": 7}]


def test_without_a_recorder_events_are_kept_and_told_later(clock):
    back = Server(away=True)
    link = Link("127.0.0.1", back.port, lambda: {"kind": "hello"}, clock=clock)
    assert not link.send({"kind": "tick", "events": [event(1)]})
    assert not link.send({"kind": "tick", "events": [event(2)]})
    back.server.listen()
    clock.now += FIRST_WAIT
    assert link.send({"kind": "tick", "events": [event(3)]})
    back.accept()
    assert back.read()["events"] == [event(1), event(2), event(3)]
    assert link.send({"kind": "tick", "events": []})
    assert back.read()["events"] == []
    link.close()
    back.close()


def test_what_is_kept_is_bounded_and_attempts_become_rare(server, clock, monkeypatch):
    port = server.port
    server.close()
    tries = []

    def refused(address, timeout):
        tries.append(clock.now)
        raise ConnectionRefusedError

    monkeypatch.setattr(link_module.socket, "create_connection", refused)
    link = Link("127.0.0.1", port, dict, clock=clock)
    for n in range(1000):
        clock.now += 1
        link.send({"kind": "tick", "events": [event(n)]})
    assert len(link._kept) == KEPT
    gaps = [b - a for a, b in pairwise(tries)]
    assert gaps[0] == FIRST_WAIT
    assert gaps[-1] == LONGEST_WAIT


def test_a_recorder_that_goes_away_is_noticed_and_its_events_are_kept(link, server):
    link.send({"kind": "tick"})
    server.accept()
    server.hang_up()
    server.line = None
    while link._socket is not None:  # the end arrives when it arrives
        link.receive()
    assert link.receive() == []
    assert link.send({"kind": "tick", "events": [event(9)]})
    assert server.accept() == {"kind": "hello"}
    assert server.read()["events"] == [event(9)]


def test_a_recorder_that_does_not_read_costs_half_a_second_once(link, server, monkeypatch):
    monkeypatch.setattr(link_module, "PATIENCE", 0.05)
    link.send({"kind": "tick"})
    large = {"kind": "tick", "text": "x" * (32 << 20), "events": [event(1)]}
    assert not link.send(large)
    assert link._socket is None
    assert not link.send({"kind": "tick", "events": [event(2)]})  # not before its time
    assert list(link._kept) == [event(1), event(2)]


def test_a_reset_connection_is_closed(link, server, monkeypatch):
    link.send({"kind": "tick"})

    class Broken:
        def setblocking(self, flag):
            raise ConnectionResetError

        def fileno(self):
            return real.fileno()

        def close(self):
            real.close()

    real = link._socket
    link._socket = Broken()
    assert link.receive() == []
    assert link._socket is None


def test_a_program_that_closes_all_descriptors_gets_none_of_ours(link, server, tmp_path):
    """It becomes a daemon: our number is closed, and is then the number of a file of its own."""
    link.send({"kind": "tick"})
    number = link._socket.fileno()
    os.close(number)
    mine = os.open(tmp_path / "data", os.O_RDWR | os.O_CREAT)
    if mine != number:
        os.dup2(mine, number)
        os.close(mine)
    assert link.send({"kind": "tick", "events": []})
    os.fstat(number)  # it is still open
    os.close(number)
    assert (tmp_path / "data").read_bytes() == b""


def test_a_closed_number_that_nobody_took_is_no_error(link, server):
    link.send({"kind": "tick"})
    os.close(link._socket.fileno())
    assert link.receive() == []
    assert link.send({"kind": "tick"})
