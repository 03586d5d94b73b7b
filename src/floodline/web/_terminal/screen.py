"""The state on a terminal: what `floodline top` draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from floodline._pages.answer_words import growth, pace, place
from floodline._units import format_duration, format_size
from floodline.leaks._vocabulary import Outcome
from floodline.recorder._answers.held_text import held_words
from floodline.recorder._snapshot import (
    ContainerState,
    EventState,
    HoldingState,
    Points,
    ProcessState,
    ProcessStatus,
    SessionsState,
    Snapshot,
    SuspectState,
)
from floodline.web._words import phrases as words

STYLES: dict[Outcome | ProcessStatus, str] = {
    Outcome.GROWING: "bold red",
    Outcome.BOUNDED: "bold cyan",
    Outcome.UNDECIDED: "bold",
    ProcessStatus.LOST: "red",
}
BARS = " ▁▂▃▄▅▆▇█"
WIDEST = 72
NARROW = 80  # below this many columns, the less important ones are left out
HELP = (
    ("q", "quit; the program continues"),
    ("?", "show or hide this help"),
    ("Ctrl-C", "quit, too"),
    ("growing", "a container or the process gains memory and nothing takes it away"),
    ("bounded", "Python objects and process memory are both flat"),
    ("undecided", "not enough was seen yet; the sentence beside it says what is missing"),
    ("rate, memory", "how fast a container gains items and bytes"),
    ("about, share", "estimated bytes of a place and what is below it, and of resident memory"),
    ("fed at", "the line that makes it longer"),
    ("stuck, retained", "sessions held too long, or still referenced after they left"),
)
EVENTS = 5
HOLDERS = 6


def screen(state: Snapshot, *, status: str = "live", width: int = 80) -> RenderableType:
    """Return the drawing of a state; empty parts are left out."""
    narrow = width < NARROW
    parts = [
        _head(state, status),
        _memory(state, min(width - 4, WIDEST)),
        _suspects(words.shown(state)[:8], narrow),
        _holders(state["holders"][:HOLDERS], narrow),
        _sessions(state["sessions"][:8], narrow),
        _containers(state["containers"][:8], narrow),
        _processes(state["processes"][:8], narrow),
        _events(state["events"][-EVENTS:]),
    ]
    return Group(*(Padding(part, (0, 1, 1, 1)) for part in parts if part is not None))


def help_screen() -> RenderableType:
    """Return what the keys do and what the words mean."""
    return Padding(_table(("floodline top", ""), HELP), (0, 1, 1, 1))


def _head(state: Snapshot, status: str) -> RenderableType:
    verdict = state["verdict"]
    lines = [
        Text.assemble(_text(state["command"], "bold"), (f"   {status}", "dim")),
        Text.assemble(
            (verdict.upper(), STYLES.get(verdict, "bold")), "  ", _text(words.because(state))
        ),
    ]
    if state["closed"] or state["exit"]:
        lines.append(_text(words.ending(state), "red" if words.failed(state) else ""))
    if state.get("cut"):
        lines.append(_text(words.unclosed(state), "red"))
    return Group(*lines)


def _memory(state: Snapshot, width: int) -> RenderableType:
    memory = state["memory"]
    above = state["line"] is not None and memory["now"] >= state["line"]
    figures = Text.assemble(
        (format_size(memory["now"]), "bold red" if above else "bold"),
        f"  peak {format_size(memory['peak'])}, growth {words.rise(state)}, "
        f"{words.crossing(state)}, watched for {format_duration(state['now'] - state['started'])}",
    )
    return Group(figures, Text(_curve(memory["points"], width), "cyan"))


def _curve(points: Points, width: int) -> str:
    """Draw memory from zero, as many bars as fit; each shows the peak of its part."""
    if not points:
        return ""
    count = max(1, min(width, len(points)))
    parts = [
        points[n * len(points) // count : (n + 1) * len(points) // count] for n in range(count)
    ]
    sizes = [max(size for _, size in part) for part in parts]
    most = max(*sizes, 1)
    return "".join(BARS[round(size / most * (len(BARS) - 1))] for size in sizes)


def _suspects(suspects: list[SuspectState], narrow: bool) -> RenderableType | None:
    rows = (
        (
            _named(each, narrow),
            Text(each["verdict"], STYLES.get(each["verdict"], "")),
            f"{each['len']:,}",
            pace(each["per_round"]),
            growth(each["bytes_per_round"]),
            place(each),
        )
        for each in suspects
    )
    columns = ("what grows", "=verdict", ">items", "~>rate", ">memory", "~fed at")
    return _table(columns, rows, narrow) if suspects else None


def _holders(holders: list[HoldingState], narrow: bool) -> RenderableType | None:
    rows = (
        (
            _text(each["owner"], "bold"),
            format_size(each["bytes"]),
            f"{each['share']:.0%}",
            held_words(each),
        )
        for each in holders
    )
    columns = ("in memory now", ">about", ">share", "~what")
    return _table(columns, rows, narrow) if holders else None


def _named(suspect: SuspectState, narrow: bool) -> Text:
    """Return the owner; if there is no column for the line that feeds it, with that below."""
    fed = place(suspect)
    below = f"\n{words.printable(fed)}" if narrow and fed else ""
    return Text.assemble(_text(suspect["owner"], "bold"), below)


def _sessions(sessions: list[SessionsState], narrow: bool) -> RenderableType | None:
    rows = (
        (
            _text(each["name"], "bold"),
            words.count(each["live"]),
            words.count(each["parked"]),
            words.count(each["opened"]),
            words.left(each),
            _trouble(each["stuck"]),
            _trouble(each["retained"]),
        )
        for each in sessions
    )
    columns = ("sessions", ">live", ">parked", ">opened", "~left", ">stuck", ">retained")
    return _table(columns, rows, narrow) if sessions else None


def _trouble(number: int | None) -> Text:
    return Text(words.count(number), "red" if number else "")


def _containers(containers: list[ContainerState], narrow: bool) -> RenderableType | None:
    rows = (
        (
            _text(each["name"], "bold"),
            each["kind"],
            Text(_level(words.fullness(each)), "cyan"),
            words.amount(each),
            words.left(each),
        )
        for each in containers
    )
    columns = ("containers", "~kind", "=full", "holds", "~left")
    return _table(columns, rows, narrow) if containers else None


def _level(share: float, width: int = 12) -> str:
    filled = round(share * width)
    return f"{'━' * filled}{'╌' * (width - filled)} {share:4.0%}"


def _processes(processes: list[ProcessState], narrow: bool) -> RenderableType | None:
    rows = (
        (
            str(each["pid"]),
            Text(each["state"], STYLES.get(each["state"], "")),
            words.held(each),
            words.count(each["threads"]),
            words.count(each["tasks"]),
            words.count(each["fds"]),
            Text(each["verdict"], STYLES.get(each["verdict"], "")),
            each["command"],
        )
        for each in processes
    )
    columns = (
        *(">pid", "=state", ">memory", "~>threads", "~>tasks", "~>files"),
        *("=verdict", "process"),
    )
    return _table(columns, rows, narrow) if processes else None


def _events(events: list[EventState]) -> RenderableType | None:
    rows = (
        (words.clock(each["at"]), each["kind"].replace("_", " "), each["text"])
        for each in reversed(events)
    )
    return _table(("events", "", ""), rows) if events else None


def _text(text: str, style: str = "") -> Text:
    return Text(words.printable(text), style)


def _table(
    columns: Sequence[str], rows: Iterable[Iterable[str | Text]], narrow: bool = False
) -> Table:
    """Create a table; what a column's name begins with says how it is set.

    `~` is left out on a narrow screen, `>` is numbers, and neither those nor `=` are ever folded.
    """
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    kept = [not (narrow and name.startswith("~")) for name in columns]
    for name in compress(columns, kept):
        sign = name.lstrip("~")[:1]
        right = sign == ">"
        table.add_column(
            name.lstrip("~>="), justify="right" if right else "left", overflow="fold",
            no_wrap=right or sign == "=",
        )  # fmt: skip
    for row in rows:
        # a plain string would be parsed as markup
        cells = compress(row, kept)
        table.add_row(*(_text(cell) if isinstance(cell, str) else cell for cell in cells))
    return table
