"""Comments that answer a finding: `floodline: ignore[FLD101] why`, `floodline: bounded[how]`."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable
from io import StringIO
from typing import NamedTuple

from floodline.scan._findings.finding import Finding
from floodline.scan._rules.catalogue import RULES

COMMENT = re.compile(r"#\s*floodline:\s*(ignore|bounded)\s*(?:\[([^\]]*)\])?\s*(.*)$")
# a bound is no answer where it is not a container that grows
UNBOUNDABLE = {
    "FLD301", "FLD303", "FLD403", "FLD404", "FLD405", "FLD406", "FLD407", "FLD505",
}  # fmt: skip
NOQA = re.compile(r"#\s*noqa:.*\bB019\b")


class Comment(NamedTuple):
    """One such comment, on its line."""

    path: str
    line: int
    verb: str
    codes: frozenset[str]
    reason: str


class Problem(NamedTuple):
    """A comment that is wrong, or that answers nothing."""

    path: str
    line: int
    says: str


def comments(path: str, text: str) -> list[Comment]:
    """Read the comments of a file; most files have none, which costs one search."""
    if "floodline:" not in text and "B019" not in text:
        return []
    found = []
    for number, line in _written(text):
        match = COMMENT.search(line)
        if match and match[1] == "ignore":
            codes = frozenset(c.strip() for c in (match[2] or "").split(",") if c.strip())
            found.append(Comment(path, number, "ignore", codes, match[3].strip()))
        elif match:
            found.append(Comment(path, number, "bounded", frozenset(), (match[2] or "").strip()))
        elif NOQA.search(line):
            found.append(Comment(path, number, "noqa", frozenset({"FLD301"}), "B019"))
    return found


def _written(text: str) -> Iterable[tuple[int, str]]:
    """Only real comments count, not strings that look like one."""
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def answered(
    findings: list[Finding],
    written: list[Comment],
    decided: dict[str, list[tuple[str, int]]],
    unasked: frozenset[str] = frozenset(),
) -> tuple[list[Finding], list[Problem]]:
    """Mark the findings that a comment answers, and report comments that are wrong or unused.

    `decided` maps a fingerprint to the lines at which a comment for it may stand: where it grows
    and where it is made. A comment for rules that did not run (`unasked`) is no problem.
    """
    by_place = {(comment.path, comment.line): comment for comment in written}
    used: set[Comment] = set()
    result = []
    for finding in findings:
        places = [(finding.path, finding.line), *decided.get(finding.fingerprint, ())]
        found = next((c for c in map(by_place.get, places) if c and _answers(c, finding)), None)
        if found:
            used.add(found)
            finding = finding._replace(status="suppressed")
        result.append(finding)
    asked = [c for c in written if not (c.reason and c.codes and c.codes <= unasked)]
    return result, list(_problems(asked, used))


def _answers(comment: Comment, finding: Finding) -> bool:
    if not comment.reason:
        return False
    if comment.verb == "bounded":
        return finding.rule not in UNBOUNDABLE
    return finding.rule in comment.codes


def _problems(written: Iterable[Comment], used: set[Comment]) -> Iterable[Problem]:
    for comment in written:
        if comment.verb == "noqa" or comment in used:
            continue
        unknown = sorted(comment.codes - RULES.keys())
        if comment.verb == "bounded" and not comment.reason:
            says = "say what bounds it: # floodline: bounded[by what]"
        elif comment.verb == "ignore" and not comment.codes:
            says = "name the rules: # floodline: ignore[FLD101] reason"
        elif unknown:
            says = f"there is no rule {unknown[0]}; `floodline explain` lists the rules"
        elif not comment.reason:
            says = "give a reason: # floodline: ignore[FLD101] reason"
        else:
            says = "this comment answers no finding; remove it"
        yield Problem(comment.path, comment.line, says)
