"""`floodline run` and `floodline attach` from the command line."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from floodline.cli import _attach, _run, main
from floodline.errors import ConfigError
from floodline.recorder import Recorder, read_recording
from floodline.recorder._announcement import announced
from floodline.recorder._attaching import attach as attaching
from floodline.recorder._probe import dormant as dormant_module
from floodline.recorder._recording.file import Writer
from recorder_fakes import Clock

PATIENCE = 60.0
WAITING = """
import os, time

for _ in range(6000):
    if os.path.exists({file!r}):
        break
    time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def folders(monkeypatch, tmp_path):
    """Let nothing be written outside, and no core limit be lowered for good."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(_run, "QUICK", 0.02)
    for module in (attaching, dormant_module):
        monkeypatch.setattr(module, "PATIENCE", PATIENCE)


@pytest.fixture
def app(tmp_path):
    def app(source, name="app.py"):
        file = tmp_path / name
        file.write_text(source, encoding="utf-8")
        return str(file)

    return app


@pytest.fixture
def waiting(app, tmp_path, monkeypatch):
    """Return what makes a program that runs until these words were said."""

    def waiting(words):
        def say(said):
            really(said)
            if words in said:
                (tmp_path / "said").touch()

        really = _run._say
        monkeypatch.setattr(_run, "_say", say)
        return app(WAITING.format(file=str(tmp_path / "said")))

    return waiting


def recordings(tmp_path):
    return sorted((tmp_path / "state" / "floodline").glob("*.rec"))


def test_the_status_of_the_program_is_ours_and_the_answer_is_printed(app, tmp_path, capfd):
    status = main(["run", "--no-dashboard", app("raise SystemExit(5)")])
    assert status == 5
    _, errors = capfd.readouterr()
    assert errors.startswith("UNDECIDED")
    assert "failed with status 5" in errors
    (file,) = recordings(tmp_path)
    assert f"recorded to {file}" in errors
    assert "the recorder used" in errors
    assert read_recording(file).state()["command"] == "app.py"


def test_a_module_is_run_as_python_does(tmp_path, capfd, monkeypatch):
    assert main(["run", "--no-dashboard", "-m", "json.tool", "--help"]) == 0
    out, _ = capfd.readouterr()
    assert "json" in out
    assert read_recording(recordings(tmp_path)[0]).state()["command"] == "-m json.tool --help"


def test_the_signals_of_before_are_back_afterwards(app):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    main(["run", "--no-dashboard", app("")])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_program_that_died_of_a_signal_takes_us_along(app, monkeypatch, tmp_path):
    ended = []
    monkeypatch.setattr(_run, "end_as", lambda code: ended.append(code) or 137)
    code = "import os; os.kill(os.getpid(), 9)"
    assert main(["run", "--no-dashboard", f"--record={tmp_path / 'a.rec'}", app(code)]) == 137
    assert ended == [-9]
    assert read_recording(tmp_path / "a.rec").state()["exit"]["signal"] == "SIGKILL"


def test_the_dashboard_is_announced_while_it_runs(app, capfd, monkeypatch, tmp_path):
    found = []
    watch = _run._watch

    def look(recorder, child):
        found.extend(announced())
        watch(recorder, child)

    monkeypatch.setattr(_run, "_watch", look)
    assert main(["run", "--port=0", app("")]) == 0
    _, errors = capfd.readouterr()
    assert f"dashboard at {found[0]['url']}/" in errors
    assert (found[0]["token"], found[0]["pid"]) == (None, os.getpid())
    assert announced() == []


def test_without_a_dashboard_the_recording_is_announced(app, monkeypatch, tmp_path):
    found = []
    watch = _run._watch
    monkeypatch.setattr(_run, "_watch", lambda *a: (found.extend(announced()), watch(*a)))
    record = tmp_path / "a.rec"
    assert main(["run", "--no-dashboard", f"--record={record}", app("")]) == 0
    assert (found[0]["url"], found[0]["record"]) == (None, str(record))
    assert announced() == []


def test_off_loopback_the_dashboard_asks_for_a_token(app, capfd):
    assert main(["run", "--port=0", "--host=0.0.0.0", app("")]) == 0
    assert "?token=" in capfd.readouterr().err


def test_a_taken_port_moves_no_recording_and_starts_nothing(app, tmp_path, capfd):
    record, older = tmp_path / "run.rec", tmp_path / "run.rec.1"
    assert main(["run", "--no-dashboard", f"--record={record}", app("")]) == 0
    before = record.read_bytes()
    capfd.readouterr()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        options = [f"--port={port}", f"--record={record}"]
        assert main(["run", *options, app("print('started')")]) == 2
    out, errors = capfd.readouterr()
    assert f"port {port} of 127.0.0.1 is taken" in errors
    assert "started" not in out
    assert record.read_bytes() == before
    assert not older.exists()


def test_a_recording_that_is_refused_leaves_no_port_taken(app, tmp_path, monkeypatch):
    doors = []
    door = _run._door
    monkeypatch.setattr(_run, "_door", lambda *at: doors.append(door(*at)) or doors[-1])
    (tmp_path / "thesis.txt").write_text("mine")
    assert main(["run", "--port=0", f"--record={tmp_path / 'thesis.txt'}", app("")]) == 2
    assert doors[0].sock.fileno() == -1


def test_without_the_extra_it_says_in_one_line_what_is_missing(app, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "floodline.web._dashboard.server_thread", None)
    assert main(["run", app("")]) == 0
    assert "pip install 'floodline[web]'" in capfd.readouterr().err


def test_a_report_is_written_at_the_end(app, tmp_path, capfd):
    page = tmp_path / "report.html"
    assert main(["run", "--no-dashboard", f"--report={page}", app("")]) == 0
    assert f"report written to {page}" in capfd.readouterr().err
    assert "<html" in page.read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_costs_no_status(app, tmp_path, capfd):
    assert main(["run", f"--report={tmp_path / 'no' / 'r.html'}", app("")]) == 2
    assert "does not exist; create it" in capfd.readouterr().err
    (tmp_path / "r.html").mkdir()
    record = tmp_path / "a.rec"
    _run._write_report(_state(record, app), tmp_path / "r.html")
    assert "no report" in capfd.readouterr().err


def _state(record, app):
    assert main(["run", "--no-dashboard", f"--record={record}", app("")]) == 0
    return read_recording(record).state()


def test_nobody_need_read_what_we_say(app, monkeypatch):
    def broken(*words, **options):
        raise BrokenPipeError

    monkeypatch.setattr(_run.click, "echo", broken)
    assert main(["run", "--no-dashboard", app("raise SystemExit(4)")]) == 4


def test_a_recording_is_named_after_the_module_and_never_after_one_that_is_there(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(_run.time, "strftime", lambda form: "now")
    for _ in range(2):
        assert main(["run", "--no-dashboard", "-m", "json.tool", "--help"]) == 0
    names = [file.name for file in recordings(tmp_path)]
    assert names == [f"now-json.tool-{os.getpid()}.rec", "now-json.tool.rec"]


def test_a_recording_that_cannot_be_written_any_more_is_told_once_and_at_the_end(
    waiting, tmp_path, capfd, monkeypatch
):
    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Writer, "write", full)
    program = waiting("the program continues")
    assert main(["run", "--no-dashboard", f"--record={tmp_path / 'a.rec'}", program]) == 0
    errors = capfd.readouterr().err
    why = "a.rec could not be written: database or disk is full"
    assert errors.count(f"{why}; the program continues") == 1
    assert errors.count(f"{why}; the end of the recording is missing") == 1
    assert "recorded to" not in errors


def test_where_nothing_can_be_written_the_program_runs_all_the_same(
    app, tmp_path, capfd, monkeypatch
):
    def none():
        raise FileNotFoundError(2, "No usable temporary directory found")

    code = app("raise SystemExit(4)")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "file"))
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "gettempdir", none)
        assert main(["run", "--port=0", code]) == 4
        assert main(["top"]) == 2
    errors = capfd.readouterr().err
    assert "give --record FILE (in a container, on a volume)" in errors
    assert "recorded to no file" in errors
    assert "set XDG_RUNTIME_DIR to one that is" in errors


def test_the_line_is_told_when_it_is_crossed(waiting, capfd):
    program = waiting("above the line")
    assert main(["run", "--no-dashboard", "--line=1 MiB", program]) == 0
    assert capfd.readouterr().err.count("above the line of 1 MiB") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing.py"], "no program or file 'missing.py' was found"),
        (["--line=much", "x.py"], "--line='much' cannot be read"),
        (["--line=512", "x.py"], "--line 512 is 512 B, less than any Python program needs; give"),
        (["--line=512", "x.py"], 'the unit, such as --line "512 MiB"'),
        (["--python=/no/python", "x.py"], "--python '/no/python'"),
        (["--lines=5", "x.py"], "--lines"),
        ([], "PROGRAM"),
    ],
)
def test_a_wrong_command_line_is_told_before_anything_is_started(arguments, told, capfd):
    assert main(["run", *arguments]) == 2
    assert told in capfd.readouterr().err


def test_a_file_that_is_no_recording_is_not_overwritten(app, tmp_path, capfd):
    (tmp_path / "thesis.txt").write_text("mine")
    assert main(["run", f"--record={tmp_path / 'thesis.txt'}", app("print('started')")]) == 2
    out, errors = capfd.readouterr()
    assert "is not a recording" in errors
    assert "started" not in out


def test_of_recordings_without_a_name_the_newest_are_kept(app, tmp_path, monkeypatch):
    monkeypatch.setattr(_run, "KEPT", 2)
    folder = tmp_path / "state" / "floodline"
    folder.mkdir(parents=True)
    for n in range(5):
        (folder / f"old-{n}.rec").write_bytes(b"")
        os.utime(folder / f"old-{n}.rec", (n, n))
    main(["run", "--no-dashboard", app("")])
    kept = [file.name for file in recordings(tmp_path)]
    assert len(kept) == 2
    assert "old-4.rec" in kept


def test_where_the_home_cannot_be_written_the_next_folder_is_used(
    app, tmp_path, monkeypatch, capfd
):
    (tmp_path / "file").write_text("")
    folders = [tmp_path / "file" / "home", tmp_path / "temporary"]
    assert len(list(_run._folders())) == 2
    monkeypatch.setattr(_run, "_folders", lambda: folders)
    assert main(["run", "--no-dashboard", app("")]) == 0
    assert str(tmp_path / "temporary") in capfd.readouterr().err
    folders.pop()
    assert main(["run", "--no-dashboard", app("")]) == 0
    errors = capfd.readouterr().err
    assert "give --record FILE" in errors
    assert "recorded to no file" in errors


FORKING = """
import os, time
if os.fork():
    os._exit(0)
while not os.path.exists({go!r}):
    time.sleep(0.01)
"""


@pytest.fixture
def forking(app, tmp_path, monkeypatch):
    """Run a program that leaves a process behind, which ends when that has been said."""
    said, programs = [], []
    start = _run.Program

    def run(on_word):
        def say(words):
            said.append(words)
            if "running" in words:
                on_word(programs[0])
                (tmp_path / "go").touch()

        monkeypatch.setattr(_run, "Program", lambda *a: programs.append(start(*a)) or programs[-1])
        monkeypatch.setattr(_run, "_say", say)
        code = FORKING.format(go=str(tmp_path / "go"))
        status = main(["run", "--no-dashboard", f"--record={tmp_path / 'a.rec'}", app(code)])
        assert status == 0
        return said

    return run


def test_processes_that_a_program_leaves_behind_are_waited_for(forking, tmp_path):
    said = forking(lambda program: None)
    assert said[0].startswith("the program has ended and left process")
    assert "in the background" in read_recording(tmp_path / "a.rec").state()["exit"]["cause"]


def test_ctrl_c_ends_the_recording_of_what_a_program_left_behind(forking, tmp_path):
    forking(lambda program: program.pass_on(signal.SIGINT, True))
    state = read_recording(tmp_path / "a.rec").state()
    assert state["closed"]
    assert not _run._in_our_group(2**22 + 9)


# ---- attach

SLEEPING = """
import os, sys
import floodline
floodline.watch()
floodline.watch()
print("ready", flush=True)
input()
"""


@pytest.fixture
def sleeping():
    with sleeping_process() as process:
        yield process


@contextmanager
def sleeping_process():
    """A process that lets us in; its runtime folder is one with a short name."""
    with tempfile.TemporaryDirectory(prefix="fl-") as folder:
        plain = {name: text for name, text in os.environ.items() if name != "FLOODLINE_PROBE"}
        process = subprocess.Popen(
            [sys.executable, "-c", SLEEPING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**plain, "XDG_RUNTIME_DIR": folder},
        )
        assert process.stdout.readline() == "ready\n"
        while not list(Path(folder).glob("floodline/probe-*.sock")):  # its thread makes it
            time.sleep(0.01)
        yield process
        process.communicate("\n", timeout=PATIENCE)


def test_attach_watches_for_a_while_and_gives_the_answer_of_soak(
    sleeping, capsys, tmp_path, monkeypatch
):
    """The while is over as soon as the process has told about its objects."""

    def look(self, **how):
        told.extend(one for one in self.state()["processes"] if one["objects"] is not None)
        tick(self, **how)

    record, told, tick = tmp_path / "at.rec", [], Recorder.tick
    monkeypatch.setattr(Recorder, "tick", look)
    monkeypatch.setattr(_attach, "time", SimpleNamespace(monotonic=lambda: 3600.0 * len(told)))
    status = main(["attach", str(sleeping.pid), "--for", "10 min", f"--record={record}"])
    out, errors = capsys.readouterr()
    assert status == 3
    assert out.startswith("UNDECIDED")
    assert f"watching process {sleeping.pid} for 10 min" in errors
    state = read_recording(record).state()
    (process,) = state["processes"]
    assert (process["pid"], process["state"]) == (sleeping.pid, "running")
    assert process["objects"] is not None
    assert sleeping.poll() is None


HOLDING = """
import floodline
class Service:
    def __init__(self):
        self.chats = {f"user {n}": texts(n) for n in range(20_000)}
def texts(n):
    return [f"{n} {k} " + "x" * 1000 for k in range(6)]
service = Service()
floodline.watch()
print("ready", flush=True)
input()
"""


def test_attach_now_says_within_seconds_what_is_in_memory(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SLEEPING", HOLDING)
    monkeypatch.setattr(_attach, "NOW", 200.0)  # a safety net
    document = tmp_path / "held.json"
    with sleeping_process() as process:
        assert main(["attach", str(process.pid), "--now", f"--json={document}"]) == 0
        out, errors = capsys.readouterr()
        assert main(["attach", str(process.pid), "--now", "--json=-"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert process.poll() is None
    assert "until it is known what it holds" in errors
    told = json.loads(document.read_text())
    first = told["holders"][0]
    assert (first["owner"], first["type"], first["items"]) == (
        "__main__.Service.chats",
        "dict",
        20_000,
    )
    assert 100 << 20 < first["bytes"] < 200 << 20
    assert 0.5 < first["share"] <= 1.0
    memory = told["memory"]
    parts = sum(size for name, size in memory.items() if name != "resident")
    assert 0.9 * memory["resident"] < parts < 1.2 * memory["resident"]
    assert "__main__.Service.chats  (dict, 20,000 items)" in out
    assert "who manages it: Python objects" in out
    assert again["pid"] == told["pid"] == process.pid


def test_attach_now_says_if_the_process_did_not_answer(sleeping, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(_attach, "_watch", lambda *_: None)
    assert main(["attach", str(sleeping.pid), "--now"]) == 2
    assert "did not say what it holds within 25 s" in capsys.readouterr().err
    assert main(["attach", str(sleeping.pid), "--json", "x"]) == 2
    assert "--json needs --now" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="cannot be written"):
        _attach._write({}, tmp_path / "no" / "x.json")


def test_attach_says_that_the_process_has_ended(sleeping, capsys, monkeypatch):
    wait = Recorder.wait_for_news

    def kill(self, timeout):
        sleeping.kill()
        wait(self, timeout)

    monkeypatch.setattr(Recorder, "wait_for_news", kill)
    assert main(["attach", str(sleeping.pid), "--for", "1 min"]) == 3
    assert "gone, cause unknown" in capsys.readouterr().out


def test_ctrl_c_ends_attach_early_with_what_is_known(sleeping, capsys, monkeypatch):
    def interrupted(self, timeout):
        raise KeyboardInterrupt

    monkeypatch.setattr(Recorder, "wait_for_news", interrupted)
    assert main(["attach", str(sleeping.pid), "--for", "10 min"]) == 3
    out, errors = capsys.readouterr()
    assert "stopped early" in errors
    assert out.startswith("UNDECIDED")
    assert f"to know more: floodline attach {sleeping.pid} --for 110s" in out


def test_a_process_that_cannot_be_watched_costs_no_older_recording(capsys, tmp_path):
    record = tmp_path / "at.rec"
    Writer(record).close()
    before = record.read_bytes()
    assert main(["attach", str(2**22 + 7), f"--record={record}"]) == 2
    assert record.read_bytes() == before
    assert not (tmp_path / "at.rec.1").exists()
    (tmp_path / "thesis.txt").write_text("mine")
    assert main(["attach", str(os.getpid()), f"--record={tmp_path / 'thesis.txt'}"]) == 2
    assert "is not a recording" in capsys.readouterr().err


def test_attach_says_why_it_cannot(capsys):
    assert main(["attach", str(2**22 + 7)]) == 2
    assert "no process" in capsys.readouterr().err
    assert main(["attach", str(os.getpid()), "--for", "soon"]) == 2
    assert "--for='soon'" in capsys.readouterr().err
    assert _attach.EXITS == {"bounded": 0, "growing": 1, "undecided": 3}


def test_dormant_in_the_environment_is_the_same_as_a_call():
    code = "import floodline.recorder._probe.dormant as dormant; print(dormant._arm is not None)"
    with tempfile.TemporaryDirectory(prefix="fl-") as folder:
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "FLOODLINE_PROBE": "dormant", "XDG_RUNTIME_DIR": folder},
        )
    assert run.stdout == "True\n"


def test_a_recording_that_fails_now_and_then_is_told_once_a_minute(capsys):
    clock = Clock()

    class Flapping:
        unwritten = None

        def tick(self):
            self.unwritten = None if self.unwritten else "no files"

        def state(self):
            return {"line": None, "memory": {"now": 0}}

    ticking = _run._Ticking(Flapping(), clock)
    for _ in range(150):
        ticking.tick()
        clock.now += 1.0
    assert capsys.readouterr().err.count("no files") == 3
