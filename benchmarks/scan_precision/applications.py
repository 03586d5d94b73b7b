"""Judges `floodline scan` on containers of applications that were drawn without it.

    python benchmarks/scan_precision/applications.py draw REPOSITORIES [--list second]
    python benchmarks/scan_precision/applications.py measure REPOSITORIES [--confidence medium]

REPOSITORIES has a git directory for each application of a list, as `owner+name`, at any
depth. `draw` prints containers that an enumerator of its own finds (an attribute or a global that
is created as a container and grows in a function that does not create it), drawn with a seed: so
many of those that no line of their file shrinks, and so many of the others. `applications.json`
has the applications and the labels of the first list, `applications_second.json` those of the
second and so on, given by reading the source and committed before the first scan. `measure` scans
each application and counts.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

LISTS = {
    "first": "applications.json",
    "second": "applications_second.json",
    "third": "applications_third.json",
    "fourth": "applications_fourth.json",
    "fifth": "applications_fifth.json",
    "sixth": "applications_sixth.json",
    "seventh": "applications_seventh.json",
    "eighth": "applications_eighth.json",
    "ninth": "applications_ninth.json",
    "tenth": "applications_tenth.json",
    "eleventh": "applications_eleventh.json",
    "twelfth": "applications_twelfth.json",
    "thirteenth": "applications_thirteenth.json",
    "fourteenth": "applications_fourteenth.json",
    "fifteenth": "applications_fifteenth.json",
    "sixteenth": "applications_sixteenth.json",
    "seventeenth": "applications_seventeenth.json",
    "eighteenth": "applications_eighteenth.json",
}
MAKERS = {"dict", "list", "set", "defaultdict", "OrderedDict", "deque", "Counter"}
DISPLAYS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
GROWS = {"append", "add", "update", "setdefault", "extend", "insert", "appendleft"}
SHRINKS = {"pop", "popitem", "popleft", "remove", "discard", "clear"}
MAKING = {"__init__", "__new__", "__post_init__"}
LEFT_OUT = {"tests", "test", "testing", "migrations", "alembic", "examples"}


class Site(dict[str, Any]):
    """One container: repository, commit, path, line, symbol, stratum."""


class Walk(ast.NodeVisitor):
    """Lists the containers of one file, and which of them grow and shrink in functions."""

    def __init__(self) -> None:
        self.made: dict[str, int] = {}
        self.grown: set[str] = set()
        self.shrunk: set[str] = set()
        self._class = self._function = ""
        self._locals: set[str] = set()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before, self._class = self._class, node.name
        self.generic_visit(node)
        self._class = before

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before, known = self._function, self._locals
        self._function = node.name
        shared = {n for g in ast.walk(node) if isinstance(g, ast.Global) for n in g.names}
        stored = (
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and type(n.ctx) is ast.Store
        )
        self._locals = (
            known
            | set(stored) - shared
            | {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        )
        self.generic_visit(node)
        self._function, self._locals = before, known

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]  # noqa: N815 -- ast's name

    def name(self, node: ast.expr) -> str:
        """Return the symbol of an attribute of the instance, or of a global."""
        base = node.value if isinstance(node, ast.Attribute) else None
        if isinstance(node, ast.Attribute) and isinstance(base, ast.Name) and self._class:
            own = base.id in ("self", "cls", self._class)
            return f"{self._class}.{node.attr}" if own else ""
        if isinstance(node, ast.Name) and node.id not in self._locals:
            return f"{self._class}.{node.id}" if self._class and not self._function else node.id
        return ""

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            self._bind(target, node)
        self.generic_visit(node)

    visit_AnnAssign = visit_Assign  # type: ignore[assignment]  # noqa: N815 -- ast's name

    def _bind(self, target: ast.expr, node: ast.Assign | ast.AnnAssign) -> None:
        if isinstance(target, ast.Subscript) and self._grows_here():
            where = self.shrunk if isinstance(target.slice, ast.Slice) else self.grown
            where.add(self.name(target.value))
        name = self.name(target)
        call = node.value.func if isinstance(node.value, ast.Call) else None
        last = getattr(call, "attr", getattr(call, "id", ""))
        if name and (isinstance(node.value, DISPLAYS) or last in MAKERS):
            self.made.setdefault(name, node.lineno)
        if name and self._grows_here():
            self.shrunk.add(name)

    def _grows_here(self) -> bool:
        return bool(self._function) and self._function not in MAKING

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if self._grows_here() and not isinstance(node.value, ast.Constant):
            self.grown.add(self.name(node.target))
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.shrunk.add(self.name(target.value))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            name = self.name(node.func.value)
            if node.func.attr in GROWS and self._grows_here():
                self.grown.add(name)
            if node.func.attr in SHRINKS:
                self.shrunk.add(name)
        self.generic_visit(node)


def git_of(root: Path, repository: str) -> Path:
    """Return the git directory of a repository."""
    heads = sorted((root / repository.replace("/", "+")).rglob("HEAD"))
    return next(head.parent for head in heads if (head.parent / "objects").is_dir())


def git(directory: Path, *arguments: str, given: bytes = b"") -> bytes:
    command = ["git", "--git-dir", str(directory), *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


def lay_out(directory: Path, commit: str, folder: Path) -> None:
    """Write the Python files of a commit, and what says that it is a project."""
    listed = git(directory, "ls-tree", "-rz", commit).decode().split("\0")
    rows = [row.split("\t") for row in listed if row]
    wanted = [(head.split()[2], path) for head, path in rows if is_wanted(path)]
    asked = "".join(f"{blob}\n" for blob, _ in wanted).encode()
    told = git(directory, "cat-file", "--batch", given=asked)
    at = 0
    for _, path in wanted:
        end = told.index(b"\n", at)
        head, at = told[at:end].split(), end + 1
        if head[-1] == b"missing":  # a mirror may lack large files
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(told[at : at + int(head[2])])
        at += int(head[2]) + 1


def is_wanted(path: str) -> bool:
    return path.endswith(".py") or path in ("pyproject.toml", "setup.cfg")


def sites(folder: Path) -> Iterator[Site]:
    """Yield every container below a folder that grows."""
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder)
        if LEFT_OUT & set(place.parts) or place.name.startswith(("test_", "conftest")):
            continue
        walk = Walk()
        try:
            walk.visit(ast.parse(path.read_bytes()))
        except (SyntaxError, ValueError):
            continue
        for name, line in walk.made.items():
            if name in walk.grown:
                kind = "shrinks too" if name in walk.shrunk else "grows only"
                yield Site(path=place.as_posix(), line=line, symbol=name, stratum=kind)


def draw(root: Path, document: dict[str, Any]) -> None:
    """Print the drawn sites, one JSON object per line."""
    for part in document["drawn"]:
        chance = random.Random(part["seed"])
        for repository in part["applications"]:
            for site in drawn_from(root, repository, part["per_repository"], chance):
                print(json.dumps(site))


def drawn_from(
    root: Path, repository: str, per_stratum: dict[str, int], chance: random.Random
) -> Iterator[Site]:
    """Yield the drawn sites of one application."""
    directory = git_of(root, repository)
    commit = git(directory, "rev-parse", "HEAD").decode().strip()
    with tempfile.TemporaryDirectory() as name:
        lay_out(directory, commit, Path(name))
        found: dict[str, list[Site]] = defaultdict(list)
        for site in sites(Path(name)):
            found[site["stratum"]].append(site)
    for kind, number in per_stratum.items():
        drawn = chance.sample(found[kind], min(number, len(found[kind])))
        for site in sorted(drawn, key=lambda s: (s["path"], s["line"])):
            yield Site(repository=repository, commit=commit, **site)


def hit(site: dict[str, Any], findings: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the finding about a site: of its file and name, or within three lines."""
    last = site["symbol"].rpartition(".")[2]
    for finding in findings:
        if finding["path"] != site["path"]:
            continue
        if finding["symbol"].rpartition(".")[2] == last or abs(finding["line"] - site["line"]) <= 3:
            return finding
    return None


def measure(root: Path, document: dict[str, Any], confidence: str) -> None:
    """Scan each application once, and count what is reported of its labelled sites."""
    count: Counter[tuple[str, bool]] = Counter()
    by_repository: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for site in document["sites"]:
        by_repository[site["repository"], site["commit"]].append(site)
    for (repository, commit), labelled in by_repository.items():
        with tempfile.TemporaryDirectory() as name:
            lay_out(git_of(root, repository), commit, Path(name))
            command = [
                sys.executable,
                "-m",
                "floodline",
                "scan",
                ".",
                "--format",
                "json",
                "--confidence",
                confidence,
            ]
            out = subprocess.run(command, capture_output=True, text=True, cwd=name).stdout
        findings = json.loads(out)["findings"]
        for site in labelled:
            found = hit(site, findings)
            count[site["label"], found is not None] += 1
            if (site["label"], found is not None) in (("leak", False), ("safe", True)):
                told = f"{found['rule']} rank {found['rank']}" if found else "missed"
                where = f"{repository} {site['path']}:{site['line']} {site['symbol']}"
                print(f"{where}: {site['label']}, {told}")
        print(f"{repository}: {len(findings)} findings", flush=True)
    for label in ("leak", "grey", "safe"):
        total = count[label, True] + count[label, False]
        print(f"{label}: {count[label, True]} of {total} reported at {confidence}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["draw", "measure"])
    parser.add_argument("repositories", type=Path)
    parser.add_argument("--list", choices=list(LISTS), default="first")
    parser.add_argument("--confidence", default="medium")
    asked = parser.parse_args()
    document = json.loads((HERE / LISTS[asked.list]).read_text(encoding="utf-8"))
    if asked.what == "draw":
        draw(asked.repositories, document)
    else:
        measure(asked.repositories, document, asked.confidence)


if __name__ == "__main__":
    main()
