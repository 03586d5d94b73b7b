"""Comments that answer a finding: `floodline: ignore[FLD101] why`, `floodline: bounded[how]`."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable
from io import StringIO
from typing import NamedTuple

COMMENT = re.compile(r"#\s*floodline:\s*(ignore|bounded)\s*(?:\[([^\]]*)\])?\s*(.*)$")
NOQA = re.compile(r"#\s*noqa:.*\bB019\b")


class Comment(NamedTuple):
    """One such comment, on its line."""

    path: str
    line: int
    verb: str
    codes: frozenset[str]
    reason: str


def comments(path: str, text: str) -> list[Comment]:
    """Read the comments of a file; most files have none, which takes a single search."""
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
    """Yield real comments, not strings that look like one."""
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
