"""The JSON document of a scan."""

from __future__ import annotations

import json
import platform
from typing import Any

from floodline.scan._findings.report import Report

SCHEMA = 1


def document(report: Report, version: str) -> dict[str, Any]:
    """Return what is written: findings of every status, files, and what was skipped."""
    findings = []
    for finding in report.findings:
        record = finding._asdict()
        del record["end_column"]
        if finding.observed is None:
            del record["observed"]
        else:
            record["observed"] = finding.observed._asdict()
        record["proofs"] = [proof._asdict() for proof in finding.proofs]
        findings.append(record)
    return {
        "schema": SCHEMA,
        "tool": f"floodline {version}",
        "python": platform.python_version(),
        "errors": [f"{p.path}:{p.line}: {p.says}" for p in report.problems],
        "findings": findings,
        "files": report.files,
        "skipped": [{"path": item.path, "why": item.why} for item in report.skipped],
        "read_otherwise": [{"path": item.path, "how": item.how} for item in report.otherwise],
    }


def render(report: Report, version: str) -> str:
    """Write the document, indented by one space."""
    return json.dumps(document(report, version), indent=1, ensure_ascii=False)
