"""Reports as plain values that `marshal` writes, and back."""

from __future__ import annotations

import marshal

from floodline.scan._findings.answers import Problem
from floodline.scan._findings.finding import Finding
from floodline.scan._findings.report import Report
from floodline.scan._proofs.proof import Proof
from floodline.scan._sources.files import Skipped


def pack_report(report: Report) -> bytes:
    """Write a report."""
    findings = [(*f[:-1], [tuple(proof) for proof in f.proofs]) for f in report.findings]
    others = [[tuple(item) for item in items] for items in (report.skipped, report.problems)]
    return marshal.dumps((findings, report.files, report.lines, *others))


def unpack_report(data: bytes) -> Report:
    """Read a report; data of another shape raises an error of Python's."""
    findings, files, lines, skipped, problems = marshal.loads(data)
    return Report(
        tuple(Finding._make((*f[:-1], tuple(map(Proof._make, f[-1])))) for f in findings),
        files, lines,
        tuple(Skipped(*item) for item in skipped), tuple(Problem(*item) for item in problems),
    )  # fmt: skip
