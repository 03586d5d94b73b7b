"""One answer for all processes: suspects by command and owner, worst first."""

from __future__ import annotations

from typing import Any

ORDER = {"growing": 0, "undecided": 1, "bounded": 2}
NOT_YET = {"seconds": 60.0, "why": "no process was watched for long enough"}

Record = dict[str, Any]


def merge_suspects(processes: list[Record]) -> list[Record]:
    """Add up what several workers of one command say of the same owner."""
    merged: dict[tuple[str, str], Record] = {}
    for process in processes:
        for suspect in process["suspects"]:
            key = (process["command"], suspect["owner"])
            known = merged.get(key)
            merged[key] = _joined(known, suspect, process) if known else _first(suspect, process)
    ranked = sorted(merged.values(), key=_badness)
    return [{**suspect, "rank": rank} for rank, suspect in enumerate(ranked, 1)]


def _first(suspect: Record, process: Record) -> Record:
    return {**suspect, "command": process["command"], "pids": [process["pid"]]}


def _joined(known: Record, other: Record, process: Record) -> Record:
    sums = {name: known[name] + other[name] for name in ("len", "per_round", "bytes_per_round")}
    worse = min(known, other, key=lambda one: ORDER.get(one["verdict"], 3))
    # a line that was seen beats one that was read from the source, and that beats none
    told = max(known, other, key=lambda one: (one["line_source"] == "trace", bool(one["file"])))
    place = {name: told[name] for name in ("file", "line", "line_source")}
    echoes = list(dict.fromkeys([*known["echoes"], *other["echoes"]]))
    return {
        **known, **sums, **place, "verdict": worse["verdict"], "echoes": echoes,
        "pids": [*known["pids"], process["pid"]],
    }  # fmt: skip


def _badness(suspect: Record) -> tuple[int, float, float]:
    return (
        ORDER.get(suspect["verdict"], 3),
        -suspect["bytes_per_round"],
        -suspect["per_round"],
    )


def merge_verdicts(processes: list[Record], main: int | None) -> Record:
    """Return verdict, where and needed of all; those that ended count if they grew.

    The program itself counts too after its end. What was never watched has no say.
    """
    answered = [one for one in processes if one["answer"]]
    present = [one for one in answered if one["state"] == "running" or one["pid"] == main]
    grew = [one for one in answered if one["answer"]["verdict"] == "growing"]
    relevant = [one["answer"] for one in ([*grew, *present] or answered)]
    if not relevant:
        return {"verdict": "undecided", "where": "unknown", "needed": dict(NOT_YET)}
    worst = min(relevant, key=lambda answer: ORDER.get(answer["verdict"], 1))
    return {name: worst.get(name) for name in ("verdict", "where", "needed")}
