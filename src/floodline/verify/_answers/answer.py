"""What verify answers: as values, as text and as a JSON document."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from floodline.verify._answers.causes import Cause, Verdict
from floodline.verify._answers.texts import sentence
from floodline.verify._claims import Claim

SCHEMA = 1


class Evidence(NamedTuple):
    """One thing that was seen, and where: `file:line`, or `executed`."""

    cause: Cause
    at: str
    details: dict[str, object]

    @property
    def says(self) -> str:
        """Return what was seen, as a sentence."""
        return sentence(self.cause, self.details)


def evidence(cause: Cause, at: str, **details: object) -> Evidence:
    """Return one piece of evidence; the details fill the sentence of its cause."""
    return Evidence(cause, at, details)


class Judgement(NamedTuple):
    """The verdict from the source or from a run, with its evidence.

    `absent` marks a refutation because nothing was found.
    """

    verdict: Verdict
    evidence: tuple[Evidence, ...]
    absent: bool = False


class Answer(NamedTuple):
    """The verdict on one claim; `executed` is None where no code was run."""

    claim: Claim
    verdict: Verdict
    static: Judgement
    executed: Judgement | None
    before: Judgement | None = None  # of the source before the fix, where that was asked for

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return all that was seen, the source first."""
        return (*self.static.evidence, *(self.executed.evidence if self.executed else ()))


def text(answers: Sequence[Answer], show: Callable[[Verdict], str] = str) -> str:
    """Write the answers for people: a line per claim, its evidence below, and the counts.

    `show` writes the verdict of a claim; a terminal may want it in colour.
    """
    lines = []
    for answer in answers:
        claim = answer.claim
        lines.append(
            f"{show(answer.verdict)}: {claim.name} ({claim.symbol}, {claim.limit} {claim.policy})"
        )
        if answer.before is not None:
            lines.append(f"  before: {answer.before.verdict}: {answer.before.evidence[0].says}")
        lines += [f"  {e.at}: {e.says}" for e in answer.evidence]
    return "\n".join([*lines, summary(answers)])


def summary(answers: Sequence[Answer]) -> str:
    """Return the counts in one line."""
    counts = Counter(answer.verdict for answer in answers)
    told = ", ".join(f"{counts[v]} {v}" for v in Verdict if counts[v])
    return f"{len(answers)} {'claim' if len(answers) == 1 else 'claims'}: {told}"


def document(answers: Sequence[Answer], version: str) -> dict[str, Any]:
    """Return the JSON document; `errors` has what prevented a claim from being executed."""
    return {
        "schema": SCHEMA,
        "tool": f"floodline {version}",
        "python": platform.python_version(),
        "errors": [
            f"{a.claim.name}: {e.says}"
            for a in answers
            if a.executed is not None and a.executed.verdict is Verdict.UNKNOWN
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
        **({"before": answer.before.verdict} if answer.before else {}),
        "evidence": [{"says": e.says, "at": e.at} for e in answer.evidence],
    }
