"""How running recorders are found."""

from __future__ import annotations

import os
import stat

from floodline.recorder._announcement import Announcement, announced


def test_a_running_recorder_is_found_and_a_killed_one_is_forgotten(tmp_path):
    announcement = Announcement(tmp_path)
    announcement.publish(url="http://127.0.0.1:1", token="secret")
    file = tmp_path / f"recorder-{os.getpid()}.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (tmp_path / "recorder-1.json").write_text('{"pid": 4194311}')
    (tmp_path / "recorder-2.json").write_text("nonsense")
    found = announced(tmp_path)
    told = {"url": "http://127.0.0.1:1", "token": "secret", "record": None}
    assert found == [{**told, "pid": os.getpid()}]
    assert not (tmp_path / "recorder-1.json").exists()
    announcement.withdraw()
    announcement.withdraw()
    Announcement(tmp_path).withdraw()
    assert announced(tmp_path) == []


def test_where_nothing_can_be_written_nothing_is_announced(tmp_path):
    announcement = Announcement(tmp_path / "missing")
    announcement.publish(url="http://127.0.0.1:1", token=None)
    announcement.withdraw()
    assert announced(tmp_path) == []


def test_an_announcement_is_for_its_owner_alone_and_follows_no_link(tmp_path):
    other = tmp_path / "other"
    (tmp_path / f"recorder-{os.getpid()}.new").symlink_to(other)
    before = os.umask(0)
    try:
        announcement = Announcement(tmp_path)
        announcement.publish(url=None, token="secret")
    finally:
        os.umask(before)
    file = tmp_path / f"recorder-{os.getpid()}.json"
    assert (stat.S_IMODE(file.lstat().st_mode), other.exists()) == (0o600, False)
    announcement.withdraw()
