"""A place in source code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Place:
    """A line of a file, and the function it is in."""

    file: str
    line: int
    function: str
