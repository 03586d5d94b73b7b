"""`floodline soak`: run a scenario many rounds and say what grows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from floodline.soak import _child
from floodline.soak._answer import ChildRecord
from floodline.soak._profiles import PROFILES

UNUSABLE = 2


@click.command("soak")
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=300,
    show_default=True,
    help="How many times to call round(i), warm-up included; below 20 there is no verdict.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    help="How many of the rounds are warm-up; a tenth by default.",
)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    help="Drive open_session(id), work(id) and close_session(id) of the scenario: a calm day, many "
    "sessions at a time, or lost close events, failing hooks and sessions cut short.",
)
@click.option(
    "--python",
    "python",
    default=sys.executable,
    help="The interpreter that runs the app; it does not need floodline. Default: this one.",
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Also write the answer as JSON."
)
@click.option(
    "--html", "html_file", type=click.Path(path_type=Path), help="Also write a page with charts."
)
def command(
    scenario: Path,
    rounds: int,
    warmup: int | None,
    profile: str | None,
    python: str,
    json_file: Path | None,
    html_file: Path | None,
) -> int:
    """Run a scenario many rounds and say what grows.

    The file defines round(i), and may define setup() and teardown(), plain or async:

    \b
        import app
        def round(i):
            app.handle(f"turn {i}")

    Exit status: 0 bounded, 1 growing, 3 undecided, 4 the scenario failed, 2 it could not be run.
    """
    if not scenario.is_file():
        raise click.UsageError(f"{str(scenario)!r} is not a file; give one that defines round(i)")
    if warmup is not None and warmup >= rounds:
        raise click.UsageError(f"--warmup {warmup} must be below --rounds {rounds}")
    for option, file in (("--json", json_file), ("--html", html_file)):
        if file is not None and not file.absolute().parent.is_dir():
            raise click.UsageError(f"{option} {str(file)!r}: its folder does not exist; create it")
    status, record = _run_child(python, scenario, rounds, warmup, profile)
    if record is None:
        if status == _child.INTERRUPTED:
            raise click.Abort
        return status if status == UNUSABLE else _crashed(status)
    _say(record["text"])
    if json_file:
        _write(json_file, json.dumps(record["answer"], indent=1) + "\n")
    if html_file:
        from floodline.soak._page import page

        _write(html_file, page(record["answer"], record["text"]))
    return record["exit"]


def _say(text: str) -> None:
    """Print the answer; if nobody reads it, the exit status still gives the verdict."""
    try:
        click.echo(text)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # for what the interpreter flushes at its end
        os.close(nowhere)


def _write(file: Path, text: str) -> None:
    with suppress(BrokenPipeError):
        file.write_text(text, encoding="utf-8")


def _crashed(status: int) -> int:
    click.echo(f"floodline: the scenario's process ended with status {status}", err=True)
    return 4


def _run_child(
    python: str, scenario: Path, rounds: int, warmup: int | None, profile: str | None
) -> tuple[int, ChildRecord | None]:
    """Run the engine in the app's interpreter; nothing is written into its environment."""
    with tempfile.TemporaryDirectory(prefix="floodline-soak-") as folder, _progress(folder) as pipe:
        out = Path(folder) / "answer.json"
        request = {
            "scenario": str(scenario.resolve()),
            "rounds": rounds,
            "warmup": warmup,
            "profile": profile,
            "out": str(out),
            "progress": pipe,
        }
        try:
            done = subprocess.run([python, "-B", _child.__file__, json.dumps(request)], check=False)
        except OSError as error:
            raise click.UsageError(f"--python {python!r} cannot be run: {error}") from error
        record: ChildRecord | None = (
            json.loads(out.read_text(encoding="utf-8")) if out.exists() else None
        )
        return done.returncode, record


@contextmanager
def _progress(folder: str) -> Iterator[str | None]:
    """Show a bar while the child reports rounds; nothing in a pipe, or where there are no FIFOs."""
    if not sys.stderr.isatty() or not hasattr(os, "mkfifo"):
        yield None
        return
    path = str(Path(folder) / "progress")
    os.mkfifo(path)
    # opened for reading and writing, so that neither side waits for the other
    reader = os.open(path, os.O_RDWR)
    thread = threading.Thread(target=_show, args=(reader,), daemon=True)
    thread.start()
    try:
        yield path
    finally:
        os.write(reader, b"\n")
        thread.join(2)
        os.close(reader)


def _show(reader: int) -> None:
    from rich.console import Console
    from rich.progress import Progress

    with (
        Progress(console=Console(stderr=True), transient=True) as bar,
        os.fdopen(os.dup(reader), encoding="utf-8") as lines,
    ):
        task = bar.add_task("soak")
        for line in lines:
            if not line.strip():
                return
            done, total, phase = line.split()
            bar.update(task, completed=int(done), total=int(total), description=f"soak: {phase}")
