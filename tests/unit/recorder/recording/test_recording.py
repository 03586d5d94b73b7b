"""One file, whole after every tick, bounded, and readable whatever happened to its writer."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys

import pytest

from floodline.errors import ConfigError
from floodline.recorder import Recorder, read_recording
from floodline.recorder._recording import file as file_module
from floodline.recorder._recording import replay
from floodline.recorder._recording.file import Writer
from recorder_fakes import Clock, answer, sample, suspect

NOBODY = 2**22 + 9


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run.rec"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recorder(file, clock):
    recorder = Recorder("app.py", file=file, clock=clock, kills=lambda: 0)
    yield recorder
    recorder.close()


def grow(recorder, pid=None):
    pid = pid or os.getpid()
    recorder.program(pid)
    recorder.heard(pid, {"kind": "hello", "command": "app.py", "parent": 1, "python": "3.11.7"})
    recorder.heard(pid, sample(answer=answer("growing", suspects=[suspect()])))


def tick(recorder, clock, times=1, step=1.0):
    for _ in range(times):
        clock.now += step
        recorder.tick()


def test_a_recording_has_the_state_of_its_recorder_after_every_tick(recorder, file, clock):
    grow(recorder)
    for _ in range(3):
        tick(recorder, clock)
        assert read_recording(file).state() == recorder.state()


def test_the_state_is_json(recorder, clock):
    grow(recorder)
    tick(recorder, clock)
    assert json.loads(json.dumps(recorder.state())) == recorder.state()


def test_there_is_no_side_file_and_a_copy_is_a_recording(recorder, file, clock, tmp_path):
    grow(recorder)
    tick(recorder, clock, 3)
    assert [one.name for one in tmp_path.iterdir()] == ["run.rec"]
    shutil.copy(file, tmp_path / "copy.rec")
    assert read_recording(tmp_path / "copy.rec").state()["suspects"][0]["owner"] == "app.SESSIONS"


def test_a_recording_that_nobody_closed_says_so_and_names_the_culprit(
    recorder, file, clock, monkeypatch
):
    grow(recorder)
    tick(recorder, clock)
    assert read_recording(file).running
    assert read_recording(file).state()["exit"] is None
    monkeypatch.setattr(replay, "alive", lambda pid: False)
    left = read_recording(file)
    state = left.state()
    assert (left.closed, left.running) == (False, False)
    assert state["closed"] is False
    assert "was never closed" in state["exit"]["cause"]
    assert [one["state"] for one in state["processes"]] == ["lost"]
    assert state["suspects"][0]["owner"] == "app.SESSIONS"


def test_a_closed_recording_says_how_the_program_ended(recorder, file, clock, monkeypatch):
    grow(recorder, pid=2**22 + 7)
    recorder.hung_up(2**22 + 7)
    recorder.ended(-9)
    recorder.close()
    monkeypatch.setattr(replay, "alive", lambda pid: False)
    state = read_recording(file).state()
    assert state["closed"] is True
    assert state["exit"]["signal"] == "SIGKILL"


def test_frames_replay_the_run(recorder, file, clock):
    grow(recorder)
    tick(recorder, clock, 30)
    recorder.close()
    frames = list(read_recording(file).frames(step=0))
    assert len(frames) > 5
    assert [frame["now"] for frame in frames] == sorted(frame["now"] for frame in frames)
    for frame in frames:
        assert all(point[0] <= frame["now"] for point in frame["memory"]["points"])
    assert len(frames[0]["memory"]["points"]) < len(frames[-1]["memory"]["points"])
    assert len(list(read_recording(file).frames(step="20 s"))) == 3


def test_a_long_run_stays_small(file, clock, monkeypatch):
    monkeypatch.setattr(file_module, "MOST_FRAMES", 40)
    recorder = Recorder("app.py", file=file, clock=clock, kills=lambda: 0)
    try:
        grow(recorder)
        tick(recorder, clock, 80, step=5.0)
        middle = recorder.state()["recorder"]["file_bytes"]
        for n in range(80):
            for k in range(10):
                recorder.note("hook_error", f"error {n}.{k}")
            recorder.note("growing", f"the culprit {n % 3}")
            tick(recorder, clock, step=5.0)
    finally:
        recorder.close()
    assert file.stat().st_size < 1.5 * middle + 100_000
    recording = read_recording(file)
    assert len(list(recording.frames(step=0))) <= 42
    texts = [event["text"] for event in recording.state()["events"]]
    assert {"the culprit 0", "the culprit 1", "the culprit 2"} <= set(texts)


def test_above_its_size_old_frames_go(file, clock):
    recorder = Recorder("app.py", file=file, clock=clock, kills=lambda: 0)
    try:
        recorder._tape.writer._most_bytes = 1
        grow(recorder)
        tick(recorder, clock, 40, step=6.0)
    finally:
        recorder.close()
    assert len(list(read_recording(file).frames(step=0))) < 10


def test_what_is_older_than_a_week_goes(recorder, file, clock):
    grow(recorder)
    tick(recorder, clock)
    first = clock.now
    tick(recorder, clock, step=8 * 86400.0)
    assert all(frame["now"] > first for frame in read_recording(file).frames())


def test_series_of_forgotten_processes_go(recorder, file, clock):
    def on_disk():
        with sqlite3.connect(file) as db:
            found = {one for (one,) in db.execute("SELECT DISTINCT series FROM samples")}
        db.close()
        return found

    grow(recorder)
    tick(recorder, clock, 6)
    before = on_disk()  # with servers that other tests have started
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
        tick(recorder, clock, 6)
    tick(recorder, clock)
    new = on_disk() - before
    assert new
    recorder._fleet.ended.clear()
    tick(recorder, clock, 60)
    assert not new & on_disk()


def test_an_older_recording_is_kept_under_the_next_number(file):
    for _ in range(5):
        Writer(file).close()
    kept = sorted(one.name for one in file.parent.iterdir())
    assert kept == ["run.rec", "run.rec.1", "run.rec.2", "run.rec.3"]


def test_the_journal_of_a_killed_writer_moves_with_its_file(file):
    Writer(file).close()
    journal = file.with_name("run.rec-journal")
    journal.write_bytes(b"")
    Writer(file).close()
    assert file.with_name("run.rec.1-journal").exists()


def test_a_file_that_is_no_recording_is_not_touched(file):
    file.write_text("my thesis")
    with pytest.raises(ConfigError, match="is not a recording"):
        Writer(file)
    assert file.read_text() == "my thesis"
    with pytest.raises(ConfigError, match="is not a recording"):
        read_recording(file)


def test_a_folder_that_cannot_be_written_is_an_error_with_the_next_step(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="volume"):
        Writer(tmp_path / "file" / "run.rec")


def test_a_full_disk_stops_nothing_and_is_made_up_for(recorder, file, clock, monkeypatch):
    grow(recorder)
    tick(recorder, clock)
    good = Writer.write

    def full(self, *arguments):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Writer, "write", full)
    tick(recorder, clock, 3)
    assert "disk is full" in recorder.state()["errors"][0]
    assert len(recorder.state()["errors"]) == 1
    monkeypatch.setattr(Writer, "write", good)
    tick(recorder, clock)
    state = read_recording(file).state()
    assert state["memory"]["points"] == recorder.state()["memory"]["points"]
    assert "recording_error" in [event["kind"] for event in state["events"]]


def test_a_tick_that_fails_in_the_middle_leaves_the_one_before(recorder, file, clock, monkeypatch):
    grow(recorder)
    tick(recorder, clock)
    before = read_recording(file).state()

    def broken(self, points):
        raise sqlite3.OperationalError("no")

    monkeypatch.setattr(Writer, "_write_points", broken)
    tick(recorder, clock)
    after = read_recording(file).state()
    assert after.pop("cut")["why"] == "no"
    assert {**after, "errors": []} == before


@pytest.fixture
def full(recorder, clock):
    """A recorder whose disk has become full in the middle of a run: there are no more pages."""
    grow(recorder)
    tick(recorder, clock)
    (pages,) = recorder._tape.writer._db.execute("PRAGMA page_count").fetchone()
    recorder._tape.writer._db.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(500):
        recorder.note("filling", f"{number} {'x' * 400}")
    tick(recorder, clock, 2)
    assert "disk is full" in recorder.unwritten
    return recorder


def test_a_recording_that_a_full_disk_cut_off_says_so_and_how_the_program_ended(full, file, clock):
    full.ended(3)
    full.close()
    assert "disk is full" in full.unwritten
    recording = read_recording(file)
    assert not recording.closed
    state = recording.state()
    assert state["cut"] == {"at": 1002.0, "why": "database or disk is full"}
    assert state["errors"] == ["it could not be written: database or disk is full"]
    assert (state["closed"], state["now"]) == (True, 1001.0)
    assert state["exit"]["cause"] == "failed with status 3"
    (program,) = state["processes"]
    assert (program["state"], program["exit"]) == ("exited", state["exit"])
    with sqlite3.connect(file) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def test_while_the_disk_is_full_the_recording_says_that_its_end_is_not_here(
    full, file, monkeypatch
):
    state = read_recording(file).state()
    assert state["cut"]["why"] == "database or disk is full"
    assert (state["closed"], state["exit"]) == (False, None)
    monkeypatch.setattr(replay, "alive", lambda pid: False)
    state = read_recording(file).state()
    assert "this recording was never closed" in state["exit"]["cause"]
    assert state["processes"][0]["state"] == "lost"


def test_when_there_is_room_again_nothing_is_cut_off(full, file, clock):
    full._tape.writer._db.execute("PRAGMA max_page_count = 100000")
    tick(full, clock)
    state = read_recording(file).state()
    assert "cut" not in state
    assert state == full.state()
    assert len(state["events"]) > 300


def test_where_not_even_that_can_be_said_the_program_goes_on(full, clock):
    full._tape.writer._db.execute("PRAGMA query_only = 1")
    full.ended(0)
    tick(full, clock)
    assert full.state()["exit"]["status"] == 0
    full._tape.writer.note({"why": "x" * 5000})
    full._tape.writer._db.execute("PRAGMA query_only = 0")


def test_a_recording_of_before_has_no_place_for_troubles(recorder, file, clock):
    grow(recorder)
    tick(recorder, clock)
    recorder._tape.writer._db.execute("DROP TABLE trouble")
    assert "cut" not in read_recording(file).state()


def test_only_those_that_ran_are_lost_with_their_recorder(recorder, file, clock, monkeypatch):
    grow(recorder)
    recorder.heard(2**22 + 1, {"kind": "hello", "command": "job", "parent": 1})
    recorder.heard(2**22 + 1, {"kind": "bye"})
    tick(recorder, clock)
    monkeypatch.setattr(replay, "alive", lambda pid: False)
    states = [one["state"] for one in read_recording(file).state()["processes"]]
    assert states == ["lost", "exited"]


def test_where_the_kernel_tells_no_boot_nothing_counts_as_running(monkeypatch, tmp_path):
    monkeypatch.setattr(replay, "BOOT", tmp_path / "missing")
    assert replay.boot_id() == ""


def test_missing_empty_and_newer_files_are_told_apart(tmp_path):
    with pytest.raises(ConfigError, match="is not a file"):
        read_recording(tmp_path / "none.rec")
    Writer(tmp_path / "empty.rec").close()
    with pytest.raises(ConfigError, match=r"is empty: .* before its first tick$"):
        read_recording(tmp_path / "empty.rec")
    with sqlite3.connect(tmp_path / "empty.rec") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(ConfigError, match="update floodline"):
        read_recording(str(tmp_path / "empty.rec"))


@pytest.mark.parametrize("doc", ["{torn", "{}", "[]", '{"now": null, "memory": 1}'])
def test_a_damaged_row_is_an_error_with_the_next_step(recorder, file, clock, doc):
    grow(recorder)
    tick(recorder, clock)
    recorder.close()
    with sqlite3.connect(file) as db:
        db.execute("UPDATE state SET doc = ?", (doc,))
    db.close()
    with pytest.raises(ConfigError, match=r"cannot be read: .*copy it again"):
        read_recording(file)


def test_a_recording_that_we_may_not_read_is_told(file, monkeypatch):
    def refuse(file):
        raise PermissionError(13, "Permission denied", str(file))

    file.touch()
    monkeypatch.setattr(replay, "is_recording", refuse)
    with pytest.raises(ConfigError, match=r"denied: '.*run\.rec'; read it as the user"):
        read_recording(file)


def test_a_damaged_copy_is_an_error_with_the_next_step(recorder, file, clock, tmp_path):
    grow(recorder)
    tick(recorder, clock, 3)
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    (tmp_path / "torn.rec").write_bytes(content)
    with pytest.raises(ConfigError, match="copy it again"):
        read_recording(tmp_path / "torn.rec")


def test_the_half_written_tick_of_a_killed_writer_is_taken_back(file, tmp_path):
    """A process is ended inside its transaction, after pages of it have reached the file."""
    code = f"""
import os, sqlite3
from pathlib import Path
from floodline.recorder import Recorder
recorder = Recorder("app.py", file=Path({str(file)!r}), kills=lambda: 0)
recorder.program(os.getpid())
recorder.tick()
db = recorder._tape.writer._db
db.execute("PRAGMA cache_size = 1")
db.execute("PRAGMA cache_spill = 1")
db.execute("BEGIN")
for n in range(500):
    db.execute("INSERT INTO frames VALUES (?, ?)", (n, b"x" * 4000))
os._exit(9)
"""
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 9
    journal = file.with_name("run.rec-journal")
    assert journal.exists()
    before = file.read_bytes()
    state = read_recording(file).state()
    assert state["command"] == "app.py"
    assert (file.read_bytes(), journal.exists()) == (before, True)  # reading changes nothing


def test_a_file_that_another_recorder_writes_is_refused_and_stays_where_it_is(
    recorder, file, clock
):
    with pytest.raises(ConfigError, match=r"run\.rec is in use by another recorder; give another"):
        Writer(file)
    grow(recorder)
    tick(recorder, clock)
    assert read_recording(file).state() == recorder.state()
    recorder.close()
    Writer(file).close()
    assert read_recording(file.with_name("run.rec.1")).closed


def test_a_device_that_reads_as_empty_is_no_recording(tmp_path, monkeypatch):
    device = tmp_path / "null"
    os.mkfifo(device)
    monkeypatch.setattr(file_module, "is_recording", lambda file: True)
    with pytest.raises(ConfigError, match="null exists and is not a recording"):
        Writer(device)
    assert [one.name for one in tmp_path.iterdir()] == ["null"]


def test_where_files_cannot_be_locked_a_recording_is_made_all_the_same(file, monkeypatch):
    Writer(file).close()

    def refuse(*_):
        raise OSError(95, "not supported")

    monkeypatch.setattr(file_module.fcntl, "flock", refuse)
    Writer(file).close()
    monkeypatch.setattr(file_module, "fcntl", None)
    Writer(file).close()
    assert file.with_name("run.rec.2").exists()


def test_a_reader_that_takes_its_time_costs_a_tick_and_not_the_rest(recorder, file, clock):
    grow(recorder)
    tick(recorder, clock)
    recorder._tape.writer._db.execute("PRAGMA busy_timeout = 0")
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM state").fetchall()
    tick(recorder, clock)
    assert recorder.unwritten == f"{file} could not be written: database is locked"
    reader.close()
    tick(recorder, clock)
    assert recorder.unwritten is None
    assert read_recording(file).state() == recorder.state()


def test_bytes_that_are_no_text_are_recorded_as_escapes(file, clock):
    """A name of a file, or an argument, may hold any bytes; Python keeps them as halves."""
    recorder = Recorder("app.py \udcff", file=file, clock=clock, kills=lambda: 0)
    recorder.program(os.getpid())
    host, port, token = recorder.address.split(":")
    first = {"token": token, "kind": "hello", "pid": NOBODY, "command": "\udcfe 🌊 é"}
    first |= {"parent": 1, "python": "3.11.7"}
    grown = answer("growing", suspects=[suspect("app.\udcfdX")])
    with socket.create_connection((host, int(port)), timeout=60) as line:
        for message in (first, sample(answer=grown)):
            line.sendall(json.dumps(message).encode() + b"\n")
        while not recorder.state()["suspects"]:
            recorder.wait_for_news(0.05)
            tick(recorder, clock)
    recorder.close()
    assert recorder.unwritten is None
    state = read_recording(file).state()
    assert state["command"] == "app.py \\udcff"
    assert state["suspects"][0]["owner"] == "app.?X"
    assert "? 🌊 é" in [one["command"] for one in state["processes"]]
    assert [one["text"] for one in state["events"]][:3] == [
        "app.py \\udcff",
        "? 🌊 é",
        "app.?X grows, fed at app.py:7",
    ]
    assert json.dumps(state, ensure_ascii=False).encode()


def test_whatever_goes_wrong_in_writing_the_program_goes_on(recorder, clock, monkeypatch):
    def broken(*_):
        raise ValueError("no")

    grow(recorder)
    monkeypatch.setattr(Writer, "_write_points", broken)
    tick(recorder, clock)
    assert recorder.unwritten.endswith("could not be written: ValueError: no")
