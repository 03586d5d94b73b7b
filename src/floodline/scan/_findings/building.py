"""Builds findings from evidence: here reasons become text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from floodline.scan._facts.model import At, FileFacts
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import ITSELF, LOCAL, MODULE
from floodline.scan._findings.finding import Confidence, Finding, Proof, Status
from floodline.scan._findings.ranking import usual_rank
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.evidence import Evidence, place
from floodline.scan._proofs.removal import Way


class Claim(Ground):
    """The four claims, each with the evidence for it."""

    HOLDER = "long-lived holder: {}"
    PATH = "growth on a repeating path: {}"
    KEYS = "open key space: {}"
    REMOVAL = "no removal that runs: {}"


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
    """Return a hash of the rule and the qualified name: it survives moved lines."""
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
    rank: int | None = None,
) -> Finding:
    """Build the finding of one container."""
    symbol = symbol_of(program, held)
    removing = [place(path, line) for path, line in shrinks] or [way.at for way in ways]
    return build(
        rule, file.path, at, symbol, confidence, proofs,
        grows=[place(path, line) for path, line in grows], shrinks=removing, risk_line=risk_line,
        rank=rank,
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
    rank: int | None = None,
) -> Finding:
    """Build any finding; the proofs become text, each with its claim in front."""
    named = tuple(
        Proof(str(claim(proof.reason)), proof.state, proof.at)
        for claim, proof in zip(Claim, proofs, strict=False)
    )
    message = rule.says.format(symbol, line=risk_line)
    return Finding(
        rule.code, rule.name, path, at.line, at.column, at.end_line, at.end_column, symbol,
        confidence, usual_rank(confidence) if rank is None else rank, message,
        fingerprint(rule.code, symbol), Status.NEW,
        tuple(dict.fromkeys(grows)), tuple(dict.fromkeys(shrinks)), named,
    )  # fmt: skip
