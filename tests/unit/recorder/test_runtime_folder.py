"""The folder of this user."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from floodline.errors import ConfigError
from floodline.recorder import _runtime_folder
from floodline.recorder._runtime_folder import (
    recordings_folder,
    runtime_folder,
    temporary_recordings,
)


def test_the_folder_is_for_this_user_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = runtime_folder()
    assert folder == tmp_path / "floodline"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_others_could_open_is_closed_to_them(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "floodline").mkdir(mode=0o755)
    (tmp_path / "floodline").chmod(0o755)
    assert stat.S_IMODE(runtime_folder().stat().st_mode) == 0o700


def test_without_one_it_is_in_the_temporary_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(_runtime_folder.tempfile, "gettempdir", lambda: str(tmp_path))
    assert runtime_folder() == tmp_path / f"floodline-{os.getuid()}"


def test_recordings_in_the_temporary_folder_are_for_this_user_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(_runtime_folder.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = temporary_recordings()
    assert folder == tmp_path / f"floodline-{os.getuid()}" / "recordings"
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    monkeypatch.setattr(_runtime_folder, "_temporary", lambda user: tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(ConfigError, match="not a folder of this user"):
        temporary_recordings()


def test_one_that_cannot_be_made_is_replaced(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(_runtime_folder.tempfile, "gettempdir", lambda: str(tmp_path))
    assert runtime_folder() == tmp_path / f"floodline-{os.getuid()}"


def test_a_folder_of_somebody_else_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(ConfigError, match="not a folder of this user"):
        runtime_folder()


def test_recordings_without_a_name_go_to_the_state_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert recordings_folder() == tmp_path / "floodline"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert recordings_folder() == Path.home() / ".local/state/floodline"


def test_an_umask_that_takes_from_the_owner_does_no_harm(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    before = os.umask(0o777)
    try:
        folder = runtime_folder()
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
