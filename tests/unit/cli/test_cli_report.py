"""`floodline report` and `floodline top` on real recordings and a real server."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
import termios
import threading

import pytest
from rich.console import Console

from floodline.cli import _report, main
from floodline.cli._top import command as top
from floodline.cli._top.keyboard import Feed
from floodline.errors import ConfigError
from floodline.recorder import Recorder
from floodline.web import make_app, serve
from floodline.web._terminal.screen import screen
from floodline.web._terminal.state_sources import Tail
from web_states import Shown, killed, leaking


@pytest.fixture
def recording(tmp_path):
    """A recording of three ticks, which nobody has closed yet."""
    file = tmp_path / "run.rec"
    now = iter(range(1_000_000, 2_000_000))
    recorder = Recorder("app.py", file=file, clock=lambda: float(next(now)))
    for _ in range(3):
        recorder.tick()
    yield file, recorder
    recorder.close()


@pytest.fixture
def in_terminal(monkeypatch):
    """Run a command as if in a terminal; pytest gives the test its output only when it runs."""

    def run(*words):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("TERM", "xterm")
        return main([*words])

    return run


@pytest.fixture
def dashboard():
    source = Shown(leaking(60))
    serving = serve(make_app(source, token="secret"), "127.0.0.1", 0)
    yield source, serving
    serving.close()


def test_a_report_goes_to_the_standard_output_in_a_pipe(recording, capsys):
    file, recorder = recording
    recorder.close()
    assert main(["report", str(file), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["window"]["command"] == "app.py"
    assert main(["report", str(file)]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")


def test_a_report_without_a_file_is_of_the_newest_recording(
    recording, tmp_path, capsys, monkeypatch
):
    file, recorder = recording
    recorder.close()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(_report, "temporary_recordings", lambda: tmp_path / "temporary")
    monkeypatch.setattr(_report, "announced", list)
    assert main(["report"]) == 2
    assert "there is no recording yet" in capsys.readouterr().err
    older = tmp_path / "state" / "floodline" / "older.rec"
    older.parent.mkdir(parents=True)
    older.write_bytes(b"never read")
    os.utime(older, (1, 1))
    running = {"url": None, "token": None, "record": str(file), "pid": 1}
    monkeypatch.setattr(_report, "announced", lambda: [running, {**running, "record": None}])
    assert main(["report", "--format", "json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["window"]["command"] == "app.py"
    assert f"the newest recording is {file}" in said.err


def test_a_recording_in_use_is_reported_and_says_so(recording, capsys):
    file, _ = recording
    assert main(["report", str(file), "--format", "markdown"]) == 0
    assert "still being written" in capsys.readouterr().out


def test_the_name_of_the_output_chooses_the_format(recording, tmp_path, capsys):
    file, _ = recording
    assert main(["report", str(file), "-o", str(tmp_path / "r.json")]) == 0
    assert capsys.readouterr().err == f"undecided; the report is in {tmp_path / 'r.json'}\n"
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["verdict"] == "undecided"


def test_in_a_terminal_a_page_is_written_beside_the_recording(recording, capsys, in_terminal):
    file, _ = recording
    assert in_terminal("report", str(file)) == 0
    assert file.with_suffix(".html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert in_terminal("report", str(file), "--format", "markdown") == 0
    assert "# floodline report" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["report", "top"])
def test_what_is_no_recording_is_one_line(command, tmp_path, capsys):
    (tmp_path / "x.rec").write_text("hello", encoding="utf-8")
    assert main([command, str(tmp_path / "x.rec")]) == 2
    assert "is not a recording of floodline run" in capsys.readouterr().err
    assert main([command, str(tmp_path / "missing.rec")]) == 2


def test_top_prints_one_snapshot_into_a_pipe(recording, dashboard, capsys):
    file, _ = recording
    assert main(["top", str(file)]) == 0
    assert capsys.readouterr().out.startswith("UNDECIDED  ")
    _, serving = dashboard
    assert main(["top", serving.address("secret")]) == 0
    assert capsys.readouterr().out.startswith("GROWING  chat.service")


def test_top_finds_the_newest_recorder_of_this_user(dashboard, capsys, monkeypatch):
    _, serving = dashboard
    running = [{"url": serving.url, "token": "secret", "pid": 1}]
    monkeypatch.setattr(top, "announced", lambda: running)
    assert main(["top", "--once"]) == 0
    assert "watched for 1 min" in capsys.readouterr().out


def test_top_reads_the_recording_of_a_recorder_without_a_dashboard(
    recording, capsys, monkeypatch, in_terminal
):
    file, recorder = recording
    nowhere = {"url": None, "token": None, "pid": 1, "record": None}
    monkeypatch.setattr(top, "announced", lambda: [nowhere, {**nowhere, "record": str(file)}])
    assert main(["top"]) == 0
    assert "program   app.py" in capsys.readouterr().out
    naps = []

    def nap(seconds):
        naps.append(seconds)
        recorder.close()

    monkeypatch.setattr(top, "Tail", lambda file: Tail(file, sleep=nap))
    assert in_terminal("top") == 0
    assert "The program has ended." in capsys.readouterr().out
    assert naps == [1.0]


def test_top_without_a_recorder_says_what_to_do(capsys, monkeypatch):
    monkeypatch.setattr(top, "announced", list)
    assert main(["top"]) == 2
    assert (
        "no recorder is running; start one with `floodline run app.py`" in capsys.readouterr().err
    )


def test_top_follows_a_program_to_its_end_and_leaves_its_last_word(
    dashboard, capsys, in_terminal, monkeypatch
):
    source, serving = dashboard
    monkeypatch.setattr(top, "announced", lambda: [{"url": serving.url, "token": "secret"}])
    source.show(killed(60))
    assert in_terminal("top") == 0
    assert "killed by the kernel" in capsys.readouterr().out


def test_top_replays_a_recording(recording, capsys, in_terminal):
    file, recorder = recording
    recorder.close()
    assert in_terminal("top", str(file), "--speed", "1000") == 0
    assert "UNDECIDED" in capsys.readouterr().out


def test_ctrl_c_ends_top_without_a_trace(capsys, in_terminal, monkeypatch, recording):
    file, _ = recording

    def interrupted(frames, speed):
        yield next(iter(frames))
        raise KeyboardInterrupt

    monkeypatch.setattr(top, "paced", interrupted)
    assert in_terminal("top", str(file)) == 0
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert "stopped watching" in out  # and not that the program has ended


def test_an_output_that_cannot_be_written_is_told_in_one_line(recording, monkeypatch, capsys):
    def full(*words, err=False, **options):
        if not err:
            raise OSError(28, "No space left on device")
        sys.stderr.write(words[0])

    monkeypatch.setattr("click.echo", full)
    assert main(["report", str(recording[0])]) == 2
    assert "No space left on device; floodline --debug report" in capsys.readouterr().err
    with pytest.raises(OSError, match="No space left"):
        main(["--debug", "report", str(recording[0])])


@pytest.fixture
def keyboard(monkeypatch):
    """The other end of a terminal that is our standard input."""
    ours, theirs = pty.openpty()
    with open(theirs, closefd=False) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield ours
    os.close(ours)
    os.close(theirs)


def test_q_ends_top_and_a_question_mark_explains_it(
    keyboard, capsys, in_terminal, monkeypatch, recording
):
    file, _ = recording
    never = threading.Event()

    def live(frames, speed):
        yield next(iter(frames))
        os.write(keyboard, b"?x?q")
        assert not never.wait(60)

    monkeypatch.setattr(top, "paced", live)
    before = termios.tcgetattr(sys.stdin.fileno())
    assert in_terminal("top", str(file)) == 0
    never.set()
    out = capsys.readouterr().out
    assert "q to quit, ? for help" in out
    assert out.count("show or hide this help") == 2
    assert "stopped watching" in out
    assert termios.tcgetattr(sys.stdin.fileno()) == before


def test_what_the_source_of_top_raises_is_told(
    keyboard, in_terminal, monkeypatch, capsys, recording
):
    file, _ = recording

    def broken(frames, speed):
        raise ConfigError("no recorder answers")
        yield

    monkeypatch.setattr(top, "paced", broken)
    assert in_terminal("top", str(file)) == 2
    assert "no recorder answers" in capsys.readouterr().err


def test_a_keyboard_that_is_gone_does_not_end_the_feed(recording):
    reading, writing = os.pipe()
    os.close(writing)
    try:
        assert list(Feed([leaking(60)], reading)) == [leaking(60)]
    finally:
        os.close(reading)


def test_a_narrow_terminal_gets_fewer_columns_and_no_folded_words():
    def drawn(width):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(screen(leaking(), width=width))
        return console.export_text()

    narrow = drawn(60)
    for whole in ("undecided", "exited", "5,230", "chat/service.py:31", "+2.76 MiB/min"):
        assert whole in narrow
    assert "threads" not in narrow
    assert "threads" in drawn(100)
