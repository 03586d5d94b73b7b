"""What is told about one container, and how it is named."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from floodline.scan._facts.model import At, FileFacts
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import ITSELF, LOCAL, MODULE
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.evidence import Evidence, State, place
from floodline.scan._proofs.removal import Way


class Confidence(StrEnum):
    """How sure a finding is, the least sure first."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Status(StrEnum):
    """Whether a finding counts: a baseline or a comment may have answered it."""

    NEW = "new"
    BASELINE = "baseline"
    SUPPRESSED = "suppressed"


class Claim(Ground):
    """The four claims, each with what speaks for it."""

    HOLDER = "long-lived holder: {}"
    PATH = "growth on a repeating path: {}"
    KEYS = "open key space: {}"
    REMOVAL = "no removal that runs: {}"


LOW, MEDIUM, HIGH = Confidence
LEVELS = list(Confidence)


class Proof(NamedTuple):
    """One of the four claims as it is told, how sure it is, and where that is seen."""

    claim: str
    state: State
    at: str


class Finding(NamedTuple):
    """One finding; the order of the fields is that of the JSON document."""

    rule: str
    name: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    symbol: str
    confidence: Confidence
    message: str
    fingerprint: str
    status: Status
    grows: tuple[str, ...]
    shrinks: tuple[str, ...]
    proofs: tuple[Proof, ...]


def at_least(confidence: str, level: str) -> bool:
    """Whether a confidence is as high as a level."""
    return LEVELS.index(Confidence(confidence)) >= LEVELS.index(Confidence(level))


def symbol_of(program: Program, held: Held) -> str:
    """Name a container so that a developer can search for it."""
    module, _, rest = held.key.partition(":")
    if held.made[0].ref.kind == LOCAL:
        function, _, variable = rest.rpartition(":")
        inner = f"{function}.<locals>."
        for _, change in held.changes:
            if change.function.startswith(inner):
                return f"{module}.{change.function}{{{variable}}}"
        return f"{module}.{function}(){variable}"
    if held.made[0].ref == ITSELF:
        owner = f"{module}:{rest[:-1]}"
        for making in program.makings.get(owner, ()):
            if making.kept.in_slot(MODULE) and (ref := making.kept.ref):
                return f"{making.function.partition(':')[0]}.{ref.name}"
        return f"{module}.{rest[:-1]}"
    return f"{module}.{rest}"


def fingerprint(rule: str, symbol: str) -> str:
    """The rule and the qualified container: it survives moved lines."""
    return hashlib.sha256(f"{rule}\0{symbol}".encode()).hexdigest()[:16]


def make(
    program: Program,
    held: Held,
    rule: Rule,
    file: FileFacts,
    at: At,
    confidence: Confidence,
    proofs: Sequence[Evidence],
    grows: Sequence[tuple[str, int]],
    ways: Sequence[Way],
    *,
    risk_line: int = 0,
    shrinks: Sequence[tuple[str, int]] = (),
) -> Finding:
    """Build the finding of one container."""
    symbol = symbol_of(program, held)
    removing = [place(path, line) for path, line in shrinks] or [way.at for way in ways]
    return build(
        rule, file.path, at, symbol, confidence, proofs,
        grows=[place(path, line) for path, line in grows], shrinks=removing, risk_line=risk_line,
    )  # fmt: skip


def build(
    rule: Rule,
    path: str,
    at: At,
    symbol: str,
    confidence: Confidence,
    proofs: Sequence[Evidence],
    *,
    grows: Sequence[str] = (),
    shrinks: Sequence[str] = (),
    risk_line: int = 0,
) -> Finding:
    """Build any finding; here the proofs become text, with their standing names in front."""
    named = tuple(
        Proof(str(claim(proof.reason)), proof.state, proof.at)
        for claim, proof in zip(Claim, proofs, strict=False)
    )
    message = rule.says.format(symbol, line=risk_line)
    return Finding(
        rule.code, rule.name, path, at.line, at.column, at.end_line, at.end_column, symbol,
        confidence, message, fingerprint(rule.code, symbol), Status.NEW,
        tuple(dict.fromkeys(grows)), tuple(dict.fromkeys(shrinks)), named,
    )  # fmt: skip


def in_characters(finding: Finding) -> Finding:
    """Syntax trees count columns in bytes; people, editors and SARIF count characters."""
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
