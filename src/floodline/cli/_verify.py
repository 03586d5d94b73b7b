"""`floodline verify`: is an announced fix real?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from floodline import __version__
from floodline.errors import ConfigError
from floodline.verify import Answer, document, load, text, verify
from floodline.verify._answers.causes import Verdict
from floodline.verify._answers.markdown import markdown
from floodline.verify._source.revisions import at_revision

REFUTED, UNKNOWN = 1, 3
COLORS = {Verdict.PROVED: "green", Verdict.REFUTED: "red", Verdict.UNKNOWN: "yellow"}


@click.command("verify")
@click.argument("claims", type=click.Path(path_type=Path))
@click.option("--execute", is_flag=True,
              help="Also import the code in a child process and feed it.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=30.0,
              show_default=True, help="Seconds for each claim's child process.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text",
              show_default=True, help="Output format.")  # fmt: skip
@click.option("--before", metavar="REVISION",
              help="Also judge the source at this Git revision, from before the fix.")  # fmt: skip
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    help="Also write the JSON record to this file.",
)
def command(
    claims: Path,
    execute: bool,
    timeout: float,
    form: str,
    before: str | None,
    json_file: Path | None,
) -> int:
    """Prove or refute announced fixes.

    Without --execute, none of the claimed code is run.

    Exit status: 0 all proved, 1 some refuted, 3 some undecided and none refuted, 2 usage error.
    """
    earlier = at_revision(before) if before is not None else None
    answers = [
        verify(claim, run=execute, patience=timeout, earlier=earlier) for claim in load(claims)
    ]
    record = json.dumps(document(answers, __version__), indent=1, ensure_ascii=False)
    if json_file is not None:
        try:
            json_file.write_text(record + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--json {json_file} cannot be written: {error.strerror}") from error
    if form == "markdown":
        click.echo(markdown(answers))
    else:
        click.echo(record if form == "json" else _told(answers))
    verdicts = {answer.verdict for answer in answers}
    return REFUTED if Verdict.REFUTED in verdicts else UNKNOWN if Verdict.UNKNOWN in verdicts else 0


def _told(answers: list[Answer]) -> str:
    if not sys.stdout.isatty():
        return text(answers)
    return text(answers, lambda verdict: click.style(verdict, fg=COLORS[verdict], bold=True))
