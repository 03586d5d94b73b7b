"""Reads and writes a baseline: the findings that are already known. It may only shrink."""

from __future__ import annotations

import json
from pathlib import Path

from floodline.errors import ConfigError
from floodline.scan._findings.finding import Finding, Status

SCHEMA = "floodline.scan.baseline/1"


def known(path: Path) -> frozenset[str]:
    """Read the fingerprints of a baseline; any other file raises `ConfigError`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        entries = document["fingerprints"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} is not a baseline ({error}); write one with `floodline scan --write-baseline`"
        ) from error
    if document.get("schema") != SCHEMA or not isinstance(entries, dict):
        raise ConfigError(f"{path} has the schema {document.get('schema')!r}, not {SCHEMA!r}")
    return frozenset(entries)


def against(findings: list[Finding], old: frozenset[str]) -> list[Finding]:
    """Mark the findings that are in the baseline."""
    return [
        f._replace(status=Status.BASELINE) if f.fingerprint in old and f.status is Status.NEW else f
        for f in findings
    ]


def write(path: Path, findings: list[Finding]) -> int:
    """Write a baseline; an existing one may lose entries, but a new entry raises."""
    wanted = {f.fingerprint: _told(f) for f in findings if f.status is not Status.SUPPRESSED}
    if path.exists():
        old = known(path)
        new = sorted(text for key, text in wanted.items() if key not in old)
        if new:
            raise ConfigError(
                f"{path} may only shrink, but does not contain {len(new)} of the findings "
                f"(the first: {new[0]}); fix them, or delete the file to start over"
            )
    ordered = dict(sorted(wanted.items(), key=lambda item: item[1]))
    document = {"schema": SCHEMA, "fingerprints": ordered}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return len(ordered)


def _told(finding: Finding) -> str:
    """Name a finding, with what a run saw of it."""
    seen = finding.observed
    if seen is None:
        return f"{finding.rule} {finding.symbol}"
    rate = f" {seen.rate:+g} a round" if seen.rate is not None else ""
    return (
        f"{finding.rule} {finding.symbol}: {seen.verdict}{rate} at {seen.line or 'no known line'}"
    )
