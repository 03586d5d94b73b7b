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
from floodline.verify._answer import PROVED, REFUTED, UNKNOWN, Evidence, Judgement
from floodline.verify._claims import Claim

NEXT = {
    "import": "the file cannot be imported",
    "make": "it cannot be made; give `make`",
    "feed": "it cannot be fed; give another `feed`",
    "guess": "how to feed it is not known; give `feed`",
}


def execute(claim: Claim, feeders: list[str], patience: float) -> Judgement:
    """Feed the claimed code twice its limit, and judge sizes and what is left."""
    record = _child(_request(claim, feeders), patience)
    if "error" in record:
        stage = record["stage"]
        says = f"{NEXT.get(stage, 'no answer')}: {record['error']}"
        unknown = stage == "guess" or (stage == "make" and claim.make is None)
        return _judgement(UNKNOWN, says, absent=unknown)
    return _judged(claim, record)


def _judgement(verdict: str, says: str, *, absent: bool = False) -> Judgement:
    return Judgement(verdict, (Evidence(says, "executed"),), absent)


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
    """Run the probe in an empty folder; a child that hangs is killed with all it started."""
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
                return {"stage": "", "error": f"nothing within {patience:g} seconds; it was ended"}
            finally:
                _end(child)
        try:
            record: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {"stage": "", "error": f"the process ended with status {status}"}
        return record


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and what it started, which may have outlived it."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:  # pragma: no cover  # Windows has no groups of this kind
            child.kill()


def _judged(claim: Claim, record: dict[str, Any]) -> Judgement:
    grown = record["containers"]
    if not grown:
        says = f"fed {record['fed']}, and no container of it grew; give another `feed`"
        return _judgement(UNKNOWN, says)
    path, seen = max(grown.items(), key=lambda each: each[1]["top"])
    held = f"{path} held {seen['top']} at most, fed {record['fed']}"
    if seen["top"] > claim.limit:
        return _judgement(REFUTED, f"{held}: the limit of {claim.limit} does not bind")
    if seen["top"] < claim.limit - 1:
        return _judgement(REFUTED, f"{held}: the limit is not {claim.limit}")
    return _policy(claim, seen, held)


def _policy(claim: Claim, seen: dict[str, Any], held: str) -> Judgement:
    """Batches are emptied; the others keep the newest, and of the first items none is left."""
    if claim.policy == "batch":
        verdict = PROVED if seen["flushes"] else REFUTED
        told = "it was emptied" if seen["flushes"] else "it was never emptied: that is no batch"
        return _judgement(verdict, f"{held}, and {told}")
    if seen["flushes"]:
        return _judgement(REFUTED, f"{held}, and was emptied at once: not {claim.policy}")
    if seen["top"] and not seen["distinct"]:
        return _judgement(UNKNOWN, f"{held}; give a `feed` whose items differ, to see which stay")
    rejects = claim.policy == "reject"
    if rejects == bool(seen["kept"]):
        told = "the first are kept" if rejects else "the newest are kept"
        return _judgement(PROVED, f"{held}, and {told}")
    told = f"{seen['kept']} of the first are left" if not rejects else "none of the first is left"
    return _judgement(REFUTED, f"{held}, and {told}: not {claim.policy}")
