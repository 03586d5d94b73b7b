"""A leaking server is named by its recording, whoever is killed; one on sessions never is."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import pytest

from floodline.cli import main
from floodline.errors import ConfigError
from floodline.recorder import read_recording
from run_programs import BOUNDED, LEAKING, LINE, Load, Run

SAFETY = 400.0  # seconds; it takes about 20 on an idle machine
OWNER = "__main__.Host.sessions"


def named(run):
    """Tell whether the recording of a run that goes on names the culprit and its line."""
    try:
        state = read_recording(run.record).state()
    except ConfigError:  # before its first tick
        return False
    return (OWNER, LINE) in [(one["owner"], one["line"]) for one in state["suspects"]]


def wait_until(true):
    end = time.monotonic() + SAFETY
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.5)  # another process writes; there is nothing else to wait on


def check_named(state, run):
    """It may be too early for the verdict, and is not for the name."""
    first = state["suspects"][0]
    assert (first["owner"], first["line"]) == (OWNER, LINE)
    assert first["file"] == str(run.program)
    assert first["per_round"] > 0
    assert state["verdict"] in ("growing", "undecided")
    assert state["where"] == "python"


def check_killed_server(run, capsys):
    """The server alone was killed: recorder, report and exit status say so."""
    said = run.finish()
    assert run.process.returncode == -signal.SIGKILL
    assert said.startswith(("GROWING", "UNDECIDED"))
    assert OWNER in said
    assert f"host.py:{LINE}" in said
    assert "SIGKILL: killed, cause unknown" in said
    state = read_recording(run.record).state()
    assert state["closed"] is True
    assert state["exit"]["signal"] == "SIGKILL"
    check_named(state, run)
    page = run.report.read_text(encoding="utf-8")
    assert OWNER in page
    assert "SIGKILL" in page
    measured = "coverage" in sys.modules  # the recorder then has that on board too
    assert state["recorder"]["rss"] < (80_000_000 if measured else 40_000_000)


def check_killed_group(run, capsys):
    """The recorder was killed with its server: the file that it left still says what it knew."""
    run.process.communicate(timeout=SAFETY)
    assert run.process.returncode == -signal.SIGKILL
    state = read_recording(run.record).state()
    assert state["closed"] is False
    assert "this recording was never closed" in state["exit"]["cause"]
    check_named(state, run)
    capsys.readouterr()
    assert main(["report", str(run.record), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["suspects"][0]["owner"] == OWNER


def check_bounded(run):
    """The same server on sessions was watched for as long, and nothing of it was called growing."""
    os.kill(run.process.pid, signal.SIGTERM)
    run.finish()
    recording = read_recording(run.record)
    assert {frame["verdict"] for frame in recording.frames()} <= {"undecided", "bounded"}
    state = recording.state()
    assert not any(event["kind"] == "growing" for event in state["events"])
    assert state["exit"]["signal"] == "SIGTERM"
    (host,) = state["sessions"]
    assert host["name"] == "host"
    assert host["live"] <= 100
    assert host["left"]["closed"] > 0
    assert run.process.returncode == -signal.SIGTERM


@pytest.mark.timeout(900)
def test_the_culprit_is_named_whoever_is_killed_and_bounded_sessions_are_no_culprit(
    tmp_path, capsys
):
    """One test, because all three are watched at the same time."""
    runs, loads = {}, []
    try:
        for name, source in {"killed": LEAKING, "group": LEAKING, "bounded": BOUNDED}.items():
            (tmp_path / name).mkdir()
            runs[name] = Run(tmp_path / name, source)
            loads.append(Load(runs[name].port, pause=0.02))
        wait_until(lambda: named(runs["killed"]) and named(runs["group"]))
        os.kill(runs["killed"].pid, signal.SIGKILL)
        os.killpg(runs["group"].process.pid, signal.SIGKILL)
        check_killed_server(runs["killed"], capsys)
        check_killed_group(runs["group"], capsys)
        check_bounded(runs["bounded"])
    finally:
        for load in loads:
            load.stop()
        for run in runs.values():
            run.stop()
