"""A place in source code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Place:
    """A line of a file, and the function it is in.

    For a line of a library, `caller` is the file and line of the program that led there.
    """

    file: str
    line: int
    function: str
    caller: tuple[str, int] | None = None
