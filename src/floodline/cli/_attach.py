"""`floodline attach`: look into a process that is already running."""

from __future__ import annotations

import time
from pathlib import Path

import click

from floodline._units import format_duration, parse_duration
from floodline.leaks._vocabulary import Outcome
from floodline.recorder import Recorder
from floodline.recorder._answer_text import text
from floodline.recorder._attach import wake
from floodline.recorder._proc import alive, command_of
from floodline.recorder._recording.file import check_room

TICK = 0.25
EXITS = {Outcome.BOUNDED: 0, Outcome.GROWING: 1, Outcome.UNDECIDED: 3}
LATE = 2.0  # seconds for the probe to say its last words


@click.command("attach")
@click.argument("pid", type=click.IntRange(min=1))
@click.option("--for", "span", default="1 min", show_default=True, help="How long to watch.")
@click.option(
    "--record", type=click.Path(path_type=Path, dir_okay=False), help="Keep what was seen."
)
def command(pid: int, span: str, record: Path | None) -> int:
    """Watch a running process for a while and say what grows in it.

    The process must be prepared: started with FLOODLINE_PROBE=dormant, or by calling
    floodline.watch(); on Python 3.14 or later neither is needed. It continues as before when the
    time is up, or at Ctrl-C. Exit status: 0 bounded, 1 growing, 3 undecided, 2 it could not be
    watched.
    """
    seconds = parse_duration(span, "--for")
    if record is not None:
        check_room(record)
    recorder = Recorder(command_of(pid) or f"process {pid}")
    try:
        recorder.program(pid)
        wake(pid, recorder.address, seconds)
        if record is not None:  # not before: it moves an existing one aside
            recorder.record_to(record)
        click.echo(f"floodline: watching process {pid} for {format_duration(seconds)}", err=True)
        _watch(recorder, pid, seconds)
    finally:
        recorder.close()
    state = recorder.state()
    click.echo(text(state))
    return EXITS[state["verdict"]]


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
