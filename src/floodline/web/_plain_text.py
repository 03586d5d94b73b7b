"""The state as plain text: what `floodline top` prints into a pipe."""

from __future__ import annotations

from collections.abc import Iterator

from floodline._pages.answer_words import growth, pace, place
from floodline._units import format_duration, format_size
from floodline.web import _phrases as words
from floodline.web._phrases import State


def snapshot_text(state: State) -> str:
    """Return one snapshot: a line a fact, two spaces between columns, the verdict first."""
    return "\n".join(words.printable(line).rstrip() for line in _lines(state)) + "\n"


def _lines(state: State) -> Iterator[str]:
    memory = state["memory"]
    yield f"{state['verdict'].upper()}  {words.because(state)}"
    if state["closed"] or state["exit"]:
        yield words.ending(state)
    if state.get("cut"):
        yield words.unclosed(state)
    watched = format_duration(state["now"] - state["started"])
    yield f"program   {state['command']}, watched for {watched}"
    size = f"{words.measured(memory['now'])}, at most {format_size(memory['peak'])}, "
    size = size if memory["peak"] else "not measured, "
    yield f"memory    {size}growth {words.rise(state)}, {words.crossing(state)}"
    for suspect in words.shown(state):
        rate = f"{pace(suspect['per_round'])}  {growth(suspect['bytes_per_round'])}"
        what = f"{suspect['owner']}  {suspect['verdict']}  {suspect['len']:,} items"
        yield f"suspect   {what}  {rate}  {place(suspect)}"
    for each in state["sessions"]:
        figures = "  ".join(
            f"{name} {words.count(each[name])}"
            for name in ("live", "parked", "opened", "stuck", "retained")
        )
        yield f"sessions  {each['name']}  {figures}  left: {words.left(each)}"
    for each in state["containers"]:
        full = f"{words.fullness(each):.0%}"
        yield f"container {each['name']}  {full}  {words.amount(each)}  left: {words.left(each)}"
    for each in state["processes"]:
        what = f"{each['pid']}  {each['state']}  {words.held(each)}  {each['verdict']}"
        yield f"process   {what}  {each['command']}"
    for text in state["not_covered"]:
        yield f"not covered: {text}"
