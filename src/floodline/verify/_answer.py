"""What verify answers, as values, as a text and as a JSON document."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from floodline.verify._claims import Claim

SCHEMA = 1
PROVED, REFUTED, UNKNOWN = "proved", "refuted", "cannot tell"


class Evidence(NamedTuple):
    """One thing that was seen, and where: `file:line`, or `executed`."""

    says: str
    at: str


class Judgement(NamedTuple):
    """The verdict of one of the two ways, with its evidence.

    `absent` marks a refutation that rests on nothing having been found.
    """

    verdict: str
    evidence: tuple[Evidence, ...]
    absent: bool = False


class Answer(NamedTuple):
    """The verdict on one claim; `executed` is None where no code was run."""

    claim: Claim
    verdict: str
    static: Judgement
    executed: Judgement | None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """All that was seen, the source first."""
        return (*self.static.evidence, *(self.executed.evidence if self.executed else ()))


def text(answers: Sequence[Answer]) -> str:
    """Write the answers for people: a line for each claim, its evidence below, and the counts."""
    lines = []
    for answer in answers:
        claim = answer.claim
        lines.append(
            f"{answer.verdict}: {claim.name} ({claim.symbol}, {claim.limit} {claim.policy})"
        )
        lines += [f"  {e.at}: {e.says}" for e in answer.evidence]
    counts = Counter(answer.verdict for answer in answers)
    told = ", ".join(f"{counts[v]} {v}" for v in (PROVED, REFUTED, UNKNOWN) if counts[v])
    lines.append(f"{len(answers)} {'claim' if len(answers) == 1 else 'claims'}: {told}")
    return "\n".join(lines)


def document(answers: Sequence[Answer], version: str) -> dict[str, Any]:
    """Return the JSON document; `errors` has what kept a claim from being executed."""
    return {
        "schema": SCHEMA,
        "tool": f"floodline {version}",
        "python": platform.python_version(),
        "errors": [
            f"{a.claim.name}: {e.says}"
            for a in answers
            if a.executed is not None and a.executed.verdict == UNKNOWN
            for e in a.executed.evidence
        ],
        "claims": [_record(answer) for answer in answers],
    }


def _record(answer: Answer) -> dict[str, Any]:
    claim = answer.claim
    return {
        "name": claim.name,
        "file": claim.file.as_posix(),
        "symbol": claim.symbol,
        "limit": claim.limit,
        "policy": claim.policy,
        "verdict": answer.verdict,
        "static": answer.static.verdict,
        "executed": answer.executed.verdict if answer.executed else None,
        "evidence": [e._asdict() for e in answer.evidence],
    }
