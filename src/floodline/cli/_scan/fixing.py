"""What `floodline scan --fix` and `--diff` do with the findings that can be fixed safely."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click
from rich.console import Console
from rich.text import Text

from floodline.scan import Finding
from floodline.scan._fix.fix import Left, Rewrite, diff, rewrites, write
from floodline.scan._reporters.text import counted

STYLES = {"+": "green", "-": "red", "@": "cyan"}


def fix(
    findings: Iterable[Finding],
    files: Iterable[str],
    *,
    dry: bool,
    unsafe: bool,
    to_stderr: bool,
) -> int:
    """Show the changes, write them unless it is a dry run, and return how many files change."""
    changes, left = rewrites(findings, files, unsafe=unsafe)
    for change in changes:
        _show(diff(change), err=to_stderr)
    written = changes if dry else list(_write(changes, left))
    count = sum(len(change.fixed) for change in written)
    for finding, why in left:
        where = f"{finding.path}:{finding.line}"
        click.echo(f"{where}: {finding.rule} left alone: {why}", err=True)
    would = "can be fixed" if dry else "fixed"
    click.echo(
        f"{counted(count, 'finding')} {would} in {counted(len(written), 'file')}",
        err=True,
    )
    return len(written)


def _write(changes: list[Rewrite], left: list[Left]) -> Iterator[Rewrite]:
    for change in changes:
        try:
            write(change)
        except OSError as error:
            left += [Left(finding, f"cannot write it: {error}") for finding in change.fixed]
        else:
            yield change


def _show(lines: Iterator[str], *, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = Text.assemble(*((line, STYLES.get(line[0], "")) for line in lines))
        Console(file=stream, highlight=False, soft_wrap=True).print(text, end="")
    else:
        click.echo("".join(lines), nl=False, err=err)
