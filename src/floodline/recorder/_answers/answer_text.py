"""The answer of a run in words, as `floodline soak` gives it."""

from __future__ import annotations

from collections.abc import Iterator

from floodline._pages.answer_text import SHOWN, Named, Told, answer_text
from floodline._units import format_duration
from floodline.recorder._exit_cause import ending
from floodline.recorder._snapshot import EventKind, EventState, ExitKind, Snapshot

SHORT = 22.0  # seconds before memory has a rate


def text(state: Snapshot) -> str:
    """Return the verdict of a snapshot, where memory grows, and what grows."""
    seconds = max(0.0, state["now"] - state["started"])
    rate = state["memory"]["rate"]
    shown = [one for one in state["suspects"] if one["verdict"] == state["verdict"]]
    needed = state["needed"]
    told = Told(
        verdict=state["verdict"],
        where=state["where"],
        why=needed["why"] if needed else None,
        by="second",
        span=format_duration(seconds),
        rate=rate if rate or seconds >= SHORT else None,
        suspects=[Named(one, processes=len(one["pids"])) for one in shown],
        shown=SHOWN,
        notes=[*_notes(state)],
    )
    return answer_text(told)


def _notes(state: Snapshot) -> Iterator[str]:
    """Yield what else is worth a line: the end, lost processes, and what was not watched."""
    ended = state["exit"]
    if ended and (ended["status"] != 0 or ended["kind"] == ExitKind.BACKGROUND):
        yield f"the program: {ending(ended)}"
    events = state["events"]
    if lost := _count(events, EventKind.PROCESS_LOST):
        told = f"lost {lost} of its processes: killed, crashed, or ended by os._exit"
        why = [event["text"] for event in events if event["kind"] == EventKind.OOM_KILL][-1:]
        yield "; ".join([told, *why])
    if left := _count(events, EventKind.LEFT_RUNNING):
        yield f"{left} of its processes were still running when the recording ended"
    for one in state["not_covered"][:SHOWN]:
        yield f"not covered: {one}"


def _count(events: list[EventState], kind: EventKind) -> int:
    return sum(event.get("count", 1) for event in events if event["kind"] == kind)
