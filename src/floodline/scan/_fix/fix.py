"""Fixes findings in their files: every change is parsed again before it is written."""

from __future__ import annotations

import ast
import contextlib
import difflib
import os
import re
import tempfile
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from floodline.scan._findings.finding import Finding, Status
from floodline.scan._fix.bounding import UNSAFE, import_edit, names_used
from floodline.scan._fix.edits import FIXES, Edit, Refused, Source

Fixes = dict[str, Callable[[Source, Finding], list[Edit]]]
UNREADABLE = (OSError, ValueError, LookupError, SyntaxError)
LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")  # lines as Python counts them


class Rewrite(NamedTuple):
    """One file as it is and as it should be."""

    path: str
    before: bytes
    after: bytes
    encoding: str
    fixed: tuple[Finding, ...]


class Left(NamedTuple):
    """A finding that could not be fixed, and why."""

    finding: Finding
    why: str


def rewrites(
    findings: Iterable[Finding], files: Iterable[str], *, unsafe: bool = False
) -> tuple[list[Rewrite], list[Left]]:
    """Return what can be rewritten safely, and which fixable findings are left alone.

    `files` are all files of the scan: a set that another file uses is left alone. With `unsafe`,
    containers are also given a bound, after which the program no longer keeps everything.
    """
    fixes = {**FIXES, **UNSAFE} if unsafe else FIXES
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.rule in fixes and finding.status is Status.NEW:
            by_path[finding.path].append(finding)
    shared = _named_elsewhere(by_path, files)
    done, left = [], []
    for path, wanted in by_path.items():
        rewrite, refused = _rewrite(path, [f for f in wanted if f not in shared], fixes)
        done += [rewrite] if rewrite else []
        left += refused
        left += [Left(f, "another file uses it too") for f in wanted if f in shared]
    return done, left


def created_with_bounds(findings: Iterable[Finding]) -> dict[Finding, str]:
    """Return for each container that could be given a bound the line that would create it."""
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.rule in UNSAFE:
            by_path[finding.path].append(finding)
    lines: dict[Finding, str] = {}
    for path, found in by_path.items():
        with contextlib.suppress(*UNREADABLE):
            _, _, source = _read(path)
            for finding in found:
                with contextlib.suppress(Refused):
                    edit = UNSAFE[finding.rule](source, finding)[0]
                    lines[finding] = f"{path}:{edit.first}  {edit.lines[0].strip()}"
    return lines


def _named_elsewhere(by_path: dict[str, list[Finding]], files: Iterable[str]) -> set[Finding]:
    """Return the findings whose set is named in another file, where it may be read."""
    wanted = [f for found in by_path.values() for f in found if f.rule != "FLD109"]
    found: set[Finding] = set()
    for path in files if wanted else ():
        try:
            text = Path(path).read_bytes()
        except OSError:
            continue
        for finding in wanted:
            name = finding.symbol.rpartition(".")[2].encode()
            if finding.path != path and re.search(rb"\b%s\b" % re.escape(name), text):
                found.add(finding)
    return found


def _read(path: str) -> tuple[bytes, str, Source]:
    data = Path(path).read_bytes()
    encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    text = data.decode(encoding)
    return data, encoding, Source(text, LINES.findall(text))


def _rewrite(path: str, findings: list[Finding], fixes: Fixes) -> tuple[Rewrite | None, list[Left]]:
    try:
        data, encoding, source = _read(path)
    except UNREADABLE as error:
        return None, [Left(f, f"the file can no longer be read: {error}") for f in findings]
    edits: list[Edit] = []
    fixed: tuple[Finding, ...] = ()
    left = []
    for finding in findings:
        try:
            wanted = fixes[finding.rule](source, finding)
        except Refused as refused:
            left.append(Left(finding, str(refused)))
            continue
        if any(new.first <= e.last and e.first <= new.last for new in wanted for e in edits):
            left.append(Left(finding, "it overlaps with another fix; run again"))
        else:
            edits += wanted
            fixed += (finding,)
    if not edits:
        return None, left
    bounds = any(finding.rule in UNSAFE for finding in fixed)
    needed = import_edit(source, names_used(edits)) if bounds else None
    after = _applied(source.lines, [*edits, *([needed] if needed else [])])
    if not _is_same_but(source.text, after, bounds=bounds):
        return None, [*left, *(Left(f, "the result would not be the same program") for f in fixed)]
    return Rewrite(path, data, after.encode(encoding), encoding, fixed), left


def _applied(lines: list[str], edits: list[Edit]) -> str:
    result = list(lines)
    for edit in sorted(edits, reverse=True):
        last = result[edit.last - 1]
        end = last[len(last.rstrip("\r\n")) :]
        newline = end or "\n"
        new = [f"{line}{newline}" for line in edit.lines]
        if not end and edit.first <= edit.last:
            new[-1] = new[-1].removesuffix(newline)
        result[edit.first - 1 : edit.last] = new
    return "".join(result)


def _is_same_but(before: str, after: str, *, bounds: bool) -> bool:
    """Return True if only the intended statements changed: every call is still there.

    Where containers get bounds, what created them is gone, but nothing else: not a statement.
    """
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError):
        return False
    if bounds:
        added = sum(isinstance(node, ast.ImportFrom) for node in ast.walk(new))
        added -= sum(isinstance(node, ast.ImportFrom) for node in ast.walk(old))
        return _statements(new) - added <= _statements(old) <= _statements(new)
    kept, now = _leaves(old), _leaves(new)
    return all(now.get(text, 0) >= count for text, count in kept.items())


def _statements(tree: ast.AST) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree))


def _leaves(tree: ast.AST) -> dict[str, int]:
    """Count the names, attributes and constants of a program."""
    found: dict[str, int] = defaultdict(int)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.Constant):
            found[ast.dump(node)] += 1
    return found


def diff(rewrite: Rewrite) -> Iterator[str]:
    """Yield the lines of a unified diff."""
    before, after = (
        LINES.findall(data.decode(rewrite.encoding)) for data in (rewrite.before, rewrite.after)
    )
    path = rewrite.path.lstrip("/")
    for line in difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"):
        yield line if line.endswith("\n") else f"{line}\n"


def write(rewrite: Rewrite) -> None:
    """Replace the file atomically, with its mode; a file that has changed is left alone."""
    path = Path(rewrite.path).resolve()
    if path.read_bytes() != rewrite.before:
        raise OSError("the file changed while it was scanned; run again")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(rewrite.after)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(path.stat().st_mode)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
