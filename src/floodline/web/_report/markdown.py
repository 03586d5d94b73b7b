"""The report as Markdown, for an issue or a merge request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from floodline._pages.answer_words import growth, pace, place
from floodline._units import format_duration, format_size
from floodline.recorder._answers.held_text import held_words, split_words
from floodline.recorder._snapshot import (
    ContainerState,
    EventKind,
    EventState,
    HoldingState,
    ProcessState,
    SessionsState,
    Snapshot,
)
from floodline.web._report.memory_curve import in_words
from floodline.web._report.source_notes import ExplainedSuspect
from floodline.web._words import phrases as words
from floodline.web._words.advice import advice

USUAL = (EventKind.PROCESS_STARTED, EventKind.PROCESS_ENDED)
HOLDERS = 12
MOST_EVENTS = 30  # the last ones; the page has all

Item = TypeVar("Item")
Columns = Mapping[str, Callable[[Item], str]]
_ACTIVE = re.compile(r"([\\`*_{}\[\]<>|#~])")


def markdown(state: Snapshot, suspects: list[ExplainedSuspect]) -> str:
    """Return the report; `suspects` are those of the state, as `explained` returns them."""
    span = format_duration(state["now"] - state["started"])
    unclosed = words.unclosed(state)
    lines = [
        f"# floodline report: {state['verdict']}",
        "",
        plain(words.because(state)),
        "",
        *([plain(changed), ""] if (changed := words.verdicts(state)) else []),
        *([f"> {plain(unclosed)}", ""] if unclosed else []),
        f"{code(state['command'])}, {words.moment(state['started'])}, {span}.",
        plain(words.ending(state)),
        "",
        "## Memory",
        "",
        plain(in_words(state)),
        "",
        *_part("What grew", [line for each in suspects for line in _suspect(each)]),
        *_part("In memory at the end", _held(state)),
        *_part("Sessions", _table(_SESSIONS, state["sessions"])),
        *_part("What to do next", _steps(state)),
        *_part("Bounded containers", _table(_CONTAINERS, state["containers"])),
        *_part("Processes", _table(_PROCESSES, state["processes"])),
        *_part("Not covered", [f"- {plain(text)}" for text in state["not_covered"]]),
        *_part("Events", _events(state["events"])),
        f"{plain(state['tool'])}, Python {plain(state['python'])}. Times are UTC.",
    ]
    return "\n".join(lines) + "\n"


_HOLDERS: Columns[HoldingState] = {
    "place": lambda h: code(h["owner"]),
    "bytes, estimated": lambda h: format_size(h["bytes"]),
    "of resident": lambda h: f"{h['share']:.0%}",
    "what": lambda h: plain(held_words(h)),
    "pid": lambda h: str(h["pid"]),
}
_SESSIONS: Columns[SessionsState] = {
    "name": lambda s: code(s["name"]),
    "live": lambda s: words.count(s["live"]),
    "parked": lambda s: words.count(s["parked"]),
    "opened": lambda s: words.count(s["opened"]),
    "left": lambda s: plain(words.left(s)),
    "stuck": lambda s: words.count(s["stuck"]),
    "retained": lambda s: words.count(s["retained"]),
}
_CONTAINERS: Columns[ContainerState] = {
    "name": lambda c: code(c["name"]),
    "kind": lambda c: plain(c["kind"]),
    "holds": lambda c: words.amount(c),
    "full": lambda c: f"{words.fullness(c):.0%}",
    "left": lambda c: plain(words.left(c)),
}
_PROCESSES: Columns[ProcessState] = {
    "process": lambda p: code(p["command"]),
    "pid": lambda p: str(p["pid"]),
    "state": lambda p: plain(words.how(p["exit"]) if p["exit"] else p["state"]),
    "verdict": lambda p: plain(p["verdict"]),
    "peak": lambda p: words.measured(p["peak"] or p["rss"]),
}


def _part(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""] if lines else []


def _suspect(suspect: ExplainedSuspect) -> list[str]:
    rate = f"{pace(suspect['per_round'])}, {growth(suspect['bytes_per_round'])}"
    lines = [
        f"- {code(suspect['owner'])}: {suspect['verdict']}, {rate}",
        f"  - {plain(suspect['type'])}, {suspect['len']:,} items",
        f"  - reached by {code(suspect['path'])}",
    ]
    if fed := place(suspect):
        text = f": {code(suspect['code'])}" if suspect.get("code") else ""
        lines.append(f"  - fed at {code(fed)}{text}")
    if found := suspect.get("finding"):
        where = code(f"{found['path']}:{found['line']}")
        lines.append(f"  - scan says {found['rule']} at {where}: {plain(found['message'])}")
    return lines


def _held(state: Snapshot) -> list[str]:
    splits = [
        f"- process {one['pid']}: {plain(split_words(one['split']))}"
        for one in state["processes"]
        if one["split"]
    ]
    table = _table(_HOLDERS, state["holders"][:HOLDERS])
    return [*table, *([""] if table and splits else []), *splits]


def _steps(state: Snapshot) -> list[str]:
    lines = []
    for number, step in enumerate(advice(state), 1):
        lines.append(f"{number}. {plain(step.says)}")
        if step.code:
            lines += ["", "   ```", f"   {step.code}", "   ```", ""]
    return lines


def _events(events: list[EventState]) -> list[str]:
    told = [each for each in events if each["kind"] not in USUAL][-MOST_EVENTS:]
    return [
        f"- {words.clock(each['at'])} {plain(each['kind'].replace('_', ' '))}: "
        f"{plain(each['text'])}{words.times(each)}"
        for each in told
    ]


def _table(columns: Columns[Item], items: list[Item]) -> list[str]:
    if not items:
        return []
    rows = [" | ".join(write(item) for write in columns.values()) for item in items]
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(f"| {r} |" for r in rows)]


def plain(text: str) -> str:
    """Escape what Markdown or HTML would not treat as text."""
    return _ACTIVE.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Write a name as code, or as text if it contains a backtick."""
    one_line = " ".join(text.split()).replace("|", "¦")
    return plain(one_line) if "`" in one_line else f"`{one_line}`"
