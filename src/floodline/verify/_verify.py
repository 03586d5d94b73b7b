"""Judges claims from the source and by running them, and combines the two judgements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from floodline.verify._answers.answer import Answer, Judgement
from floodline.verify._answers.causes import Verdict
from floodline.verify._claims import Claim
from floodline.verify._execute import execute
from floodline.verify._static import judge

PATIENCE = 30.0  # seconds for one claim
_WORST_FIRST = (Verdict.REFUTED, Verdict.UNKNOWN, Verdict.PROVED)
Earlier = Callable[[Path], bytes]  # a file as it was; FileNotFoundError if it was not there


def verify(
    claim: Claim, *, run: bool = False, patience: float = PATIENCE, earlier: Earlier | None = None
) -> Answer:
    """Judge one claim by its source and, if `run`, by running it in a child process.

    Without `run` none of the claimed code is imported or run. With `earlier`, the source as it was
    before the fix is judged as well; it is never run.
    """
    parts = [claim._replace(symbol=symbol) for symbol in claim.symbols]
    found = [_judged(part, run and claim.file.is_file(), patience) for part in parts]
    before = [judge(part, earlier)[0] for part in parts] if earlier is not None else []
    executed = [ran for _, _, ran in found if ran is not None]
    return Answer(
        claim,
        min((verdict for verdict, _, _ in found), key=_WORST_FIRST.index),
        _all([static for _, static, _ in found]),
        _all(executed) if executed else None,
        _all(before) if before else None,
    )


def _judged(
    claim: Claim, run: bool, patience: float
) -> tuple[Verdict, Judgement, Judgement | None]:
    static, feeders = judge(claim)
    if not run:
        return static.verdict, static, None
    executed = execute(claim, feeders, patience)
    return _together(static, executed), static, executed


def _all(judged: Sequence[Judgement]) -> Judgement:
    """Return one judgement of several containers: as bad as the worst of them."""
    judged = sorted(judged, key=lambda each: _WORST_FIRST.index(each.verdict))
    seen = tuple(evidence for each in judged for evidence in each.evidence)
    return Judgement(judged[0].verdict, seen, all(each.absent for each in judged))


def _together(static: Judgement, executed: Judgement) -> Verdict:
    """Let the run decide, unless the source shows a different limit or policy."""
    unseen = static.absent and executed.verdict is Verdict.PROVED
    if static.verdict is Verdict.REFUTED and not unseen:
        return Verdict.REFUTED
    # `absent` of a run: there was no way to run it, so nothing was learned
    return static.verdict if executed.absent else executed.verdict
