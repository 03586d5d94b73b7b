"""Files that are no plain source: each is named with its reason, and the rest is read."""

from __future__ import annotations

import json
import os
import sys

import pytest

from floodline.cli import main
from floodline.scan import Scan


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text("x = 1\n")
    return tmp_path


def skipped(folder) -> dict[str, str]:
    report = Scan([folder]).report()
    assert report.files >= 1
    return {entry.path: entry.why for entry in report.skipped}


def test_a_pipe_is_not_waited_for(project):
    os.mkfifo(project / "pipe.py")
    assert skipped(project) == {"pipe.py": "it is not a regular file"}


def test_links_to_themselves_and_to_nothing_are_named(project):
    (project / "self.py").symlink_to("self.py")
    (project / "gone.py").symlink_to("nowhere")
    found = skipped(project)
    assert found.keys() == {"self.py", "gone.py"}
    assert found["gone.py"] == "there is no such file or folder"
    assert "symbolic links" in found["self.py"]


def test_lock_files_of_editors_are_passed_over(project):
    (project / ".#app.py").symlink_to("someone@somewhere")
    assert skipped(project) == {}


def test_folders_that_link_to_each_other_are_read_once(project):
    for name, other in (("one", "two"), ("two", "one")):
        (project / name).mkdir()
        (project / name / "code.py").write_text("y = 2\n")
        (project / name / "link").symlink_to(project / other, target_is_directory=True)
    assert Scan([project]).report().files == 3


def test_a_table_of_data_is_not_read(project, monkeypatch):
    monkeypatch.setattr("floodline.scan._sources.content.MANY_ITEMS", 100)
    (project / "data.py").write_text(f"table = [{'0,' * 101}]\n")
    assert skipped(project) == {"data.py": "it is a data table: 101 commas, more than 100"}


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "-" * 50_000 + "1\n",
        "x = " + "+".join(["1"] * 50_000) + "\n",
        "x = " + "(" * 5_000 + ")" * 5_000 + "\n",
        "x" + ".a" * 30_000 + "\n",
        "def f(x):\n    self.y[x" + "[0]" * 20_000 + "] = 1\n",
        "".join(f"{' ' * n}if x:\n" for n in range(99)) + " " * 99 + "pass\n" * 1,
    ],
    ids=["minus", "plus", "brackets", "dots", "items", "blocks"],
)
def test_deep_nesting_is_refused_or_read_and_never_a_crash(project, text):
    (project / "deep.py").write_text(text)
    assert skipped(project).keys() <= {"deep.py"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"x = 1\0\n", "null bytes"),
        (b"# coding: no-such-code\nx = 1\n", "no-such-code"),
        (b"# coding: hex\nx = 1\n", "hex"),
        (b"x = '\xff'\n", "encoding"),
        (b"# coding: ascii\nx = '\xe9'\n", "it is not written in ascii"),
        (b"def (:\n", "syntax error on line 1"),
        (b"x = " + b"9" * 5000 + b"\n", "4300 digits"),
        (b"print 'old'\n", "syntax error on line 1"),
    ],
)
def test_odd_content_is_named_with_its_reason(project, content, says):
    (project / "odd.py").write_bytes(content)
    assert says in skipped(project)["odd.py"]


def test_marks_and_old_line_ends_are_read(project):
    (project / "mark.py").write_bytes(
        b"\xef\xbb\xbfx = {}\r\ndef f(user_id):\r\n    x[user_id]=1\r\n"
    )
    report = Scan([project]).report()
    assert [(f.symbol, f.line) for f in report.findings] == [("mark.x", 3)]


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are text there")
def test_a_name_that_is_no_text_can_be_reported(project, capsys):
    name = os.fsencode(project) + b"/odd\xff.py"
    with open(name, "wb") as file:  # noqa: PTH123 -- Path has no names in bytes
        file.write(b"x = {}\ndef f(user_id):\n    x[user_id] = 1\n")
    for form in ("text", "json", "sarif", "github"):
        assert main(["scan", ".", "--format", form, "--fail-on", "medium"]) == 1
        assert "odd\\xff.py" in capsys.readouterr().out.replace("\\\\", "\\").replace("%5C", "\\")


def test_warnings_of_the_code_that_is_read_are_not_ours(project, recwarn, capsys):
    (project / "escape.py").write_text("x = '\\d'\ny = x is 1\n")
    assert main(["scan", "."]) == 0
    assert not recwarn.list
    assert capsys.readouterr().err == ""


def test_a_file_that_cannot_be_opened_is_named(project, monkeypatch):
    def refuse(path, *how, **more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("floodline.scan._sources.content.open", refuse, raising=False)
    report = Scan([project]).report()
    assert [(s.path, s.why) for s in report.skipped] == [("app.py", "Permission denied")]


def test_every_format_tells_what_was_skipped(project, capsys):
    (project / "broken.py").write_text("def (:\n")
    for form in ("text", "json", "github"):
        assert main(["scan", ".", "--format", form]) == 3
        assert "syntax error on line 1" in capsys.readouterr().out
    assert main(["scan", ".", "--format", "sarif"]) == 3
    run = json.loads(capsys.readouterr().out)["runs"][0]
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["level"] == "error"
    assert told["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "broken.py"
