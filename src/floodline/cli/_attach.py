"""`floodline attach`: look into a process that is already running."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import click

from floodline._units import format_duration, parse_duration
from floodline.errors import ConfigError
from floodline.leaks._vocabulary import Outcome
from floodline.recorder import Recorder
from floodline.recorder._answers.answer_text import text
from floodline.recorder._answers.held_text import HeldDocument, held_document, held_text
from floodline.recorder._attaching.attach import wake
from floodline.recorder._proc import alive, command_of
from floodline.recorder._recording.file import check_room
from floodline.recorder._snapshot import Snapshot

TICK = 0.25
EXITS = {Outcome.BOUNDED: 0, Outcome.GROWING: 1, Outcome.UNDECIDED: 3}
NOW = 25.0  # seconds at most for --now; most processes need a few
SURE = 110.0  # seconds after which most programs that grow are called growing
LATE = 2.0  # seconds for the probe to say its last words


@click.command("attach")
@click.argument("pid", type=click.IntRange(min=1))
@click.option("--for", "span", default="2 min", show_default=True, help="How long to watch.")
@click.option("--now", is_flag=True, help="Only say what is in memory now; takes seconds.")
@click.option(
    "--json",
    "document",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --now, write that as JSON too; - for standard output instead of text.",
)
@click.option(
    "--record", type=click.Path(path_type=Path, dir_okay=False), help="Keep what was seen."
)
def command(pid: int, span: str, now: bool, document: Path | None, record: Path | None) -> int:
    """Watch a running process for a while and say what grows in it.

    A process that was started with FLOODLINE_PROBE=dormant, or has called floodline.watch(), lets
    floodline in. Others are entered with the extra attach, at a moment when their main thread
    waits for events, or refused with the reason; Python 3.14 or later needs neither. The process
    continues as before when the time is up, or at Ctrl-C. Exit status: 0 bounded, 1 growing, 3
    undecided, 2 it could not be watched. With --now: which places hold how much, and 0.
    """
    seconds = NOW if now else parse_duration(span, "--for")
    if document is not None and not now:
        raise click.UsageError("--json needs --now; for a longer watch, use --record and report")
    if record is not None:
        check_room(record)
    recorder = Recorder(command_of(pid) or f"process {pid}")
    try:
        recorder.program(pid)
        wake(pid, recorder.address, seconds, now=now)
        if record is not None:  # not before: it moves an existing one aside
            recorder.record_to(record)
        span = "until it is known what it holds" if now else f"for {format_duration(seconds)}"
        click.echo(f"floodline: watching process {pid} {span}", err=True)
        _watch(recorder, pid, seconds)
    finally:
        recorder.close()
    state = recorder.state()
    if now:
        return _tell_held(state, pid, document)
    click.echo(text(state))
    if state["verdict"] == Outcome.UNDECIDED and not state["exit"]:
        click.echo(f"  to know more: floodline attach {pid} --for {_long_enough(state)}s")
    return EXITS[state["verdict"]]


def _long_enough(state: Snapshot) -> int:
    """Return for how many seconds to watch instead, rounded up."""
    missing = state["needed"]["seconds"] if state["needed"] else SURE
    return 10 * math.ceil(max(SURE, state["now"] - state["started"] + missing) / 10)


def _tell_held(state: Snapshot, pid: int, document: Path | None) -> int:
    process = next(one for one in state["processes"] if one["pid"] == pid)
    if process["objects"] is None:
        raise ConfigError(
            f"process {pid} did not say what it holds within {NOW:g} s: it may be busy in C code "
            "that keeps the interpreter to itself, or stopped; try again"
            + "".join(f"; {text}" for text in state["not_covered"][:1])
        )
    if document is not None:
        _write(held_document(state, pid), document)
    if document is None or str(document) != "-":
        click.echo(held_text(state, pid))
    return 0


def _write(document: HeldDocument, file: Path) -> None:
    text = json.dumps(document, indent=1) + "\n"
    if str(file) == "-":
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"--json {file} cannot be written ({error}); give another file"
        ) from error


def _watch(recorder: Recorder, pid: int, seconds: float) -> None:
    until = time.monotonic() + seconds + LATE
    try:
        while time.monotonic() < until and not recorder.said_goodbye():
            recorder.tick()
            if not alive(pid):
                recorder.ended(None)
                return
            recorder.wait_for_news(TICK)
    except KeyboardInterrupt:
        click.echo("floodline: stopped early", err=True)
