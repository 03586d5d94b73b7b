"""The state as plain text: what `floodline top` prints into a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from floodline._pages.answer_words import growth, pace, place
from floodline._units import format_duration, format_size
from floodline.recorder._answers.held_text import held_words, split_words
from floodline.recorder._snapshot import Snapshot
from floodline.web._words import phrases as words

SESSION_FIGURES: tuple[Literal["live", "parked", "opened", "stuck", "retained"], ...] = (
    "live",
    "parked",
    "opened",
    "stuck",
    "retained",
)


def snapshot_text(state: Snapshot) -> str:
    """Return one snapshot: one fact per line, two spaces between columns, the verdict first."""
    return "\n".join(words.printable(line).rstrip() for line in _lines(state)) + "\n"


def _lines(state: Snapshot) -> Iterator[str]:
    memory = state["memory"]
    yield f"{state['verdict'].upper()}  {words.because(state)}"
    if state["closed"] or state["exit"]:
        yield words.ending(state)
    if state.get("cut"):
        yield words.unclosed(state)
    watched = format_duration(state["now"] - state["started"])
    yield f"program   {state['command']}, watched for {watched}"
    size = f"{words.measured(memory['now'])}, peak {format_size(memory['peak'])}, "
    size = size if memory["peak"] else "not measured, "
    yield f"memory    {size}growth {words.rise(state)}, {words.crossing(state)}"
    for suspect in words.shown(state):
        rate = f"{pace(suspect['per_round'])}  {growth(suspect['bytes_per_round'])}"
        what = f"{suspect['owner']}  {suspect['verdict']}  {suspect['len']:,} items"
        yield f"suspect   {what}  {rate}  {place(suspect)}"
    for one in state["holders"]:
        what = f"{format_size(one['bytes'])}  {one['share']:.0%}  {held_words(one)}"
        yield f"holds     {one['owner']}  {what}"
    for each in state["sessions"]:
        figures = "  ".join(f"{name} {words.count(each[name])}" for name in SESSION_FIGURES)
        yield f"sessions  {each['name']}  {figures}  left: {words.left(each)}"
    for box in state["containers"]:
        full = f"{words.fullness(box):.0%}"
        yield f"container {box['name']}  {full}  {words.amount(box)}  left: {words.left(box)}"
    for process in state["processes"]:
        what = f"{process['pid']}  {process['state']}  {words.held(process)}  {process['verdict']}"
        yield f"process   {what}  {process['command']}"
        if split := process["split"]:
            yield f"memory of {process['pid']}: {split_words(split)}"
    for text in state["not_covered"]:
        yield f"not covered: {text}"
