"""`floodline explain`: the page of a rule."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.markdown import Markdown

import floodline
from floodline.scan import RULES

PACKAGE = Path(floodline.__file__).parent
# once installed, the pages are in the package; in a checkout, they are in the documentation
FOLDERS = (PACKAGE / "scan" / "pages", PACKAGE.parents[1] / "docs" / "rules")


def page(code: str) -> str:
    """Return the page of a rule as Markdown."""
    rule = RULES[code]
    for folder in FOLDERS:
        path = folder / f"{code}-{rule.name}.md"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return (
        f"# {code} {rule.name}\n\n{rule.says.format('The container', line='N')}\n\n{rule.advice}\n"
    )


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> int:
    """Explain a rule of `floodline scan`, or list all rules."""
    if code is None:
        for rule in RULES.values():
            click.echo(f"{rule.code}  {rule.name}{'  (preview)' if rule.preview else ''}")
        return 0
    wanted = code.upper()
    if wanted not in RULES:
        raise click.UsageError(f"there is no rule {code!r}; `floodline explain` lists the rules")
    text = page(wanted)
    if sys.stdout.isatty():
        Console().print(Markdown(text))
    else:
        click.echo(text, nl=False)
    return 0
