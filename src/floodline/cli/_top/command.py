"""`floodline top`: the state of a running program, or of a recording, in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live

from floodline.cli._top.keyboard import Feed, keys_at_once
from floodline.recorder import read_recording
from floodline.recorder._announcement import announced
from floodline.recorder._snapshot import Snapshot
from floodline.web import snapshot_text
from floodline.web._terminal.screen import help_screen, screen
from floodline.web._terminal.state_sources import Remote, Tail, paced

NOTHING = (
    "no recorder is running; start one with `floodline run app.py`, or give a recording or an "
    "address"
)
STOPPED = "stopped watching"  # the program continues


@click.command("top")
@click.argument("source", required=False, metavar="[RECORDING|URL]")
@click.option("--once", is_flag=True, help="Print one snapshot and exit; the default in a pipe.")
@click.option("--speed", type=click.FloatRange(min=0, min_open=True), default=10.0,
              show_default=True, help="How many times faster to replay a recording.")  # fmt: skip
def command(source: str | None, once: bool, speed: float) -> int:
    """Show what grows, live.

    Without an argument, show the newest recorder of this user; a recording is replayed. q quits,
    ? explains the screen. In a pipe, one snapshot is printed as plain text.
    """
    if once or not sys.stdout.isatty():
        click.echo(snapshot_text(_newest(source)), nl=False)
        return 0
    console = Console()
    states, status = _states(source, speed)
    with keys_at_once() as terminal:
        state, last = _show(console, Feed(states, terminal), f"{status}, {_KEYS[terminal is None]}")
    if state is not None:  # the screen is gone: print its last state
        console.print(screen(state, status=last, width=console.width))
    return 0


_KEYS = ("q to quit, ? for help", "Ctrl-C to quit")


def _show(console: Console, feed: Feed, status: str) -> tuple[Snapshot | None, str]:
    """Draw states until they end or the user leaves; return the last one, and why it is."""
    state: Snapshot | None = None
    helping = False
    with Live(console=console, screen=True, auto_refresh=False) as display:
        try:
            for news in feed:
                if not isinstance(news, str):
                    state = news
                elif news in "qQ":
                    return state, STOPPED
                else:
                    helping = news == "?" and not helping  # any other key closes it
                if helping:
                    display.update(help_screen(), refresh=True)
                elif state is not None:
                    drawn = screen(state, status=status, width=console.width)
                    display.update(drawn, refresh=True)
        except KeyboardInterrupt:
            return state, STOPPED
    return state, "ended"


def _is_address(source: str | None) -> bool:
    return source is not None and source.startswith(("http://", "https://"))


def _live(source: str | None) -> Remote | Tail:
    if source is not None:
        return Remote(source)
    for one in announced():
        if one["url"]:
            return Remote(one["url"], one["token"])
        if record := one.get("record"):
            return Tail(Path(record))
    raise click.UsageError(NOTHING)


def _newest(source: str | None) -> Snapshot:
    if source is None or _is_address(source):
        return _live(source).state()
    return read_recording(Path(source)).state()


def _states(source: str | None, speed: float) -> tuple[Iterator[Snapshot], str]:
    if source is None or _is_address(source):
        return _live(source).states(), "live"
    recording = read_recording(Path(source))
    return paced(recording.frames(), speed), f"{source}, at {speed:g} times its speed"
