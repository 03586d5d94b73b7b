"""`floodline report`: what a recording says, as a page, as JSON or as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click

from floodline.errors import ConfigError
from floodline.recorder import read_recording
from floodline.recorder._announcement import announced
from floodline.recorder._runtime_folder import recordings_folder, temporary_recordings
from floodline.web import FORMATS, render_report, write_report


@click.command("report")
@click.argument("recording", required=False, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS),
              help="Default: by the suffix of the output, else html.")  # fmt: skip
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False),
              help="Where to write it; standard output by default.")  # fmt: skip
@click.option("--sources", type=click.Path(path_type=Path),
              help="The program's sources: adds `floodline scan` findings and code.")  # fmt: skip
def command(
    recording: Path | None, form: str | None, output: Path | None, sources: Path | None
) -> int:
    """Write the report of a recording of `floodline run`.

    Without an argument, take this user's newest recording. It may still be in progress, or left
    behind by a killed recorder; the report says so. In a terminal, a page is not printed, but
    written next to the recording.
    """
    if recording is None:
        recording = _newest()
        click.echo(f"floodline: the newest recording is {recording}", err=True)
    state = read_recording(recording).state()
    if output is None and (form or "html") == "html" and sys.stdout.isatty():
        output = recording.with_suffix(".html")
    if output is None:
        click.echo(render_report(state, form or "html", sources), nl=False)
        return 0
    write_report(state, output, format=form, sources=sources)
    click.echo(f"{state['verdict']}; the report is in {output}", err=True)
    return 0


def _newest() -> Path:
    """Return the recording written to last: of a running program, or in the usual folders."""
    found = [file for file in _recordings() if file.is_file()]
    if not found:
        raise click.UsageError(
            "there is no recording yet; record one with `floodline run app.py`, or give a file"
        )
    return max(found, key=lambda file: file.stat().st_mtime)


def _recordings() -> Iterator[Path]:
    with suppress(OSError, ConfigError):  # no folder that is ours
        yield from (Path(record) for one in announced() if (record := one.get("record")))
    with suppress(RuntimeError):  # a user without a home
        yield from recordings_folder().glob("*.rec")
    with suppress(OSError, ConfigError):
        yield from temporary_recordings().glob("*.rec")
