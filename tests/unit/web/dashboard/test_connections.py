"""Strangers at the port of the dashboard: they cost little, and do not keep its owner out."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
import threading
import urllib.request

import pytest

from floodline.recorder._descriptors import Seldom
from floodline.web import make_app, serve
from floodline.web._dashboard import connections
from floodline.web._dashboard.connections import Allowance, Server
from floodline.web._dashboard.event_stream import HELD, Live
from recorder_fakes import Clock
from web_states import Shown, leaking

PATIENCE = 60.0
GET = b"GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def served():
    running = []

    def start(app=None, **allowed):
        app = app or make_app(Shown(leaking()), token=None)
        running.append(serve(app, "127.0.0.1", 0, allowance=Allowance(**allowed)))
        return running[-1]

    yield start
    for serving in running:
        serving.close()


@pytest.fixture
def call():
    lines = []

    def connect(serving, first=b""):
        lines.append(socket.create_connection((serving.host, serving.port), timeout=PATIENCE))
        lines[-1].sendall(first)
        return lines[-1]

    yield connect
    for line in lines:
        line.close()


def all_of(line):
    """Return what comes until the end of a connection."""
    got = b""
    try:
        while part := line.recv(1 << 16):
            got += part
    except ConnectionResetError:
        pass
    return got


def answered(serving):
    with urllib.request.urlopen(f"{serving.url}/api/state", timeout=PATIENCE) as page:
        return json.loads(page.read())["verdict"] == "growing"


def test_idle_strangers_make_room_for_the_owner(served, call):
    serving = served(connections=4)
    idle = [call(serving) for _ in range(30)]
    assert answered(serving)
    for line in idle[:26]:
        assert all_of(line) == b""  # the oldest went first


def test_a_stream_stays_when_strangers_come(served, call):
    serving = served(connections=4)
    stream = call(serving, GET.replace(b"state", b"live"))
    assert b"200 OK" in stream.recv(15)
    for _ in range(30):
        call(serving, b"GET / HTTP/1.1\r\n")
    assert answered(serving)
    serving.close()
    assert b"event: state" in all_of(stream)


def test_streams_that_fill_all_connections_make_room_too(served, call):
    serving = served(connections=2)
    streams = [call(serving, GET.replace(b"state", b"live")) for _ in range(2)]
    for stream in streams:
        assert b"200 OK" in stream.recv(15)
    assert answered(serving)
    assert b"text/event-stream" in all_of(streams[0])  # which has ended


def test_whoever_asks_for_nothing_has_a_deadline(served, call):
    serving = served(seconds=0.01)
    assert all_of(call(serving)) == b""
    assert all_of(call(serving, b"GET / HTTP/1.1\r\nHost: lo")) == b""
    second = call(serving, GET)  # and after an answer as well
    assert b"200 OK" in all_of(second)


def test_whoever_does_not_take_an_answer_loses_its_place(served, call):
    class Long(Shown):
        def state(self):
            return {**super().state(), "command": "x" * (32 << 20)}

    serving = served(make_app(Long(leaking()), token=None), seconds=0.01)
    line = call(serving, GET)
    line.recv(1)
    assert len(all_of_slowly(line, serving)) < 32 << 20


def all_of_slowly(line, serving):
    """Take nothing until the server has given up."""
    protocol = serving._server.config.http_protocol_class
    for _ in range(6000):
        if not protocol.open_now:
            return all_of(line)
        threading.Event().wait(0.01)
    raise AssertionError("it still waits")


def test_a_slow_answer_of_ours_is_waited_for(served, call):
    asked, go = threading.Event(), threading.Event()

    class Slow(Shown):
        def state(self):
            asked.set()
            assert go.wait(PATIENCE)
            return super().state()

    serving = served(make_app(Slow(leaking()), token=None), seconds=0.01)
    line = call(serving, GET)
    assert asked.wait(PATIENCE)
    assert all_of(call(serving)) == b""  # so the time of the first is over as well
    go.set()
    assert b"200 OK" in all_of(line)


def test_a_head_and_a_body_that_never_end_are_cut_off(served, call):
    serving = served(head=1000, request=5000)
    assert b"400 Bad Request" in all_of(call(serving, b"GET / HTTP/1.1\r\nX: " + b"x" * 2000))
    post = b"POST /api/state HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"
    line = call(serving, post)
    assert b"405" in line.recv(1000)
    with pytest.raises(OSError, match=r"reset|pipe"):
        line.sendall(b"x" * (64 << 20))
    assert answered(serving)


def test_many_requests_on_one_connection_are_none_too_many(served, call):
    serving = served(request=1000)
    line = call(serving)
    with line.makefile("rb") as answers:
        for _ in range(50):
            line.sendall(GET)
            assert b"200 OK" in answers.readline()
            while head := answers.readline().strip().lower():
                if head.startswith(b"content-length:"):
                    length = int(head.split()[1])
            answers.read(length)


def test_a_lack_of_descriptors_is_logged_once_a_minute(monkeypatch):
    clock, told = Clock(), []
    monkeypatch.setattr(connections, "Seldom", lambda: Seldom(clock))

    async def main():
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "default_exception_handler", told.append)

        async def served(*_):
            for _ in range(150):
                loop.call_exception_handler({"exception": OSError(errno.EMFILE, "no files")})
                clock.now += 1.0

        monkeypatch.setattr(connections.uvicorn.Server, "serve", served)
        await Server.serve(object.__new__(Server))

    asyncio.run(main())
    assert len(told) == 3


def test_a_reader_of_a_minute_gives_its_place_to_the_next():
    async def main():
        clock = Clock()
        live = Live(Shown(leaking()), limit=1, clock=clock)
        sent = []
        first = asyncio.Event()

        async def receive():
            await asyncio.Event().wait()

        async def send(part):
            sent.append(part["more_body"])
            first.set()

        reader = asyncio.ensure_future(live.stream(receive, send))
        await first.wait()
        clock.now += HELD - 1
        fresh = live.make_room()
        clock.now += 1
        old = live.make_room()
        await asyncio.wait_for(reader, PATIENCE)
        return fresh, old, sent[-1], live.readers

    assert asyncio.run(main()) == (False, True, False, 0)


def test_the_allowance_leaves_descriptors_for_the_rest(monkeypatch):
    found = []
    for limit in (32, 256, 1024, 1 << 20):
        monkeypatch.setattr(connections, "descriptor_limit", lambda limit=limit: limit)
        found.append(Allowance.of_process().connections)
    assert found == [8, 32, 64, 64]
