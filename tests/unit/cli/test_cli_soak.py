from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from rich.progress import Progress

import floodline
from floodline.cli import _soak as command
from floodline.cli import main
from floodline.soak import _child
from soak_programs import (
    CALM,
    FRAGMENTED,
    MALLOC,
    MAPPED,
    TASKS,
    THREAD_LOCAL,
    line_of,
    soak,
)

LEAK = "ROWS = []\n\ndef round(i):\n    ROWS.append([i])\n"


def test_a_leak_is_named_in_words_and_in_the_record(tmp_path):
    found = soak(tmp_path, LEAK, "--rounds", "40", "--html", str(tmp_path / "page.html"))
    assert (found["exit"], found["verdict"]) == (1, "growing")
    first = found["suspects"][0]
    assert (first["owner"], first["line"], first["line_source"]) == ("program.ROWS", 4, "trace")
    assert Path(first["file"]).name == "program.py"
    assert found["text"].startswith("GROWING  +1.0 item/round")
    assert "program.ROWS" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_program_that_keeps_its_bounds_is_bounded(tmp_path):
    found = soak(tmp_path, CALM, "--rounds", "70")
    assert (found["exit"], found["verdict"], found["suspects"]) == (0, "bounded", [])


def test_a_thread_local_of_a_pool_is_named(tmp_path):
    found = soak(tmp_path, THREAD_LOCAL, "--rounds", "40")
    first = found["suspects"][0]
    assert first["owner"] == "program.TRACE.spans"
    assert first["line"] == line_of(THREAD_LOCAL, "TRACE.spans.append")


def test_the_lists_of_asyncio_echo_the_set_of_the_program(tmp_path):
    found = soak(tmp_path, TASKS, "--rounds", "40")
    assert [s["owner"] for s in found["suspects"]] == ["program.KEPT"]
    assert found["suspects"][0]["holds"].startswith("Task")


needs_glibc = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="asks glibc for its figures"
)


@needs_glibc
@pytest.mark.parametrize(
    ("source", "where"),
    [(MALLOC, "native"), (MAPPED, "native"), (FRAGMENTED, "fragmentation")],
    ids=["malloc", "mmap", "fragments"],
)
def test_memory_that_python_does_not_hold_is_never_bounded(tmp_path, source, where):
    found = soak(tmp_path, source, "--rounds", "70")
    assert found["verdict"] != "bounded"
    assert found["where"] == where
    assert found["needed"]["why"]


def test_an_interpreter_without_floodline_is_soaked_and_stays_as_it_was(tmp_path):
    home = tmp_path / "env"
    venv.create(home, symlinks=True)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    bare = subprocess.run([python, "-c", "import floodline"], capture_output=True, check=False)
    given = "PYTHONPATH" in os.environ  # then the tests themselves have floodline from there
    assert bare.returncode != 0 or given
    before = sorted(str(p) for p in home.rglob("*"))
    # a module of the program may have the name of one of ours
    (tmp_path / "errors.py").write_text("HERE = 1\n", encoding="utf-8")
    source = "import errors, sys\nassert errors.HERE\n" + LEAK
    source += "def teardown():\n    heavy = {'click', 'msgspec', 'psutil', 'rich'}\n"
    source += "    assert not heavy & set(sys.modules)\n"
    found = soak(tmp_path, source, "--rounds", "40", "--python", str(python))
    assert (found["exit"], found["said"]) == (1, "")
    assert sorted(str(p) for p in home.rglob("*")) == before


@pytest.fixture
def direct(tmp_path, monkeypatch, capfd):
    """Run the command on this thread, with a child that is not traced."""
    for name in [name for name in os.environ if name.startswith("COVERAGE")]:
        monkeypatch.delenv(name)

    def call(source, *options):
        file = tmp_path / "scene.py"
        if source is not None:
            file.write_text(source, encoding="utf-8")
        status = main(["soak", str(file), *options])
        return status, capfd.readouterr()

    return call


def test_exit_statuses_tell_the_verdict(direct, tmp_path):
    out = tmp_path / "o.json"
    status, said = direct(LEAK, "--rounds", "40", "--json", str(out), "--html", str(tmp_path / "p"))
    assert (status, said.out[:7]) == (1, "GROWING")
    assert json.loads(out.read_text(encoding="utf-8"))["verdict"] == "growing"
    assert direct("def round(i): 1 / 0\n", "--rounds", "5")[0] == 4
    assert direct("import no_such_thing\n", "--rounds", "5")[0] == 4
    assert direct("x = 1\n", "--rounds", "5")[0] == 2
    status, said = direct("import os\ndef round(i): os._exit(9)\n", "--rounds", "5")
    assert (status, "status 9" in said.err) == (4, True)


def test_usage_errors_say_what_to_do(direct):
    for options, part in [
        (("--warmup", "5", "--rounds", "5"), "below --rounds"),
        (("--python", "/no/such/python"), "cannot be run"),
        (("--json", "no/such/folder/answer.json"), "its folder does not exist"),
        (("--html", "no/such/folder/page.html"), "its folder does not exist"),
    ]:
        status, said = direct(LEAK, *options)
        assert (status, part in said.err) == (2, True)
    status, said = main(["soak", "/no/such/file.py"]), None
    assert status == 2


def test_a_reader_that_left_does_not_change_the_exit_status(direct, monkeypatch):
    record = {"text": "GROWING", "answer": {}, "exit": 3}
    monkeypatch.setattr(command, "_run_child", lambda *_: (3, record))
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        status, _ = direct(LEAK, "--json", f"/dev/fd/{writer}")
        monkeypatch.undo()
    assert status == 3


def test_an_interrupted_scenario_is_not_a_verdict(direct, monkeypatch):
    monkeypatch.setattr(command, "_run_child", lambda *_: (_child.INTERRUPTED, None))
    status, said = direct(LEAK)
    assert (status, said.err) == (130, "interrupted\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="progress needs a FIFO")
def test_progress_is_shown_in_a_terminal(direct, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    status, _ = direct(LEAK, "--rounds", "12")
    assert status in (1, 3)


def test_the_child_writes_the_record(tmp_path, monkeypatch, capsys):
    from soak_programs import narrow

    narrow(monkeypatch)
    monkeypatch.setattr(sys, "path", list(sys.path))
    scene = tmp_path / "child_scene.py"
    scene.write_text("def round(i): pass\n", encoding="utf-8")
    request = {"scenario": str(scene), "rounds": 3, "out": str(tmp_path / "o")}
    request["progress"] = str(tmp_path / "progress")
    assert _child.main(request) == 3
    assert (tmp_path / "progress").read_text(encoding="utf-8").startswith("0 3 ")
    assert json.loads((tmp_path / "o").read_text(encoding="utf-8"))["exit"] == 3
    sys.modules.pop("child_scene")
    del request["progress"]
    for source, why in [
        ("1 / 0\n", "the scenario could not be imported"),
        ("raise SystemExit(2)\n", "the scenario could not be imported"),
        ("def round(i): raise SystemExit(2)\n", "round(0) raised SystemExit"),
    ]:
        scene.write_text(source, encoding="utf-8")
        assert _child.main(request) == 4
        record = json.loads((tmp_path / "o").read_text(encoding="utf-8"))
        assert record["text"].startswith(f"FAILED  {why}\n")
        sys.modules.pop("child_scene", None)
    assert _child.main({**request, "scenario": str(tmp_path / "none.py")}) == 2
    assert "is not a file" in capsys.readouterr().err


def test_the_child_takes_the_package_from_its_own_place(monkeypatch):
    monkeypatch.setitem(sys.modules, "floodline", floodline)
    _child._take_package()
    taken = sys.modules["floodline"]
    assert taken.__version__ == floodline.__version__
    assert command.command.name == "soak"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="progress needs a FIFO")
def test_the_bar_follows_what_the_child_reports(monkeypatch):
    shown = []
    monkeypatch.setattr(Progress, "update", lambda _bar, _task, **to: shown.append(to))
    reader, writer = os.pipe()
    os.write(writer, b"0 10 warm-up\n5 10 measuring\n\n")
    command._show(reader)
    os.write(writer, b"1 10 measuring\n")
    os.close(writer)
    command._show(reader)
    os.close(reader)
    told = [(to["completed"], to["total"], to["description"]) for to in shown]
    assert told == [
        (0, 10, "soak: warm-up"),
        (5, 10, "soak: measuring"),
        (1, 10, "soak: measuring"),
    ]
