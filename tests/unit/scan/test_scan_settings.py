"""`[tool.floodline.scan]`, the bar, and what is left out."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from floodline import settings
from floodline.cli import main
from floodline.cli._scan.scanning import Bar

LEAKY = "sessions = {}\n\n\ndef handle(session_id, state):\n    sessions[session_id] = state\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(LEAKY)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "show.py").write_text(LEAKY)
    return tmp_path


def found(capsys, *arguments: str) -> list[str]:
    main(["scan", ".", "--format", "json", *arguments])
    return [f"{f['rule']} {f['path']}" for f in json.loads(capsys.readouterr().out)["findings"]]


def say(folder, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.floodline.scan]\n{text}\n")


def test_a_rule_can_be_left_out_for_some_files(project, capsys):
    say(project, 'per-file-ignores = {"demo/*" = ["FLD1"]}')
    assert found(capsys) == ["FLD101 app.py"]


def test_files_can_be_excluded_by_the_table_and_by_the_option(project, capsys):
    assert found(capsys) == ["FLD101 app.py", "FLD101 demo/show.py"]
    assert found(capsys, "--exclude", "app.py") == ["FLD101 demo/show.py"]
    say(project, 'exclude = ["demo"]')
    assert found(capsys) == ["FLD101 app.py"]
    assert found(capsys, "--exclude", "app.py") == []


def test_rules_can_be_chosen_in_the_table_and_an_option_wins(project, capsys):
    say(project, 'select = ["fld2"]')
    assert found(capsys) == []
    assert len(found(capsys, "--select", "FLD101")) == 2
    say(project, 'ignore = ["FLD101"]')
    assert found(capsys) == []


def test_levels_are_taken_from_the_table(project):
    (project / "app.py").write_text("")
    (project / "demo" / "show.py").write_text("")
    (project / "low.py").write_text("def f(user_id, x={}):\n    x[user_id] = 1\n")
    say(project, 'fail-on = "low"\nconfidence = "low"\nlibrary = true\npreview = true')
    assert main(["scan", "."]) in (0, 1)


def test_the_baseline_and_the_cache_are_found_beside_the_file(project, monkeypatch):
    say(project, 'baseline = "known.json"\ncache-dir = ".caches"')
    monkeypatch.chdir(project / "demo")
    assert main(["scan", ".", "--write-baseline"]) == 0
    assert (project / "known.json").exists()
    assert (project / ".caches" / "scan.db").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('selct = ["FLD1"]', "did you mean select?"),
        ("zzz = 1", "choose one of select, ignore"),
        ('select = "FLD1"', "must be a list of strings"),
        ("exclude = [1]", "must be a list of strings"),
        ('per-file-ignores = ["FLD1"]', "must be a table"),
        ('per-file-ignores = {"a" = 1}', "must be a list of strings"),
        ('per-file-ignores = {"a" = ["FLD9"]}', "there is no rule 'FLD9'"),
        ('confidence = "huge"', "must be one of high, medium, low"),
        ("library = 1", "must be true or false"),
        ("baseline = 1", "must be a path"),
    ],
)
def test_a_wrong_setting_is_one_line_and_status_two(project, capsys, text, says):
    say(project, text)
    assert main(["scan", "."]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert "Traceback" not in told


def test_the_table_is_no_business_of_sessions(project):
    say(project, 'select = ["FLD1"]')
    assert settings.load().values == {}


def test_something_else_than_a_table_is_refused(project, capsys):
    (project / "pyproject.toml").write_text("[tool.floodline]\nscan = 3\n")
    assert main(["scan", "."]) == 2
    assert "must be a table: [tool.floodline.scan]" in capsys.readouterr().err


def test_a_large_tree_gets_a_bar_that_goes_away():
    shown = io.StringIO()
    bar = Bar(Console(file=shown, force_terminal=True, width=80))
    for done in range(1, 301):
        bar(done, 300)
    assert "reading files" in shown.getvalue()
    bar.stop()
    assert shown.getvalue().endswith(("\x1b[2K", "\x1b[?25h", "\r"))


def test_a_small_tree_gets_no_bar():
    shown = io.StringIO()
    bar = Bar(Console(file=shown, force_terminal=True, width=80))
    bar(1, 2)
    bar(2, 2)
    assert shown.getvalue() == ""
