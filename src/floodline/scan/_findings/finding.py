"""The record of a finding, its confidence and its status."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from floodline.scan._proofs.evidence import State


class Confidence(StrEnum):
    """How sure a finding is, the least sure first."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Status(StrEnum):
    """Whether a finding counts, or a baseline or a comment has answered it."""

    NEW = "new"
    BASELINE = "baseline"
    SUPPRESSED = "suppressed"


LOW, MEDIUM, HIGH = Confidence
LEVELS = list(Confidence)


class Proof(NamedTuple):
    """One of the four claims as text, how sure it is, and where it is seen."""

    claim: str
    state: State
    at: str


class Observed(NamedTuple):
    """What a run saw of a container: its verdict, items per round, the line that fed it."""

    verdict: str
    rate: float | None
    line: str


class Finding(NamedTuple):
    """One finding; the fields are in the order of the JSON document."""

    rule: str
    name: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    symbol: str
    confidence: Confidence
    rank: int
    message: str
    fingerprint: str
    status: Status
    grows: tuple[str, ...]
    shrinks: tuple[str, ...]
    proofs: tuple[Proof, ...]
    observed: Observed | None = None


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by rank, those of one owner together."""
    listed = sorted(findings, key=lambda f: (-f.rank, f.path, f.line, f.column, f.rule))
    place: dict[str, int] = {}
    for finding in listed:
        place.setdefault(finding.symbol.rpartition(".")[0] or finding.symbol, len(place))
    return sorted(listed, key=lambda f: place[f.symbol.rpartition(".")[0] or f.symbol])


def at_least(confidence: str, level: str) -> bool:
    """Return True if a confidence is at least as high as a level."""
    return LEVELS.index(Confidence(confidence)) >= LEVELS.index(Confidence(level))


def in_characters(finding: Finding) -> Finding:
    """Count columns in characters, as editors and SARIF do; syntax trees count bytes."""
    first, last = (_line(finding.path, number) for number in (finding.line, finding.end_line))
    if first.isascii() and last.isascii():
        return finding
    return finding._replace(
        column=_characters(first, finding.column), end_column=_characters(last, finding.end_column)
    )


def _characters(line: bytes, column: int) -> int:
    return len(line[: column - 1].decode(errors="replace")) + 1


def _line(path: str, number: int) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return next(islice(file, number - 1, number), b"")
    except OSError:
        return b""
