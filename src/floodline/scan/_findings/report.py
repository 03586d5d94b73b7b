"""The result of a scan."""

from __future__ import annotations

from typing import NamedTuple

from floodline.scan._findings.answers import Problem
from floodline.scan._findings.finding import Finding
from floodline.scan._sources.files import Skipped


class Report(NamedTuple):
    """What a scan found: findings in source order, and what had to be skipped."""

    findings: tuple[Finding, ...]
    files: int
    lines: int
    skipped: tuple[Skipped, ...]
    problems: tuple[Problem, ...]
