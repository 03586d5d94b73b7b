"""A recording is for its owner alone, and goes to the file that was named and no other."""

from __future__ import annotations

import os
import sqlite3
import stat

import pytest

from floodline.errors import ConfigError
from floodline.recorder import Recorder, read_recording
from floodline.recorder._recording import file as file_module
from floodline.recorder._recording.file import Writer, check_room


def mode(file):
    return stat.S_IMODE(file.lstat().st_mode)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run.rec"


@pytest.fixture(params=[0o000, 0o022, 0o277])
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def test_a_recording_and_its_journal_are_readable_by_their_owner_alone(umask, tmp_path):
    tmp_path.chmod(0o755)
    file = tmp_path / "run.rec"
    recorder = Recorder("app.py", file=file)
    db = recorder._tape.writer._db
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO frames VALUES (1, 'x')")
    assert [mode(file), mode(tmp_path / "run.rec-journal")] == [0o600, 0o600]
    db.execute("ROLLBACK")
    recorder.close()
    assert mode(file) == 0o600
    assert read_recording(file).closed


def test_a_folder_that_is_made_for_it_is_closed_to_others(tmp_path):
    before = os.umask(0)
    try:
        Writer(tmp_path / "new" / "run.rec").close()
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o700


def test_what_is_moved_away_is_closed_to_others_too(file):
    Writer(file).close()
    journal = file.with_name("run.rec-journal")
    journal.write_bytes(b"")
    for one in (file, journal):
        one.chmod(0o644)  # of an older recorder
    Writer(file).close()
    moved = [file.with_name(name) for name in ("run.rec.1", "run.rec.1-journal")]
    assert [mode(one) for one in moved] == [0o600, 0o600]


def test_moving_follows_no_link_either(file, tmp_path):
    other = tmp_path / "other"
    other.write_text("mine")
    other.chmod(0o644)
    Writer(file).close()
    file.with_name("run.rec.1").symlink_to(other)
    Writer(file).close()
    assert (mode(other), other.read_text()) == (0o644, "mine")
    assert file.with_name("run.rec.2").is_symlink()


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_is_refused_with_the_next_step(file, tmp_path, there):
    target = tmp_path / "target"
    if there:
        Writer(target).close()
    file.symlink_to(target)
    for record in (Writer, check_room):
        with pytest.raises(ConfigError, match=r"run\.rec is a symbolic link.*; remove the link"):
            record(file)
    assert (file.is_symlink(), target.exists()) == (True, there)


def test_a_link_that_is_put_there_after_the_check_is_not_followed(file, tmp_path, monkeypatch):
    target = tmp_path / "target"
    monkeypatch.setattr(file_module, "make_room", lambda one: one.symlink_to(target))
    with pytest.raises(ConfigError, match=r"run\.rec cannot be written: .*exists"):
        Writer(file)
    assert not target.exists()


@pytest.mark.parametrize("listed", [True, False])
def test_a_link_that_is_put_there_before_sqlite_opens_gets_nothing(
    file, tmp_path, monkeypatch, listed
):
    target = tmp_path / "target"
    target.write_bytes(b"")
    real = sqlite3.connect

    def late(name, **options):
        file.unlink()
        file.symlink_to(target)
        db = real(name, **options)
        if listed:  # and taken away again
            file.unlink()
            os.link(kept, file)
        return db

    made = file_module.create_private
    kept = tmp_path / "kept"

    def make(one):
        opened = made(one)
        os.link(one, kept)
        return opened

    monkeypatch.setattr(file_module, "create_private", make)
    monkeypatch.setattr(file_module.sqlite3, "connect", late)
    if not listed:
        monkeypatch.setattr(file_module, "OPENED", str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="another file was put in its place"):
        Writer(file)
    assert target.read_bytes() == b""


def test_where_descriptors_are_not_listed_a_recording_is_made_all_the_same(
    file, tmp_path, monkeypatch
):
    (tmp_path / "fd").mkdir()
    (tmp_path / "fd" / "0").touch()
    monkeypatch.setattr(file_module, "OPENED", str(tmp_path / "fd"))
    Writer(file).close()
    assert file_module.is_recording(file)


def test_a_recording_that_sqlite_cannot_open_lets_go_of_the_file(file, monkeypatch):
    def fail(*_, **__):
        raise sqlite3.OperationalError("unable to open database file")

    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # no paths
    with monkeypatch.context() as patch:
        patch.setattr(file_module.sqlite3, "connect", fail)
        with pytest.raises(ConfigError, match="unable to open"):
            Writer(file)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208  # no paths
    writer = Writer(file)
    writer.close()
    writer.close()  # harmless
