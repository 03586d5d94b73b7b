"""The answer of a run in words, as `floodline soak` gives it: first what matters."""

from __future__ import annotations

from typing import Any

from floodline._units import format_duration, format_size
from floodline.recorder._exit_cause import WENT_ON

SHOWN = 5
LEFT = "left_running"
SHORT = 22.0  # seconds in which memory has no rate yet

Record = dict[str, Any]


def text(state: Record) -> str:
    """Return the verdict, where it grows, and what grows, of a snapshot."""
    lines = [_headline(state)]
    needed = state.get("needed")
    if needed and needed.get("why"):
        lines.append(f"  {needed['why']}")
    shown = [one for one in state["suspects"] if one["verdict"] == state["verdict"]]
    for suspect in shown[:SHOWN]:
        lines += suspect_lines(suspect)
    if len(shown) > SHOWN:
        lines.append(f"  and {len(shown) - SHOWN} more in the report")
    if (ended := state["exit"]) and (ended["status"] != 0 or WENT_ON in ended["cause"]):
        name = ended["signal"]
        signal = f"{name}: " if name and name not in ended["cause"] else ""
        lines.append(f"  the program: {signal}{ended['cause']}")
    lines += _lost(state["events"])
    left = sum(event.get("count", 1) for event in state["events"] if event["kind"] == LEFT)
    lines += [f"  {left} of its processes still ran when the recording ended"] if left else []
    lines += [f"  not covered: {one}" for one in state["not_covered"][:SHOWN]]
    return "\n".join(lines)


def _lost(events: list[Record]) -> list[str]:
    lost = sum(event.get("count", 1) for event in events if event["kind"] == "process_lost")
    why = [event["text"] for event in events if event["kind"] == "oom_kill"][-1:]
    told = f"  lost {lost} of its processes: killed, crashed, or left by os._exit"
    return ["; ".join([told, *why])] if lost else []


def _headline(state: Record) -> str:
    seconds = max(0.0, state["now"] - state["started"])
    over = f"over {format_duration(seconds)}"
    growing = [one for one in state["suspects"] if one["verdict"] == "growing"]
    where = state.get("where")
    place = f"  ({where})" if where and where != "none" else ""
    if state["verdict"] == "growing" and growing:
        first = growing[0]
        return f"GROWING  {_pace(first)}, {_bytes(first['bytes_per_round'])} {over}{place}"
    rate = state["memory"]["rate"]
    if not rate and seconds < SHORT:
        return f"{state['verdict'].upper()}  {over}"
    return f"{state['verdict'].upper()}  {_bytes(rate)} resident {over}{place}"


def _pace(suspect: Record) -> str:
    rate = suspect["per_round"]
    return f"+{rate:.1f} items/s" if rate >= 1 else f"+{rate * 60:.1f} items/min"


def _bytes(rate: float) -> str:
    return f"{'-' if rate < 0 else '+'}{format_size(abs(rate))}/s"


def suspect_lines(suspect: Record) -> list[str]:
    """Return one suspect in the lines of soak, with the processes that have it."""
    pids = suspect.get("pids", [])
    shared = f", in {len(pids)} processes" if len(pids) > 1 else ""
    lines = [f"  {suspect['owner']}   {suspect['type']}, {suspect['len']} items{shared}"]
    lines.append(f"    reached by  {suspect['path']}")
    if suspect["file"]:
        seen = "" if suspect["line_source"] == "trace" else "  (static)"
        lines.append(f"    fed at      {suspect['file']}:{suspect['line']}{seen}")
    if suspect["holds"]:
        lines.append(f"    holds       {suspect['holds']}")
    if suspect["echoes"]:
        lines.append(f"    echoed by   {', '.join(suspect['echoes'])}")
    return lines
