"""The result of a scan."""

from __future__ import annotations

from typing import NamedTuple

from floodline.scan._findings.answers import Problem
from floodline.scan._findings.finding import Finding
from floodline.scan._sources.files import Otherwise, Skipped


class Report(NamedTuple):
    """What a scan found: findings by rank, and what had to be skipped."""

    findings: tuple[Finding, ...]
    files: int
    lines: int
    skipped: tuple[Skipped, ...]
    problems: tuple[Problem, ...]
    otherwise: tuple[Otherwise, ...] = ()  # files that this Python cannot parse, but were read
    program: str = ""  # what kind of program it is, and so what the rank rests on

    @property
    def left_out(self) -> tuple[Skipped, ...]:
        """Return what was not read, or only in part."""
        partly = (Skipped(item.path, item.reason) for item in self.otherwise if item.partly)
        return (*self.skipped, *partly)
