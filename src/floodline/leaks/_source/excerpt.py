"""Extracts the parts of a source file that mention a word, to avoid parsing a large file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

LONG_TABLE = 200  # lines: parsed, a table of constants takes megabytes and says nothing more
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_GOES_ON = (*")]}#", "else:", "elif ", "except", "finally:", "case ")


@lru_cache(maxsize=64)
def tree_about(file: str, word: str) -> ast.Module | None:
    """Return the parts of a file that mention a word, parsed; None if that fails.

    Lines keep their numbers. Statements and methods that do not mention the word are left out.
    """
    try:
        source = Path(file).read_bytes()
        text = source.decode("utf-8", "replace")
        if word not in text:
            return ast.Module([], [])
        try:
            return ast.parse(_focused(text, word))
        except SyntaxError:  # text at the left margin of a string looked like a statement
            return ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return None


def forget_trees() -> None:
    """Free the parsed parts: they are many times as large as their source."""
    tree_about.cache_clear()


def _focused(text: str, word: str) -> str:
    lines = text.split("\n")
    kept = [""] * len(lines)
    for begin, end in _blocks(lines, 0, len(lines), 0):
        if not any(word in line for line in lines[begin:end]):
            continue
        head = next((at for at in range(begin, end) if lines[at].startswith("class ")), None)
        if head is None:
            emptied = _emptied(lines[begin]) if end - begin > LONG_TABLE else ""
            kept[begin:end] = [emptied] + [""] * (end - begin - 1) if emptied else lines[begin:end]
        else:
            _keep_class(lines, kept, head, end, word)
    return "\n".join(kept)


def _emptied(line: str) -> str:
    """Return the first line of a table, as `NAME = {`, closed at once; nothing if it is not one."""
    head = line.rstrip().rstrip("".join(_CLOSING))
    opened = line.rstrip()[len(head) :]
    balanced = all(head.count(one) == head.count(other) for one, other in _CLOSING.items())
    if not opened or not balanced or not head.rstrip().endswith("="):
        return ""
    return head + opened + "".join(_CLOSING[one] for one in reversed(opened))


def _keep_class(lines: list[str], kept: list[str], head: int, end: int, word: str) -> None:
    body = next((at for at in range(head + 1, end) if lines[at].lstrip()[:1] not in ("", "#")), end)
    indent = len(lines[body]) - len(lines[body].lstrip()) if body < end else 0
    if not indent or not lines[head].rstrip().endswith(":"):  # a header over several lines
        kept[head:end] = lines[head:end]
        return
    kept[head], found = lines[head].rstrip() + " pass", False
    for begin, stop in _blocks(lines, body, end, indent):
        if any(word in line for line in lines[begin:stop]):
            kept[begin:stop] = lines[begin:stop]
            found = True
    if found:
        kept[head] = lines[head]


def _blocks(lines: list[str], begin: int, end: int, indent: int) -> Iterator[tuple[int, int]]:
    """Return the statements that start at an indent, each with its decorators."""
    start, decorated, quoted = begin, False, False
    for at in range(begin, end):
        line, inside = lines[at], quoted
        if (line.count('"""') + line.count("'''")) % 2:
            quoted = not quoted
        rest = line[indent:]
        starts = not line[:indent].strip() and rest and not rest[0].isspace()
        if inside or not starts or rest.startswith(_GOES_ON):
            continue
        if at > start and not decorated:
            yield start, at
            start = at
        decorated = rest[0] == "@"
    yield start, end
