"""SARIF 2.1.0, for code-scanning services."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from floodline.scan._findings.finding import HIGH, LOW, MEDIUM, Finding, Status
from floodline.scan._findings.report import Report
from floodline.scan._rules.registry import RULES

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {HIGH: "error", MEDIUM: "warning", LOW: "note"}


def document(report: Report, version: str) -> dict[str, Any]:
    """Return a log with one run: rules, results with code flows, skipped files as notifications."""
    codes = sorted({finding.rule for finding in report.findings})
    run = {
        "tool": {
            "driver": {"name": "floodline", "version": version, "rules": [_rule(c) for c in codes]}
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "where the scan was started"}}},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    *(_notification(s.path, 0, s.why, "error") for s in report.left_out),
                    *(_notification(p.path, p.line, p.says, "warning") for p in report.problems),
                ],
            }
        ],
        "results": [_result(finding, codes.index(finding.rule)) for finding in report.findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def render(report: Report, version: str) -> str:
    """Write the log."""
    return json.dumps(document(report, version), indent=1, ensure_ascii=False)


def _rule(code: str) -> dict[str, Any]:
    rule = RULES[code]
    return {
        "id": code,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "fullDescription": {"text": rule.says.format("The container", line="N")},
        "help": {"text": f"Use instead: {rule.advice}. More: floodline explain {code}"},
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    steps = [
        {"location": {**_spot(proof.at), "message": {"text": f"{proof.state}: {proof.claim}"}}}
        for proof in finding.proofs
        if proof.at
    ]
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    result = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": LEVELS[finding.confidence],
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": _artifact(finding.path), "region": region},
                "logicalLocations": [{"fullyQualifiedName": finding.symbol}],
            }
        ],
        "partialFingerprints": {"floodlineContainer/v1": finding.fingerprint},
        "codeFlows": [{"threadFlows": [{"locations": steps}]}],
        "baselineState": "unchanged" if finding.status is Status.BASELINE else "new",
        "properties": {"confidence": finding.confidence},
    }
    if finding.status is Status.SUPPRESSED:
        result["suppressions"] = [{"kind": "inSource"}]
    return result


def _spot(at: str) -> dict[str, Any]:
    path, _, line = at.rpartition(":")
    region = {"startLine": max(1, int(line))}
    return {"physicalLocation": {"artifactLocation": _artifact(path), "region": region}}


def _artifact(path: str) -> dict[str, str]:
    if PurePath(path).is_absolute():
        return {"uri": PurePath(path).as_uri()}
    return {"uri": quote(path), "uriBaseId": "SRCROOT"}


def _notification(path: str, line: int, text: str, level: str) -> dict[str, Any]:
    spot: dict[str, Any] = {"artifactLocation": _artifact(path)}
    if line:
        spot["region"] = {"startLine": line}
    return {
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": spot}],
    }
