"""One answer for all processes: suspects by command and owner, worst first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from floodline._units import format_duration, format_size
from floodline.leaks._suspect_record import SuspectRecord
from floodline.leaks._vocabulary import LineSource, Outcome, Where
from floodline.recorder._probe.messages import LiveRecord, Needed
from floodline.recorder._snapshot import ProcessStatus, SuspectState, VerdictState

ORDER = {Outcome.GROWING: 0, Outcome.UNDECIDED: 1, Outcome.BOUNDED: 2}
LONG = 60.0  # seconds for which an ended process must have been watched to count
LEAST_RISE = 8 << 20  # bytes that all processes together must have gained to doubt *bounded*
MAX_HISTORY = 100
NOT_YET: Needed = {"seconds": 60.0, "why": "no process was watched for long enough"}


@dataclass(slots=True, frozen=True)
class Answered:
    """A process and the last answer of its leak engine, None if it gave none."""

    pid: int
    command: str
    state: ProcessStatus
    answer: LiveRecord | None
    recycled: int = 0  # workers before it that it replaced
    suspected: bool = False  # the last of them had a suspect when it ended


class Verdict(TypedDict):
    """The answer for all processes together."""

    verdict: Outcome
    where: Where
    needed: Needed | None


def merge_suspects(processes: list[Answered]) -> list[SuspectState]:
    """Add up what the workers of one command report for the same owner."""
    merged: dict[tuple[str, str], SuspectState] = {}
    for process in processes:
        for suspect in process.answer["suspects"] if process.answer else ():
            key = (process.command, suspect["owner"])
            known = merged.get(key)
            merged[key] = _joined(known, suspect, process) if known else _first(suspect, process)
    ranked = sorted(merged.values(), key=_badness)
    return [{**suspect, "rank": rank} for rank, suspect in enumerate(ranked, 1)]


def _first(suspect: SuspectRecord, process: Answered) -> SuspectState:
    return {**suspect, "command": process.command, "pids": [process.pid]}


def _joined(known: SuspectState, other: SuspectRecord, process: Answered) -> SuspectState:
    worse = min(known["verdict"], other["verdict"], key=_rank)
    # a line seen at run time beats one read from the source, which beats none
    told = max([known, other], key=_how_sure)
    joined: SuspectState = {
        **known,
        "len": known["len"] + other["len"],
        "per_round": known["per_round"] + other["per_round"],
        "bytes_per_round": known["bytes_per_round"] + other["bytes_per_round"],
        "file": told["file"],
        "line": told["line"],
        "line_source": told["line_source"],
        "verdict": worse,
        "echoes": list(dict.fromkeys([*known["echoes"], *other["echoes"]])),
        "pids": [*known["pids"], process.pid],
    }
    if "caller" in told:
        joined["caller"] = told["caller"]
    return joined


def _how_sure(one: SuspectRecord) -> tuple[bool, bool]:
    return one["line_source"] == LineSource.TRACE, bool(one["file"])


def _rank(verdict: Outcome) -> int:
    return ORDER.get(verdict, 3)


def _badness(suspect: SuspectState) -> tuple[int, float, float]:
    return _rank(suspect["verdict"]), -suspect["bytes_per_round"], -suspect["per_round"]


def merge_verdicts(processes: list[Answered], main: int | None) -> Verdict:
    """Return verdict, where and needed for all processes.

    Ended ones count if they grew or were watched for a minute, the program itself always. Until it
    was watched for a minute, a worker that replaced another is judged by the memory of all
    processes, and so is one that is left when the program has ended. What was never watched does
    not count.
    """
    answered = [(one, one.answer) for one in processes if one.answer]
    over = any(one.pid == main and one.state != ProcessStatus.RUNNING for one in processes)
    present = [
        answer
        for one, answer in answered
        if (one.state == ProcessStatus.RUNNING and not one.recycled and not over)
        or one.pid == main
        or _watched(answer) >= LONG
    ]
    grew = [answer for _, answer in answered if answer["verdict"] == Outcome.GROWING]
    relevant = [*grew, *present] or [answer for _, answer in answered]
    if not relevant:
        return {"verdict": Outcome.UNDECIDED, "where": Where.UNKNOWN, "needed": {**NOT_YET}}
    worst = min(relevant, key=lambda answer: ORDER.get(answer["verdict"], 1))
    return {"verdict": worst["verdict"], "where": worst["where"], "needed": worst["needed"]}


def _watched(answer: LiveRecord) -> float:
    return answer["watched_seconds"] or 0.0


def doubted(processes: list[Answered], main: int | None, gain: float, seconds: float) -> Verdict:
    """Return the merged verdict in view of the memory of all processes: what rises is not bounded.

    `gain` is what they have gained in the last `seconds`, the probes' own memory left out. If no
    process lives for a minute, that memory alone decides.
    """
    verdict = merge_verdicts(processes, main)
    if _only_renewed(processes) and seconds >= LONG and gain < LEAST_RISE:
        return {"verdict": Outcome.BOUNDED, "where": Where.NONE, "needed": None}
    if verdict["verdict"] != Outcome.BOUNDED or gain < LEAST_RISE:
        return verdict
    rose = f"the memory of all processes rose by {format_size(gain)} in {format_duration(seconds)}"
    why = f"{rose}, and nothing that was inspected explains it"
    needed: Needed = {"seconds": seconds, "why": why}
    return {"verdict": Outcome.UNDECIDED, "where": Where.UNKNOWN, "needed": needed}


def _only_renewed(processes: list[Answered]) -> bool:
    """Return True if all are workers that replace each other, and nothing in them is suspected."""
    answered = [(one, one.answer) for one in processes if one.answer]
    return bool(answered) and all(
        one.recycled >= 2
        and not one.suspected
        and answer["verdict"] != Outcome.GROWING
        and _watched(answer) < LONG
        for one, answer in answered
    )


class History:
    """The verdicts so far, each with the time since which it stands."""

    def __init__(self) -> None:
        self._all: list[VerdictState] = []

    def note(self, verdict: Verdict, at: float) -> None:
        """Add a verdict if it differs from the last."""
        outcome, where = verdict["verdict"], verdict["where"]
        if self._all and self._all[-1]["verdict"] == outcome:
            self._all[-1]["where"] = where
            return
        self._all.append({"at": at, "verdict": outcome, "where": where})
        del self._all[1:-MAX_HISTORY]

    def records(self) -> list[VerdictState]:
        """Return all of them, oldest first."""
        return [{**one} for one in self._all]
