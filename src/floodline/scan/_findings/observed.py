"""What a run saw: what grew in it is confirmed, what was fed and stayed flat is out of the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from floodline.scan._findings.finding import HIGH, LOW, Finding, Observed

CONFIRMED = 100
GROWING, BOUNDED = "growing", "bounded"


def with_run(findings: Sequence[Finding], suspects: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """Return the findings with what a recording or a soak says about them.

    A container that is bounded counts only if a line is known that fed it in that run: if nothing
    was put in, staying flat says nothing.
    """
    told: dict[str, Observed] = {}
    for suspect in suspects:
        verdict = suspect.get("verdict")
        if verdict == GROWING or (verdict == BOUNDED and suspect.get("line")):
            for finding in _meant(findings, suspect):
                seen = Observed(str(verdict), suspect.get("per_round"), _line(suspect))
                told.setdefault(finding.fingerprint, seen)
    return [_judged(finding, told.get(finding.fingerprint)) for finding in findings]


def _judged(finding: Finding, seen: Observed | None) -> Finding:
    if seen is None:
        return finding
    if seen.verdict == GROWING:
        return finding._replace(confidence=HIGH, rank=CONFIRMED, observed=seen)
    return finding._replace(confidence=LOW, rank=0, observed=seen)


def _meant(findings: Sequence[Finding], suspect: Mapping[str, Any]) -> list[Finding]:
    """Return the findings about a container: by its name, else by the line that feeds it."""
    owner = str(suspect.get("owner") or "")
    named = [finding for finding in findings if finding.symbol == owner]
    if named:
        return named
    fed = [f for f in findings if any(_is_place(suspect, place) for place in f.grows)]
    # a program that is run has a different module name than one that is imported
    tail = owner.split(".")[1:]
    return fed or [f for f in findings if tail and f.symbol.split(".")[1:] == tail]


def _is_place(suspect: Mapping[str, Any], place: str) -> bool:
    path, _, line = place.rpartition(":")
    told, below = PurePath(str(suspect.get("file") or "")).parts, PurePath(path).parts
    if not told or not below or line != str(suspect.get("line")):
        return False
    return told[-len(below) :] == below or below[-len(told) :] == told


def _line(suspect: Mapping[str, Any]) -> str:
    return f"{suspect['file']}:{suspect['line']}" if suspect.get("file") else ""
