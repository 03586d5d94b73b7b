"""`floodline serve` as processes: it listens, drains, replaces workers and refuses bad options."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from click.testing import CliRunner

from floodline._service import Limits, Tenants
from floodline.cli import main
from floodline.cli._main import group
from floodline.errors import ConfigError
from floodline.web._dashboard.server_thread import listen
from floodline.web._serving import supervisor as supervising
from floodline.web._serving.access_log import logging_lines
from floodline.web._serving.options import Options
from floodline.web._serving.worker import make_server

DEADLINE = 60


def wait_until(condition):
    until = time.monotonic() + DEADLINE
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


@contextmanager
def serving(tmp_path, *flags):
    """Run the command; yield its process and its address."""
    store = f"sqlite:///{tmp_path}/serve.db"
    command = [sys.executable, "-m", "floodline", "serve", "--store", store, "--port", "0", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            first = process.stderr.readline().decode()
            yield process, "http://" + first.partition("http://")[2].split(";")[0].split(",")[0]
        finally:
            process.kill()


def test_workers_share_a_store_survive_a_kill_and_drain(tmp_path):
    with serving(tmp_path, "--workers", "2", "--drain", "200 ms") as (process, url):
        base = f"{url}/v1/conversations"
        with httpx.Client(timeout=DEADLINE) as client:
            ask = retrying(client)
            chat = ask("POST", base, json={}).json()["id"]
            stop, acknowledged = threading.Event(), []

            def append():
                number = 0
                while not stop.is_set() or number < 40:
                    item = {"id": f"m{number}", "role": "user", "content": str(number)}
                    ask("POST", f"{base}/{chat}/items", json={"items": [item]})
                    acknowledged.append(item["id"])
                    number += 1

            working = threading.Thread(target=append)
            working.start()
            for victim in workers_of(process.pid):
                before = len(acknowledged)
                wait_until(lambda before=before: len(acknowledged) > before + 5)
                os.kill(victim, signal.SIGKILL)
            stop.set()
            working.join(DEADLINE)
            kept, after = [], {}
            while True:
                page = ask("GET", f"{base}/{chat}/items", params={"order": "asc", **after}).json()
                kept += [item["id"] for item in page["data"]]
                after = {"after": page["last_id"]}
                if not page["has_more"]:
                    break
            assert kept == acknowledged
            wait_until(lambda: "\nfloodline_serve_workers 2\n" in ask("GET", f"{url}/metrics").text)
            process.terminate()
            wait_until(lambda: not_ready(url))
        assert process.wait(DEADLINE) == 0
        assert b"ended with status -9; starting another" in process.stderr.read()
        lines = [json.loads(line) for line in process.stdout.read().splitlines()]
        assert {"route", "status", "ms"} <= lines[0].keys()


def retrying(client):
    """Return a caller that tries again when a worker dies under it, as OpenAI's clients do."""

    def ask(method, url, **options):
        while True:
            try:
                answer = client.request(method, url, **options)
            except httpx.TransportError:
                continue
            if answer.status_code not in (409, 503):
                assert answer.status_code == 200, answer.text
                return answer

    return ask


def workers_of(pid):
    def children():
        found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
        pids = [int(word) for word in found.stdout.split()]
        return pids if len(pids) == 2 else None

    return wait_until(children)


def not_ready(url):
    try:
        return httpx.get(f"{url}/health/ready").status_code == 503
    except httpx.TransportError:
        return True


@contextmanager
def in_this_process(tmp_path, **limits):
    """Run a server on a thread; yield it and its port."""
    options = Options(
        limits=Limits(store=f"sqlite:///{tmp_path}/s.db", **{"drain": 0, "grace": 5, **limits})
    )
    sock = listen("127.0.0.1", 0)
    server = make_server(options)
    thread = threading.Thread(target=server.run, args=([sock],))
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield server, sock.getsockname()[1]
    finally:
        server.handle_exit(signal.SIGTERM, None)
        thread.join(DEADLINE)
        assert not thread.is_alive()


def test_clients_that_say_nothing_or_too_much_make_room(tmp_path):
    with in_this_process(tmp_path, max_body=1000, max_connections=4) as (_server, port):
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(10)]
        silent[-1].sendall(b"GET /health/live HTTP/1.1\r\nHost: loc")
        assert httpx.get(f"http://127.0.0.1:{port}/health/live").status_code == 200
        for sock in silent:
            sock.close()
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(b"GET /" + b"x" * 40_000)
            assert read_all(sock).startswith((b"HTTP/1.1 400", b"HTTP/1.1 404", b""))
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(
                b"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n"
            )
            answer = read_all(sock)
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"body_too_large" in answer


def read_all(sock):
    sock.settimeout(DEADLINE)
    parts = []
    try:
        while part := sock.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_a_second_signal_or_ctrl_c_does_not_wait(tmp_path):
    with in_this_process(tmp_path, drain=DEADLINE) as (server, _port):
        server.handle_exit(signal.SIGTERM, None)
        wait_until(lambda: server._service.draining)
        assert not server.should_exit
        server.handle_exit(signal.SIGTERM, None)
        assert server.should_exit
    with in_this_process(tmp_path, drain=DEADLINE) as (server, _port):
        server.handle_exit(signal.SIGINT, None)
        assert server.should_exit


def test_a_worker_ends_when_its_supervisor_is_gone(tmp_path):
    with in_this_process(tmp_path) as (server, _port):
        server._parent = -1
        wait_until(lambda: server.should_exit)


def test_a_stop_before_the_start_is_heeded(tmp_path):
    server = make_server(Options(limits=Limits(store=f"sqlite:///{tmp_path}/s.db")))
    server.handle_exit(signal.SIGTERM, None)
    assert server.should_exit
    assert server._service.draining
    server._service.tenanted[""].keeping._store.close()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"host": "0.0.0.0"}, "needs tokens"),
        ({"host": "example.org"}, "needs tokens"),
        ({"tenants": Tenants.of([("admin", "long-enough")])}, "no tenant"),
        ({"tls_cert": "x"}, "belong together"),
        ({"workers": 2, "limits": Limits(store="memory://")}, "memory of one process"),
    ],
)
def test_options_that_cannot_work_are_refused(options, why):
    with pytest.raises(ConfigError, match=why):
        Options(**options)


def test_missing_certificates_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="not a file"):
        Options(tls_cert=tmp_path / "a", tls_key=tmp_path / "b")
    (tmp_path / "a").write_text("no certificate")
    with pytest.raises(ConfigError, match="cannot be used"):
        Options(tls_cert=tmp_path / "a", tls_key=tmp_path / "a")


def test_the_door_follows_from_the_options():
    tenants = Tenants.of([("a", "long-enough")])
    door = Options(host="0.0.0.0", tenants=tenants, allow_hosts=("API.example:80", "::1")).door
    assert not door.local
    assert door.hosts == {"api.example", "::1", "0.0.0.0"}
    assert Options(allow_origins=("https://App.example/",)).door.origins == {"https://app.example"}
    assert Options(allow_hosts=("*",)).door.hosts is None
    assert Options(host="localhost").door.local


def test_the_command_says_what_is_wrong(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--host", "0.0.0.0"]) == 2
    assert "needs tokens" in capsys.readouterr().err
    assert main(["serve", "--ttl", "soon"]) == 2
    assert "--ttl" in capsys.readouterr().err
    with listen("127.0.0.1", 0) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "is taken" in capsys.readouterr().err
    monkeypatch.delattr(os, "fork")
    assert main(["serve", "--workers", "2"]) == 2
    assert "needs fork" in capsys.readouterr().err


def test_the_command_serves_in_one_process_by_default(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("floodline.web._serving.command.serve_here", lambda *_, opened: opened())
    assert main(["serve", "--port", "0", "--session-ttl", "5 min", "--host", "::1"]) == 0
    assert "at http://[::1]:" in capsys.readouterr().err


def test_the_command_serves_nothing_that_it_cannot_open(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--port", "0", "--store", "nonsense://x"]) == 2
    said = capsys.readouterr().err
    assert "unknown form" in said
    assert "serving" not in said


def test_the_help_names_every_default():
    text = CliRunner().invoke(group, ["serve", "--help"]).output
    assert "60 min" in text
    assert "--max-history" in text


class Fork:
    """Stands in for `os`: workers are numbers, and die when told to."""

    def __init__(self, monkeypatch, ends):
        self.ends, self.told, self.pids = list(ends), [], iter(range(100, 200))
        monkeypatch.setattr(os, "fork", lambda: next(self.pids))
        monkeypatch.setattr(os, "kill", lambda pid, number: self.told.append((pid, number)))
        monkeypatch.setattr(os, "waitpid", self.waitpid)
        monkeypatch.setattr(os, "waitstatus_to_exitcode", lambda status: status)
        monkeypatch.setattr(signal, "setitimer", lambda *_: None)

    def waitpid(self, *_):
        return self.ends.pop(0) if self.ends else (0, 0)


def supervised(monkeypatch, signals, ends):
    fork, said = Fork(monkeypatch, ends), []
    monkeypatch.setattr(signal, "sigwait", lambda _: signals.pop(0))
    made = supervising.Supervisor(Options(workers=2), None, said.append)
    return made.run(), fork.told, said


def test_a_supervisor_passes_signals_on_and_kills_what_is_late(monkeypatch):
    signals = [signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD]
    status, told, _ = supervised(monkeypatch, signals, [(100, 0), (101, -9)])
    assert status == 1
    assert told == [
        (100, signal.SIGTERM),
        (101, signal.SIGTERM),
        (100, signal.SIGKILL),
        (101, signal.SIGKILL),
    ]


def test_a_worker_that_is_told_to_end_before_it_has_begun_is_no_failure(monkeypatch):
    ends = [(100, 0), (101, -signal.SIGTERM)]
    status, _, _ = supervised(monkeypatch, [signal.SIGTERM, signal.SIGCHLD], ends)
    assert status == 0


def test_a_worker_that_cannot_start_ends_the_service(monkeypatch):
    signals = [signal.SIGCHLD, signal.SIGCHLD]
    ends = [(7, 0), (100, 3), (0, 0), (101, 0)]
    status, told, said = supervised(monkeypatch, signals, ends)
    assert (status, told) == (2, [(101, signal.SIGTERM)])
    assert "cannot start" in said[0]


def test_a_worker_that_dies_young_too_often_ends_the_service(monkeypatch):
    ends = [(pid, -11) for pid in (100, 102, 103, 104, 105)] + [(0, 0), (101, 0)]
    status, _, said = supervised(monkeypatch, [signal.SIGCHLD, signal.SIGCHLD], ends)
    assert status == 2
    assert len(said) == 5


def test_the_access_log_never_waits_for_its_reader(monkeypatch):
    monkeypatch.setattr("floodline.web._serving.access_log.MAX_WAITING", 1)
    monkeypatch.setattr("floodline.web._serving.access_log.PATIENCE", 0.01)
    held, written = threading.Event(), io.StringIO()

    class Stalled(io.StringIO):
        def write(self, text):
            held.wait(DEADLINE)
            return written.write(text)

    log = logging.getLogger("floodline.serve.access")
    with logging_lines(access=True, stream=Stalled()):
        for number in range(100):
            log.info("%d", number)
    held.set()
    wait_until(written.getvalue)
    assert len(written.getvalue().splitlines()) < 100


def test_the_log_has_access_lines_and_warnings_apart(capsys):
    written = io.StringIO()
    with logging_lines(access=True, stream=written):
        logging.getLogger("floodline.serve.access").info("%s", "a line")
        logging.getLogger("floodline.serve").warning("%s", "a warning")
    assert written.getvalue() == "a line\n"
    assert capsys.readouterr().err == "floodline: a warning\n"
