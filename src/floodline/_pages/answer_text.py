"""The answer of a soak or run in words, for a terminal: what matters first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from floodline._units import format_size
from floodline.leaks._suspect_record import SuspectRecord
from floodline.leaks._vocabulary import LineSource, Outcome, Step, Unit, Where

SHOWN = 5


@dataclass(slots=True, frozen=True)
class Named:
    """A suspect, with what its record does not hold."""

    record: SuspectRecord
    unit: Unit = "item"
    function: str = ""
    processes: int = 1


@dataclass(slots=True, frozen=True, kw_only=True)
class Told:
    """What the text is made of; rates are per `by`, over `span`.

    `rate` is that of resident memory, None if not yet known.
    """

    verdict: Outcome
    where: Where | None
    why: str | None
    by: Step
    span: str
    rate: float | None
    suspects: Sequence[Named]
    shown: int | None = None  # of the suspects; all by default
    notes: Sequence[str] = ()


def answer_text(told: Told) -> str:
    """Return the verdict, where memory grows, what grows, and what else is worth a line."""
    lines = [_headline(told)]
    if told.why:
        lines.append(f"  {told.why}")
    shown = told.suspects[: told.shown]
    for suspect in shown:
        lines += _lines(suspect)
    if len(shown) < len(told.suspects):
        lines.append(f"  and {len(told.suspects) - len(shown)} more in the report")
    lines += [f"  {note}" for note in told.notes]
    return "\n".join(lines)


def _headline(told: Told) -> str:
    word = told.verdict.upper()
    over = f"over {told.span}"
    where = f"  ({told.where})" if told.where and told.where != Where.NONE else ""
    growing = [one for one in told.suspects if one.record["verdict"] == Outcome.GROWING]
    if told.verdict == Outcome.GROWING and growing:
        first = growing[0]
        size = _bytes(first.record["bytes_per_round"], told.by)
        return f"{word}  {_pace(first, told.by)}, {size} {over}{where}"
    if told.rate is None:
        return f"{word}  {over}"
    return f"{word}  {_bytes(told.rate, told.by)} resident {over}{where}"


def _pace(one: Named, by: Step) -> str:
    rate, per = one.record["per_round"], "round" if by == "round" else "s"
    if by == "second" and rate < 1:
        rate, per = rate * 60, "min"
    return f"+{rate:.1f} {one.unit}{'' if rate == 1 else 's'}/{per}"


def _bytes(rate: float, by: Step) -> str:
    per = "round" if by == "round" else "s"
    return f"{'-' if rate < 0 else '+'}{format_size(abs(rate))}/{per}"


def _lines(one: Named) -> list[str]:
    record = one.record
    shared = f", in {one.processes} processes" if one.processes > 1 else ""
    lines = [f"  {record['owner']}   {record['type']}, {record['len']} {one.unit}s{shared}"]
    lines.append(f"    reached by  {record['path']}")
    if record["file"]:
        where = f"{_from_here(record['file'])}:{record['line']}  {one.function}".rstrip()
        read = "" if record["line_source"] == LineSource.TRACE else "  (static)"
        lines.append(f"    fed at      {where}{read}")
    if caller := record.get("caller"):
        lines.append(f"    called from {_from_here(caller['file'])}:{caller['line']}")
    if record["holds"]:
        lines.append(f"    holds       {record['holds']}")
    if record["echoes"]:
        lines.append(f"    echoed by   {', '.join(record['echoes'])}")
    return lines


def _from_here(file: str) -> str:
    """Write a path as it is seen from the current folder, if it lies below it."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or the folder is gone
        return file
