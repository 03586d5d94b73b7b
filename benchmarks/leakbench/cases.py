"""Cases of real leaks, the environments they run in, and who named the culprit."""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEAR = 3  # lines


@dataclass(frozen=True)
class Case:
    """One leak: a folder with `case.json` (package, versions, culprit) and `scenario.py`."""

    folder: Path
    facts: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.facts["id"])

    @property
    def scenario(self) -> Path:
        return (self.folder / "scenario.py").resolve()

    @property
    def fixed_is_clean(self) -> bool:
        return bool(self.facts.get("fixed_is_clean", True))

    def requirements(self, role: str, *, exact: bool) -> list[str]:
        """Return what to install; `exact` also pins what the package itself needs."""
        pinned = self.facts.get("resolved_requirements", {}).get(role)
        if exact and pinned:
            return list(pinned)
        wanted = f"{self.facts['package']}=={self.facts[role]}"
        return [wanted, *self.facts.get("extra_requirements", [])]


def read_cases(folder: Path, only: list[str]) -> list[Case]:
    found = sorted(folder.glob("*/case.json"))
    cases = [Case(path.parent, json.loads(path.read_text(encoding="utf-8"))) for path in found]
    return [case for case in cases if not only or case.name in only]


def version_of(python: str) -> str:
    told = "import sys; print('%d.%d' % sys.version_info[:2])"
    return _run([python, "-c", told]).strip()


def environment(case: Case, role: str, python: str, scratch: Path) -> Path:
    """Return the interpreter of an environment with that version, made if it is not there."""
    version = version_of(python)
    exact = case.facts.get("python") == version
    wanted = case.requirements(role, exact=exact)
    pins = case.facts.get("constraints") or []
    key = hashlib.sha256(json.dumps([version, wanted, pins]).encode()).hexdigest()[:10]
    home = scratch / f"{case.name}-{role}-{key}"
    exe = home / "bin" / "python"
    if not (home / ".ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        _run([python, "-m", "venv", str(home)])
        held = scratch / f"{case.name}-pins.txt"
        held.write_text("\n".join(pins) + "\n", encoding="utf-8")
        _install(str(exe), *wanted, "--constraint", str(held))
        (home / ".ready").touch()
    return exe


def peers(python: str, scratch: Path) -> Path:
    """Return a folder with the other tools, which comes last on the path of a case."""
    folder = scratch / f"peers-{version_of(python)}"
    if not (folder / ".ready").exists():
        _install(python, "objgraph", "guppy3", "--target", str(folder))
        (folder / ".ready").touch()
    return folder


def _install(python: str, *what: str) -> None:
    _run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *what])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:5])}: {done.stderr.strip()[-300:]}")
    return done.stdout


@dataclass(frozen=True)
class Hit:
    """What one of the first three answers of a tool has right."""

    owner: bool = False
    file: bool = False
    line: bool = False

    @property
    def score(self) -> int:
        return self.owner + self.file + self.line


def judge(case: Case, answers: list[dict[str, Any]], exe: Path) -> Hit:
    """Return the best of the first three; all that counts must be on one of them."""
    culprit = case.facts["culprit"]
    parts = [part for part in culprit["owner"].replace(".<locals>", "").split(".") if part]
    line = culprit.get("line") or 0
    first, last = _function_around(exe, culprit["file"], line)
    hits = [Hit()]
    for one in answers[:3]:
        said = str(one.get("said", "")).replace(".<locals>", "")
        file = str(one.get("file") or "").endswith(culprit["file"])
        at = one.get("line") or -99
        owner = ".".join(parts[-2:]) in said or (parts[-1] in said and (file or parts[-2] in said))
        hits.append(Hit(owner, file, file and (abs(at - line) <= NEAR or first <= at <= last)))
    return max(hits, key=lambda hit: hit.score)


def _function_around(exe: Path, file: str, line: int) -> tuple[int, int]:
    for path in exe.parents[1].glob(f"lib/python*/site-packages/{file}"):
        tree = ast.parse(path.read_bytes())
        spans = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        around = [span for span in spans if span[0] <= line <= span[1]]
        if around:
            return min(around, key=lambda span: span[1] - span[0])
    return line, line
