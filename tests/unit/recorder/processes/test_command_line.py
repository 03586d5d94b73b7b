"""The command line and the environment that a program is started with."""

from __future__ import annotations

import os
import sys

import pytest

from floodline.errors import ConfigError
from floodline.recorder._probe_site import SITE
from floodline.recorder._processes.command_line import (
    find_interpreter,
    program_words,
    watched_environment,
)


def test_the_site_comes_first_on_the_path_once():
    env = watched_environment("h:1:t", {"PYTHONPATH": f"/a{os.pathsep}{SITE}", "X": "y"})
    assert env["PYTHONPATH"].split(os.pathsep) == [SITE, "/a"]
    assert (env["FLOODLINE_PROBE"], env["X"]) == ("h:1:t", "y")
    assert watched_environment("h:1:t", {})["PYTHONPATH"] == SITE


def test_a_program_is_a_file_or_a_module(tmp_path):
    file = tmp_path / "app.py"
    file.write_text("")
    assert program_words("py", [str(file), "-x"], module=False) == ["py", str(file), "-x"]
    assert program_words("py", ["uvicorn", "a:b"], module=True) == ["py", "-m", "uvicorn", "a:b"]
    with pytest.raises(ConfigError, match="give a Python file, -m"):
        program_words("py", ["missing.py"], module=False)


def test_a_program_may_be_a_command_that_was_installed_beside_the_interpreter(tmp_path):
    for name, head in {"serve": "#!/venv/bin/python\n", "other": "#!/bin/sh\nls\n"}.items():
        (tmp_path / name).write_text(head)
        (tmp_path / name).chmod(0o755)
    python = str(tmp_path / "python")
    words = program_words(python, ["serve", "app:app"], module=False)
    assert words == [python, str(tmp_path / "serve"), "app:app"]
    with pytest.raises(
        ConfigError, match="'other' is not a Python command; to run it anyway, give"
    ):
        program_words(python, ["other"], module=False)


def test_an_interpreter_may_be_given_as_in_any_shell(tmp_path):
    words = program_words("/other/python", [sys.executable, "-u", "a.py"], module=False)
    assert words == [sys.executable, "-u", "a.py"]
    with pytest.raises(ConfigError, match="no program or file 'python9' was found"):
        program_words("/other/python", ["python9", "a.py"], module=False)


def test_an_interpreter_that_is_not_on_the_path_is_said_to_be_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="no program or file 'python' was found"):
        program_words(sys.executable, ["python", "a.py"], module=False)


def test_a_program_that_is_not_python_runs_by_itself(tmp_path):
    """Such as the script that starts a container; Python would only find errors in it."""
    shell, binary, plain, python = (tmp_path / name for name in ("a.sh", "b", "c.py", "d"))
    shell.write_text("#!/bin/sh\nexec python app.py\n")
    binary.write_bytes(b"\x7fELF\0")
    python.write_text("#!/usr/bin/env python3\n")
    plain.write_text("print()\n")
    for file in (shell, binary, plain, python):
        assert program_words("py", [str(file), "x"], module=False) == ["py", str(file), "x"]
        file.chmod(0o755)
    for file in (shell, binary):
        assert program_words("py", [str(file), "x"], module=False) == [str(file), "x"]
    for file in (plain, python, tmp_path):
        assert program_words("py", [str(file), "x"], module=False) == ["py", str(file), "x"]


def test_an_interpreter_that_is_none_is_told():
    assert find_interpreter(sys.executable) == sys.executable
    with pytest.raises(ConfigError, match="was not found or cannot be run"):
        find_interpreter("/no/such/python")
