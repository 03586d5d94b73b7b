"""What type checkers say about the first lines that a user writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="the extra dev is not installed")

FIRST_LINES = """
from floodline import AsyncSessions, BoundedLog, BoundedMap, Sessions

class Words(dict[str, int]): ...

sessions = Sessions(dict)
with sessions.use("a") as state:
    state["x"] = 1
tasks = AsyncSessions(list)
cache = BoundedMap(10)
cache["a"] = 1
log = BoundedLog(10)
log.append(3)
typed: BoundedMap[str, int] = BoundedMap(10)
reveal_type(typed)
reveal_type(Sessions(Words))
reveal_type(Sessions())
"""


def test_the_first_lines_pass_mypy_strict_without_an_annotation(tmp_path: Path) -> None:
    program = tmp_path / "first.py"
    program.write_text(FIRST_LINES)
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for revealed in ("BoundedMap[str, int]", "Sessions[first.Words]", "Conversation]"):
        assert revealed in done.stdout
