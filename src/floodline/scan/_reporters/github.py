"""Workflow commands that GitHub shows next to the changed lines."""

from __future__ import annotations

from floodline.scan._findings.finding import Finding, Status, at_least
from floodline.scan._findings.report import Report


def render(report: Report, fail_on: str) -> str:
    """Return one line per finding: an error if it fails the run, a warning if not."""
    lines = [_line(f, fail_on) for f in report.findings if f.status is Status.NEW]
    lines += [
        f"::warning file={_property(s.path)},title=skipped::{_data(s.why)}" for s in report.left_out
    ]
    lines += [
        f"::warning file={_property(p.path)},line={p.line},title=comment::{_data(p.says)}"
        for p in report.problems
    ]
    return "\n".join(lines)


def _line(finding: Finding, fail_on: str) -> str:
    level = "error" if at_least(finding.confidence, fail_on) else "warning"
    told = "\n".join([finding.message, *(f"{p.state}: {p.claim} ({p.at})" for p in finding.proofs)])
    return (
        f"::{level} file={_property(finding.path)},line={finding.line},endLine={finding.end_line},"
        f"col={finding.column},title={_property(f'{finding.rule} {finding.name}')}::{_data(told)}"
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
