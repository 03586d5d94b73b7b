"""The definitions for pre-commit and GitHub Actions do what they say, as far as offline shows."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from floodline.cli import main

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[3]
LEAK = "CACHE = {}\n\n\ndef handle(request):\n    CACHE[request] = 1\n"


def test_the_pre_commit_hook_scans_the_whole_tree(tmp_path, monkeypatch, capsys):
    """Changed files alone would hide who calls what."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)
    (tmp_path / "app.py").write_text(LEAK, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    program, *words = [*shlex.split(hook["entry"]), *hook["args"], "--no-cache"]
    assert program == "floodline"
    main(words)
    assert "app.CACHE" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="the action runs in bash")
def test_the_action_annotates_and_fails(tmp_path):
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: each["default"] for name, each in action["inputs"].items()}
    inputs |= {"fail-on": "low", "confidence": "low", "paths": "app.py other.py"}
    *_, step = action["runs"]["steps"]
    given = {}
    for name, value in step["env"].items():
        asked = value.removeprefix("${{ inputs.").removesuffix(" }}")
        given[name] = inputs[asked]
    for name in ("app.py", "other.py"):
        (tmp_path / name).write_text(LEAK, encoding="utf-8")
    command = tmp_path / "floodline"
    command.write_text(
        f'#!/bin/sh\nexec {sys.executable} -m floodline "$@" --no-cache\n', encoding="utf-8"
    )
    command.chmod(0o755)
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={**os.environ, **given, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert [line.partition(" ")[0] for line in done.stdout.splitlines()] == ["::error"] * 2
