"""Turns reports into plain values that `marshal` can write, and back."""

from __future__ import annotations

import marshal
from enum import StrEnum
from typing import Any

from floodline.scan._facts.reasons import Reason
from floodline.scan._findings.answers import Problem, Wrong
from floodline.scan._findings.finding import Confidence, Finding, Proof, Status
from floodline.scan._findings.report import Report
from floodline.scan._proofs.evidence import State
from floodline.scan._sources.files import How, Otherwise, Skip, Skipped


def pack_report(report: Report) -> bytes:
    """Write a report."""
    return marshal.dumps(_plain(report))


def unpack_report(data: bytes) -> Report:
    """Read a report; data of another shape raises one of Python's own errors."""
    findings, files, lines, skipped, problems, otherwise, program = marshal.loads(data)
    return Report(
        tuple(map(_finding, findings)), files, lines,
        tuple(Skipped(path, Skip[name](*values)) for path, (name, values) in skipped),
        tuple(Problem(path, line, Wrong[name](*values)) for path, line, (name, values) in problems),
        tuple(Otherwise(path, How[name](*values)) for path, (name, values) in otherwise),
        program,
    )  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Reason):
        return value.ground.name, value.values
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def _finding(row: tuple[Any, ...]) -> Finding:
    finding = Finding._make(row)
    return finding._replace(
        confidence=Confidence(finding.confidence),
        status=Status(finding.status),
        proofs=tuple(Proof(claim, State(state), at) for claim, state, at in finding.proofs),
    )
