"""The cache: what it spares, and that nothing depends on it."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import IO, Any

import pytest

from floodline.cli import main
from floodline.scan import Scan
from floodline.scan._frontends.python import reader
from floodline.scan._sources import cache as cache_module
from floodline.scan._sources.cache import NAME, Cache, default_folder, tool_key
from floodline.scan._sources.reading import Reading

LEAKY = "sessions = {}\n\n\ndef handle(session_id, state):\n    sessions[session_id] = state\n"
CLASS = """
import functools

class Service:
    '''Keeps {} things.'''
    def __init__(self, clients: dict):
        self.clients = clients
        self.tasks = []

    def handle(self, user_id: str, *rest, **named):
        if len(self.tasks) > 10:
            self.tasks = self.tasks[-5:]
        self.clients[user_id] = 1  # floodline: ignore[FLD101] because
        risky()
        del self.clients[user_id]
        self.tasks.append(lambda: self.clients.pop(user_id))

    @functools.cache
    def cached(self):
        raise FAILED

FAILED = ValueError()
service = Service({{}})
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "app.py").write_text(LEAKY)
    (folder / "service.py").write_text(CLASS.format(3))
    return folder


def scanned(folder: Path, *, day: int = 1, version: str = "1", max_bytes: int = 10**9, **asked):
    with Cache(folder.parent / "cache", version, day=day, max_bytes=max_bytes) as cache:
        return Scan([folder], cache=cache).report(**asked)


@pytest.fixture
def parsed(monkeypatch):
    """The names of the files that were read by the parser."""
    seen: list[str] = []
    real = reader.read

    def read(text, path, module):
        seen.append(Path(path).name)
        return real(text, path, module)

    monkeypatch.setattr(reader, "read", read)
    return seen


def rows(folder: Path) -> list[tuple]:
    with sqlite3.connect(folder.parent / "cache" / NAME) as base:
        found = base.execute("select key, size, used from entries").fetchall()
    base.close()
    return found


def test_a_second_scan_parses_nothing_and_says_the_same(project, parsed):
    plain = Scan([project]).report()
    parsed.clear()
    assert scanned(project) == plain
    assert sorted(parsed) == ["app.py", "service.py"]
    parsed.clear()
    assert scanned(project) == plain
    assert parsed == []


def test_only_a_changed_file_is_parsed_again(project, parsed):
    scanned(project)
    parsed.clear()
    (project / "app.py").write_text(LEAKY + "\nother = []\n")
    assert scanned(project) == Scan([project]).report()
    assert parsed == ["app.py", "app.py", "service.py"]


def test_content_counts_and_not_the_name(project, parsed):
    scanned(project)
    (project / "app.py").rename(project / "moved.py")
    parsed.clear()
    report = scanned(project)
    assert parsed == []
    assert "moved.sessions" in {finding.symbol for finding in report.findings}


@pytest.mark.parametrize("asked", [{"select": ["FLD3"]}, {"ignore": ["FLD101"]}, {"preview": True}])
def test_another_question_gets_its_own_answer(project, asked):
    scanned(project)
    assert scanned(project, **asked) == Scan([project]).report(**asked)


def test_another_version_begins_anew(project, parsed):
    scanned(project)
    parsed.clear()
    scanned(project, version="2")
    assert sorted(parsed) == ["app.py", "service.py"]


def test_the_python_and_the_code_of_the_tool_are_part_of_its_name():
    assert b"scan/_frontends/python/reader.py" in tool_key("1")
    assert b"_python/mutations.py" in tool_key("1")
    assert tool_key("1") != tool_key("2")


def test_a_damaged_entry_is_read_from_its_file_again(project):
    scanned(project)
    base = sqlite3.connect(project.parent / "cache" / NAME)
    base.execute("update entries set data = zeroblob(40)")
    base.commit()
    base.close()
    assert scanned(project) == Scan([project]).report()


def test_an_entry_of_another_shape_is_read_from_its_file_again(project, monkeypatch):
    for name in ("pack_facts", "pack_report"):
        place = "_sources.encoding" if name == "pack_facts" else "_scan"
        monkeypatch.setattr(f"floodline.scan.{place}.{name}", lambda *_: b"i\x01\x00\x00\x00")
    scanned(project)
    monkeypatch.undo()
    monkeypatch.chdir(project)
    assert scanned(project) == Scan([project]).report()


@pytest.mark.parametrize("content", [b"this is no database " * 100, b""])
def test_a_file_that_is_no_database_is_replaced(project, content):
    (project.parent / "cache").mkdir()
    (project.parent / "cache" / NAME).write_bytes(content)
    scanned(project)
    assert len(rows(project)) == 3


def test_a_database_of_another_shape_is_replaced(project):
    (project.parent / "cache").mkdir()
    base = sqlite3.connect(project.parent / "cache" / NAME)
    base.execute("create table entries (other)")
    base.commit()
    base.close()
    scanned(project)
    assert len(rows(project)) == 3


def test_without_a_place_to_write_there_is_no_cache(project):
    (project.parent / "cache").write_text("a file stands where the folder should be")
    assert scanned(project) == Scan([project]).report()


def test_a_database_that_cannot_be_opened_is_no_cache(project):
    (project.parent / "cache" / NAME).mkdir(parents=True)
    assert scanned(project) == Scan([project]).report()


def test_a_database_that_fails_later_is_no_cache(project, tmp_path):
    with Cache(tmp_path / "cache", "1", day=1) as cache:
        base = sqlite3.connect(tmp_path / "cache" / NAME)
        base.execute("drop table entries")
        base.commit()
        base.close()
        assert Scan([project], cache=cache).report() == Scan([project]).report()
    assert cache.get(b"key") is None
    cache.put(b"key", b"data")


def test_a_scan_that_fails_writes_nothing(project, tmp_path):
    def fail():
        with Cache(tmp_path / "cache", "1", day=1) as cache:
            cache.put(b"key", b"data")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert rows(project) == []


def test_a_scan_that_is_cut_off_keeps_the_batches_that_it_has_written(project, parsed, monkeypatch):
    monkeypatch.setattr(cache_module, "BATCH", 1)
    seen: list[int] = []

    def stop(number: int, _: int) -> None:
        seen.append(number)
        if number == 2:
            raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        Cache(project.parent / "cache", "1", day=1) as cache,
    ):
        Scan([project], cache=cache, progress=stop).report()
    assert seen == [1, 2]
    assert len(rows(project)) == 2
    parsed.clear()
    scanned(project)
    assert parsed == []


def test_entries_of_earlier_batches_leave_as_well(project, monkeypatch):
    monkeypatch.setattr(cache_module, "BATCH", 1)
    with Cache(project.parent / "cache", "1", day=1, max_bytes=1000) as cache:
        for number in range(20):
            cache.put(b"%d" % number, bytes(100))
    assert 0 < sum(size for _, size, _ in rows(project)) <= 1000


def test_a_batch_that_cannot_be_written_is_lost_and_nothing_else(project, monkeypatch):
    monkeypatch.setattr(cache_module, "BATCH", 1)
    with Cache(project.parent / "cache", "1", day=1) as cache:
        base = sqlite3.connect(project.parent / "cache" / NAME)
        base.execute("drop table entries")
        base.commit()
        base.close()
        assert Scan([project], cache=cache).report() == Scan([project]).report()


def test_what_was_not_used_for_longest_leaves_first(project):
    scanned(project, day=1)
    total = sum(size for _, size, _ in rows(project))
    old = {key for key, _, _ in rows(project)}
    for number in range(6):
        (project / "app.py").write_text(f"{LEAKY}\nx{number} = {{}}\n")
        scanned(project, day=2 + number, max_bytes=total * 2)
        assert sum(size for _, size, _ in rows(project)) <= total * 2
    kept = {key for key, _, _ in rows(project)}
    assert len(kept & old) <= 1  # service.py was used each day, the rest was not


def test_many_scans_at_once_spoil_nothing(project):
    wanted = Scan([project]).report()
    answers: list[bool] = []

    def scan() -> None:
        answers.append(scanned(project) == wanted)

    threads = [threading.Thread(target=scan) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == [True] * 4
    assert scanned(project) == wanted


def test_a_report_that_a_lack_of_memory_cut_short_is_not_remembered(project, monkeypatch):
    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr(reader, "read", refuse)
    assert len(scanned(project).skipped) == 2
    monkeypatch.undo()
    monkeypatch.chdir(project)
    assert scanned(project).skipped == ()


def test_a_file_that_goes_away_changes_the_digest(project):
    scanned(project)
    (project / "service.py").unlink()
    assert scanned(project).files == 1


COMMAND = ["scan", ".", "--fail-on", "medium"]


def test_the_command_keeps_its_cache_where_it_is_told_and_out_of_git(project, capsys):
    where = project.parent / "told"
    assert main([*COMMAND, "--cache-dir", str(where)]) == 1
    first = capsys.readouterr().out
    assert (where / ".gitignore").read_text() == "*\n"
    assert main([*COMMAND, "--cache-dir", str(where)]) == 1
    assert capsys.readouterr().out == first
    assert main([*COMMAND, "--no-cache"]) == 1
    assert capsys.readouterr().out == first


def test_the_command_writes_nothing_without_a_cache(project, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.parent / "caches"))
    assert main([*COMMAND, "--no-cache"]) == 1
    assert not (project.parent / "caches").exists()
    assert main(COMMAND) == 1
    assert (project.parent / "caches" / "floodline" / NAME).exists()


def test_each_platform_has_its_folder_for_caches():
    assert default_folder({"HOME": "/h"}, "linux") == Path("/h/.cache/floodline")
    assert default_folder({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "linux") == Path("/x/floodline")
    assert default_folder({"HOME": "/h"}, "darwin") == Path("/h/Library/Caches/floodline")
    assert default_folder({"HOME": "/h"}, "win32") == Path("/h/AppData/Local/floodline")
    assert default_folder({"HOME": "/h", "LOCALAPPDATA": "/l"}, "win32") == Path("/l/floodline")
    assert default_folder().name == "floodline"


def test_a_file_that_cannot_be_read_has_a_digest_too(project, monkeypatch):
    def refuse(path, *how, **more):
        raise PermissionError(13, "Permission denied")

    (project / "gone.py").symlink_to("nowhere")
    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    monkeypatch.setattr("floodline.scan._sources.content.open", refuse, raising=False)
    reasons = {entry.path: entry.why for entry in scanned(project).skipped}
    assert reasons["app.py"] == "Permission denied"
    assert reasons["gone.py"] == "there is no such file or folder"
    monkeypatch.undo()
    monkeypatch.chdir(project)
    assert [entry.path for entry in scanned(project).skipped] == ["gone.py"]


def test_without_a_cache_there_is_no_digest(project):
    assert Reading([project]).digest() == b""


def test_a_cache_is_empty_until_something_is_written(tmp_path: Path) -> None:
    with Cache(tmp_path, "1", day=1) as cache:
        assert cache.is_empty
        cache.put(cache.key(b"x = {}"), b"facts")
    with Cache(tmp_path, "1", day=1) as cache:
        assert not cache.is_empty


def test_an_empty_cache_is_filled_without_reading_files_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.py").write_text("seen = {}\n")
    read: list[Path] = []

    def noted(path: Path, *how: Any, **more: Any) -> IO[bytes]:
        read.append(path)
        return open(path, *how, **more)  # noqa: PTH123 -- what is replaced

    def noted_again(path: Path) -> bytes:
        read.append(path)
        return b""

    monkeypatch.setattr("floodline.scan._sources.content.open", noted, raising=False)
    monkeypatch.setattr(Path, "read_bytes", noted_again)
    with Cache(tmp_path / "cache", "1", day=1) as cache:
        first = Scan([tmp_path / "app.py"], cache=cache).report()
    assert read == [tmp_path / "app.py"]
    with Cache(tmp_path / "cache", "1", day=1) as cache:
        assert Scan([tmp_path / "app.py"], cache=cache).report() == first
