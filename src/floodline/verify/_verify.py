"""Judges claims from the source and by running them, and combines the two judgements."""

from __future__ import annotations

from floodline.verify._answer import Answer, Judgement
from floodline.verify._causes import Verdict
from floodline.verify._claims import Claim
from floodline.verify._execute import execute
from floodline.verify._static import judge

PATIENCE = 30.0  # seconds for one claim


def verify(claim: Claim, *, run: bool = False, patience: float = PATIENCE) -> Answer:
    """Judge one claim by its source and, if `run`, by running it in a child process.

    Without `run` none of the claimed code is imported or run.
    """
    static, feeders = judge(claim)
    if not run or not claim.file.is_file():
        return Answer(claim, static.verdict, static, None)
    executed = execute(claim, feeders, patience)
    return Answer(claim, _together(static, executed), static, executed)


def _together(static: Judgement, executed: Judgement) -> Verdict:
    """Let the run decide, unless the source shows a different limit or policy."""
    unseen = static.absent and executed.verdict is Verdict.PROVED
    if static.verdict is Verdict.REFUTED and not unseen:
        return Verdict.REFUTED
    # `absent` of a run: there was no way to run it, so nothing was learned
    return static.verdict if executed.absent else executed.verdict
