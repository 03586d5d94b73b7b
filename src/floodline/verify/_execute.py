"""Runs a claim's code in a child process and judges what the child counted."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from floodline.scan._sources.files import module_name
from floodline.verify import _probe
from floodline.verify._answers.answer import Judgement, evidence
from floodline.verify._answers.causes import Cause, Verdict
from floodline.verify._claims import Claim, Policy

FAILED_IN = {
    _probe.IMPORT: Cause.NOT_IMPORTED,
    _probe.MAKE: Cause.NOT_MADE,
    _probe.FEED: Cause.NOT_FED,
    _probe.GUESS: Cause.FEED_NOT_KNOWN,
}


class _NoAnswerError(Exception):
    """Raised if the child gave no answer; the judgement says why."""

    def __init__(self, judgement: Judgement) -> None:
        super().__init__()
        self.judgement = judgement


def execute(claim: Claim, feeders: list[str], patience: float) -> Judgement:
    """Feed the claimed code twice its limit, and judge sizes and what is left."""
    try:
        record = _child(_request(claim, feeders), patience)
    except _NoAnswerError as error:
        return error.judgement
    if "error" not in record:
        return _judged(claim, record)
    cause = FAILED_IN[record["stage"]]
    # without knowing how to create or feed it, nothing was tried
    untried = cause is Cause.FEED_NOT_KNOWN or (cause is Cause.NOT_MADE and claim.make is None)
    return _judgement(Verdict.UNKNOWN, cause, absent=untried, error=record["error"])


def _judgement(
    verdict: Verdict, cause: Cause, *, absent: bool = False, **details: object
) -> Judgement:
    return Judgement(verdict, (evidence(cause, "executed", **details),), absent)


def _request(claim: Claim, feeders: list[str]) -> dict[str, Any]:
    file = claim.file.resolve()
    module = module_name(file)
    depth = module.count(".") + (file.name == "__init__.py")
    symbol = claim.symbol.replace(":", ".").removeprefix(f"{file.stem}.")
    return {
        "file": str(file),
        "module": module,
        "root": str(file.parents[depth]),
        "symbol": symbol.split("."),
        "limit": claim.limit,
        "make": claim.make,
        "feed": claim.feed,
        "feeders": feeders,
    }


def _child(request: dict[str, Any], patience: float) -> dict[str, Any]:
    """Run the probe in an empty folder; a hanging child is killed with everything it started."""
    with tempfile.TemporaryDirectory(
        prefix="floodline-verify-", ignore_cleanup_errors=True
    ) as folder:
        out, work = Path(folder) / "answer.json", Path(folder) / "work"
        work.mkdir()
        command = [sys.executable, "-B", _probe.__file__, json.dumps({**request, "out": str(out)})]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            command, cwd=work, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        ) as child:
            try:
                status = child.wait(patience)
            except subprocess.TimeoutExpired:
                slow = _judgement(Verdict.UNKNOWN, Cause.TOO_SLOW, patience=patience)
                raise _NoAnswerError(slow) from None
            finally:
                _end(child)
        try:
            record: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            died = _judgement(Verdict.UNKNOWN, Cause.DIED, status=status)
            raise _NoAnswerError(died) from None
        return record


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and what it started, which may have outlived it."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:  # pragma: no cover  # Windows has no groups of this kind
            child.kill()


def _judged(claim: Claim, record: dict[str, Any]) -> Judgement:
    grown = record["containers"]
    if not grown:
        return _judgement(Verdict.UNKNOWN, Cause.NOTHING_GREW, fed=record["fed"])
    path, seen = max(grown.items(), key=lambda each: each[1]["top"])
    verdict, cause = _counted(claim, seen)
    return _judgement(
        verdict, cause, path=path, top=seen["top"], fed=record["fed"],
        limit=claim.limit, policy=claim.policy, kept=seen["kept"],
    )  # fmt: skip


def _counted(claim: Claim, seen: dict[str, Any]) -> tuple[Verdict, Cause]:
    """Judge the most that was held, and what is left of it."""
    if seen["top"] > claim.limit:
        return Verdict.REFUTED, Cause.HELD_TOO_MANY
    if seen["top"] < claim.limit - 1:
        return Verdict.REFUTED, Cause.HELD_TOO_FEW
    if claim.policy == Policy.BATCH:
        emptied = (Verdict.PROVED, Cause.EMPTIED)
        return emptied if seen["flushes"] else (Verdict.REFUTED, Cause.NEVER_EMPTIED)
    if seen["flushes"]:
        return Verdict.REFUTED, Cause.EMPTIED_AT_ONCE
    if seen["top"] and not seen["distinct"]:
        return Verdict.UNKNOWN, Cause.ITEMS_ALIKE
    if claim.policy == Policy.REJECT:
        kept = (Verdict.PROVED, Cause.FIRST_KEPT)
        return kept if seen["kept"] else (Verdict.REFUTED, Cause.FIRST_GONE)
    gone = (Verdict.PROVED, Cause.NEWEST_KEPT)
    return gone if not seen["kept"] else (Verdict.REFUTED, Cause.FIRST_LEFT)
