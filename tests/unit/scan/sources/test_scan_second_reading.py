"""Files that this Python cannot parse are read by a newer one, or as far as possible."""

from __future__ import annotations

import json
import sys

import pytest

from floodline.cli import main
from floodline.scan import Scan
from floodline.scan._sources import second_reading, workers
from floodline.scan._sources.cache import Cache
from floodline.scan._sources.second_reading import newer_pythons

NEWER = """
sessions = {}

@app.post("/")
async def handle(request):
    try:
        sessions[request.id] = request
    except A, B:
        pass
"""
BROKEN = NEWER.replace("except A, B", "except A") + "\n\ndef other(:\n    pass\n"
# a worker whose Python reads what this one does not
YOUNGER = (
    """
import ast, sys
parse = ast.parse
ast.parse = lambda text, *more, **options: parse(text.replace("A, B", "A"), *more, **options)
"""
    + workers.START
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(second_reading, "newer_pythons", lambda: iter([]))
    (tmp_path / "app.py").write_text(NEWER)
    return tmp_path


def told(**options):
    report = Scan(["."], **options).report()
    assert [finding.symbol for finding in report.findings] == ["app.sessions"]
    return [(item.path, item.how) for item in report.otherwise]


REWRITTEN = [("app.py", "it has newer syntax, which was rewritten to read it")]
READ = [("app.py", "it has newer syntax, and Python 3.99 read it")]


def test_newer_syntax_is_rewritten_where_there_is_no_newer_python(project, capsys):
    assert told() == REWRITTEN
    assert main(["scan", ".", "--no-cache"]) == 1
    assert "1 file with newer syntax rewritten to be read" in capsys.readouterr().out
    main(["scan", ".", "--no-cache", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert [(f["path"], f["how"]) for f in document["read_otherwise"]] == REWRITTEN
    assert document["skipped"] == []


def test_a_newer_python_reads_newer_syntax(project, monkeypatch, capsys):
    found = [("/nowhere/python3.100", "3.100"), (sys.executable, "3.99")]
    monkeypatch.setattr(second_reading, "newer_pythons", lambda: iter(found))
    monkeypatch.setattr(workers, "START", YOUNGER)
    assert told() == READ
    assert main(["scan", ".", "--no-cache"]) == 1
    assert "1 file with newer syntax read by Python 3.99" in capsys.readouterr().out
    with Cache(project / "cache", "1", day=1) as cache:
        assert told(cache=cache) == READ
    monkeypatch.setattr(second_reading, "read_by_newer_python", None)  # it is cached
    (project / "more.py").touch()
    with Cache(project / "cache", "1", day=1) as cache:
        assert told(cache=cache) == READ
    with Cache(project / "cache", "1", day=1) as cache:
        assert told(cache=cache) == READ


def test_what_no_newer_python_reads_is_read_in_part(project, monkeypatch, capsys):
    (project / "app.py").write_text(BROKEN)
    monkeypatch.setattr(second_reading, "newer_pythons", lambda: iter([(sys.executable, "3.99")]))
    ((path, how),) = told()
    assert path == "app.py"
    assert how.startswith("syntax error on line 12: ")
    assert how.endswith("; 2 lines were left out")
    assert main(["scan", ".", "--no-cache", "--fail-on", "high", "--select", "FLD2"]) == 3
    shown = capsys.readouterr().out
    assert f"app.py: partly read, {how}\n" in shown
    assert "0 findings in 1 file, 1 file partly read" in shown
    for form in ("sarif", "github"):
        main(["scan", ".", "--no-cache", "--format", form])
        assert "2 lines were left out" in capsys.readouterr().out


def test_what_is_mostly_broken_is_skipped(project):
    (project / "app.py").write_text("def other(:\n    pass\n")
    report = Scan(["."]).report()
    assert [item.path for item in report.skipped] == ["app.py"]
    assert not report.otherwise


def test_newer_pythons_are_looked_for_on_the_path(tmp_path, monkeypatch):
    for minor in (8, sys.version_info.minor, sys.version_info.minor + 1):
        (tmp_path / f"python3.{minor}").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    later = f"3.{sys.version_info.minor + 1}"
    assert list(newer_pythons()) == [(str(tmp_path / f"python{later}"), later)]
