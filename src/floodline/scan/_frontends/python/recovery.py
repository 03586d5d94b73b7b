"""Leaves out the statements of a file that cannot be parsed, so that the others can be read."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

MANY_REPAIRS = 8  # more errors mean another language, such as Python 2
CLAUSE = re.compile(r"(?:else|elif|except|finally|case)\b|[)\]}]")


class Recovered(NamedTuple):
    """A source without what could not be parsed."""

    text: str
    error: SyntaxError  # the first one
    lines: int  # left out


def recovered(text: str) -> Recovered:
    """Return the source with broken statements replaced by `pass`, on the same lines.

    If that does not help, or more than half would be left out, the first error is raised.
    """
    lines = text.split("\n")
    written = sum(bool(line.strip()) for line in lines)
    first = error = _error(text)
    left_out = 0
    for _ in range(MANY_REPAIRS):
        if error is None or first is None:
            break
        if "triple-quoted" in error.msg:
            raise first  # no telling what is text and what is code
        repaired = _repaired(lines, error)
        if repaired is None:
            raise first
        lines, count, error = repaired
        left_out += count
    if first is None:
        raise ValueError("there is nothing to recover")
    if error is not None or left_out * 2 > written:
        raise first
    return Recovered("\n".join(lines), first, left_out)


def _error(text: str) -> SyntaxError | None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error
    return None


def _repaired(
    lines: list[str], error: SyntaxError
) -> tuple[list[str], int, SyntaxError | None] | None:
    """Replace the smallest block around an error that makes a difference."""
    for start, end in _blocks(lines, min(error.lineno or 1, len(lines)) - 1):
        indent = lines[start][: _indent(lines[start])]
        tried = [*lines[:start], f"{indent}pass", *[""] * (end - start - 1), *lines[end:]]
        after = _error("\n".join(tried))
        if after is None or (after.lineno or 0) > end:
            return tried, sum(bool(line.strip()) for line in lines[start:end]), after
    return None


def _blocks(lines: list[str], number: int) -> Iterator[tuple[int, int]]:
    """Yield the blocks around a line, the smallest first, as the first line and the one after."""
    while number >= 0:
        number = _up(lines, number, partial(_is_within, len(lines[number])))
        if number < 0:
            return
        most = _indent(lines[number])
        start = number
        while start > 0 and CLAUSE.match(lines[start].strip()):
            start = _up(lines, start - 1, partial(_is_within, most))
        if start >= 0:
            yield start, _end(lines, start)
        number = _up(lines, start - 1, partial(_is_within, most - 1))


def _is_within(most: int, line: str) -> bool:
    """Return True for a line that is not empty and indented at most so far."""
    return bool(line.strip()) and _indent(line) <= most


def _up(lines: list[str], number: int, wanted: Callable[[str], bool]) -> int:
    """Return the nearest line at or above a number that is wanted, -1 if there is none."""
    while number >= 0 and not wanted(lines[number]):
        number -= 1
    return number


def _end(lines: list[str], start: int) -> int:
    """Return the line after a statement with everything below it and all its clauses."""
    indent = _indent(lines[start])
    end = start + 1
    for number in range(start + 1, len(lines)):
        line = lines[number].strip()
        if not line:
            continue
        own = _indent(lines[number])
        if own < indent or (own == indent and not CLAUSE.match(line)):
            break
        end = number + 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
