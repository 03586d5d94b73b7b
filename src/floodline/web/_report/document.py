"""The JSON document of a report."""

from __future__ import annotations

from typing import TypedDict

from floodline.leaks._vocabulary import Outcome, Where
from floodline.recorder._probe.messages import Needed
from floodline.recorder._snapshot import (
    ContainerState,
    EventState,
    Exit,
    HoldingState,
    MemoryState,
    ProcessFacts,
    SessionsState,
    Snapshot,
    SuspectState,
    VerdictState,
)


class ReportedExit(TypedDict):
    """How a process ended; `oom` is None if the end was not seen."""

    status: int | None
    signal: str | None
    oom: bool | None
    cause: str


class ReportedProcess(ProcessFacts):
    """One process of the report."""

    exit: ReportedExit | None


class Window(TypedDict):
    """The time watched, and what was seen of the program as a whole."""

    command: str
    started: float
    ended: float
    seconds: float
    closed: bool
    unit: str
    line: int | None
    memory: MemoryState
    needed: Needed | None
    not_covered: list[str]
    events: list[EventState]


class ReportDocument(TypedDict):
    """The report in JSON."""

    schema: int
    tool: str
    python: str
    errors: list[str]
    verdict: Outcome
    where: Where
    suspects: list[SuspectState]
    history: list[VerdictState]
    exit: ReportedExit
    processes: list[ReportedProcess]
    window: Window
    sessions: list[SessionsState]
    containers: list[ContainerState]
    holders: list[HoldingState]


NOT_SEEN: ReportedExit = {"status": None, "signal": None, "oom": None, "cause": "not seen"}


def report_document(state: Snapshot) -> ReportDocument:
    """Return the JSON document: the same names whether or not the recording was closed."""
    return {
        "schema": state["schema"],
        "tool": state["tool"],
        "python": state["python"],
        "errors": state["errors"],
        "verdict": state["verdict"],
        "where": state["where"],
        "suspects": [*state["suspects"]],
        "history": [*state["history"]],
        "exit": _ended(state["exit"]) or {**NOT_SEEN},
        "processes": [{**each, "exit": _ended(each["exit"])} for each in state["processes"]],
        "window": {
            "command": state["command"],
            "started": state["started"],
            "ended": state["now"],
            "seconds": state["now"] - state["started"],
            "closed": state["closed"],
            "unit": state["unit"],
            "line": state["line"],
            "memory": state["memory"],
            "needed": state["needed"],
            "not_covered": state["not_covered"],
            "events": state["events"],
        },
        "sessions": state["sessions"],
        "containers": state["containers"],
        "holders": state["holders"],
    }


def _ended(exit: Exit | None) -> ReportedExit | None:
    if exit is None:
        return None
    return {
        "status": exit["status"],
        "signal": exit["signal"],
        "oom": exit["oom"],
        "cause": exit["cause"],
    }
