"""`floodline report`: what a recording says, as a page, as JSON or as Markdown."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from floodline.recorder import read_recording
from floodline.web import FORMATS, render_report, write_report


@click.command("report")
@click.argument("recording", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS),
              help="Default: by the suffix of the output, else html.")  # fmt: skip
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False),
              help="Where to write it; standard output by default.")  # fmt: skip
@click.option("--sources", type=click.Path(path_type=Path),
              help="The program's sources: adds `floodline scan` findings and code.")  # fmt: skip
def command(recording: Path, form: str | None, output: Path | None, sources: Path | None) -> int:
    """Write the report of a recording of `floodline run`.

    The recording may still be in progress, or left behind by a killed recorder; the report says so.
    In a terminal, a page is not printed but written next to the recording.
    """
    state = read_recording(recording).state()
    if output is None and (form or "html") == "html" and sys.stdout.isatty():
        output = recording.with_suffix(".html")
    if output is None:
        click.echo(render_report(state, form or "html", sources), nl=False)
        return 0
    write_report(state, output, format=form, sources=sources)
    click.echo(f"{state['verdict']}; the report is in {output}", err=True)
    return 0
