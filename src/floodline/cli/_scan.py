"""`floodline scan`: which container in this source code will grow without limit, and why."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from floodline import __version__
from floodline.cli import _fixing
from floodline.scan import Report, Scan
from floodline.scan._baseline import against, known, write
from floodline.scan._finding import LEVELS
from floodline.scan._reporters import _audit, _github, _json, _sarif, _text
from floodline.scan._scan import at_least

FOUND, SKIPPED = 1, 3
LEVEL = click.Choice(["high", "medium", "low"])


def _codes(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip().upper() for part in (text or "").split(",") if part.strip())


@click.command("scan")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), required=True)
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif", "github"]),
              default="text", show_default=True, help="How to report.")  # fmt: skip
@click.option("--confidence", type=LEVEL, default="medium", show_default=True,
              help="Show findings of at least this confidence.")  # fmt: skip
@click.option("--fail-on", type=LEVEL, default="high", show_default=True,
              help="Exit with 1 on a finding of at least this confidence.")  # fmt: skip
@click.option("--select", help="Only these rules: FLD101,FLD2.")
@click.option("--ignore", help="Not these rules.")
@click.option("--preview", is_flag=True, help="Run the preview rules too.")
@click.option("--baseline", type=click.Path(path_type=Path, dir_okay=False),
              help="Findings in this file are known and do not count.")  # fmt: skip
@click.option("--write-baseline", is_flag=True,
              help="Write the findings to the file of --baseline; it may only shrink.")  # fmt: skip
@click.option("--statistics", is_flag=True, help="Count the findings of each rule.")
@click.option("--library", is_flag=True,
              help="The code is a library: its public classes may live long.")  # fmt: skip
@click.option("--fix", is_flag=True, help="Fix what can be fixed safely, and show the diff.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option("--audit", is_flag=True,
              help="List every container with open keys and how entries leave it.")  # fmt: skip
@click.option("--why-not", metavar="NAME", help="Explain what is known about a container.")
def command(
    paths: tuple[Path, ...],
    form: str,
    confidence: str,
    fail_on: str,
    select: str | None,
    ignore: str | None,
    preview: bool,
    baseline: Path | None,
    write_baseline: bool,
    statistics: bool,
    library: bool,
    fix: bool,
    diff: bool,
    audit: bool,
    why_not: str | None,
) -> int:
    """Find containers in source code that only grow.

    Exit status: 0 nothing found, 1 findings, 2 wrong usage, 3 some files had to be skipped.
    """
    if write_baseline and baseline is None:
        raise click.UsageError("--write-baseline needs --baseline FILE")
    if audit and form not in ("text", "json"):
        raise click.UsageError(f"--audit has no format {form!r}; use text or json")
    if (fix or diff) + audit + bool(why_not) > 1:
        raise click.UsageError("--fix, --audit and --why-not are different questions; ask one")
    if (fix or diff) and write_baseline:
        raise click.UsageError("--fix comes first; write the baseline of what is left afterwards")
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise click.UsageError(f"there is no file or folder {missing[0]!r}")
    scan = _scan(paths, library=library)
    if why_not:
        return _explain(scan, why_not)
    if audit:
        return _audited(scan, form)

    def judged(scan: Scan) -> Report:
        found = scan.report(select=_codes(select), ignore=_codes(ignore), preview=preview)
        level = min(confidence, fail_on, key=LEVELS.index)
        kept = [f for f in found.findings if at_least(f.confidence, level)]
        if write_baseline and baseline is not None:
            count = write(baseline, kept)
            click.echo(f"{count} findings written to {baseline}", err=True)
        if baseline is not None:
            kept = against(kept, known(baseline))
        return found._replace(findings=tuple(kept))

    report = judged(scan)
    if fix or diff:
        shown = [f for f in report.findings if at_least(f.confidence, confidence)]
        changed = _fixing.fix(shown, scan.paths, dry=diff, to_stderr=form != "text")
        if diff:
            return FOUND if changed else SKIPPED if report.skipped else 0
        report = judged(_scan(paths, library=library)) if changed else report
    _show(report, form, fail_on, statistics=statistics)
    return _status(report, fail_on)


def _status(report: Report, fail_on: str) -> int:
    if any(f.status == "new" and at_least(f.confidence, fail_on) for f in report.findings):
        return FOUND
    return SKIPPED if report.skipped else 0


def _explain(scan: Scan, name: str) -> int:
    lines = scan.silence(name)
    if not lines:
        raise click.UsageError(f"no container named {name!r} was found in the given paths")
    click.echo("\n".join(lines))
    return 0


def _audited(scan: Scan, form: str) -> int:
    report, containers = scan.report(), scan.audit()
    if form == "json":
        click.echo(_audit.render(containers, report.files, report.skipped, __version__))
    else:
        _print(_audit.pieces(containers, report.skipped))
    return SKIPPED if report.skipped else 0


def _print(pieces: Iterable[tuple[str, str]]) -> None:
    """A terminal gets colours, a pipe the text alone."""
    if sys.stdout.isatty():
        console = Console(highlight=False, soft_wrap=True)
        console.print(Text.assemble(*((text, style) for style, text in pieces)), end="")
    else:
        click.echo("".join(text for _, text in pieces), nl=False)


def _scan(paths: tuple[Path, ...], *, library: bool) -> Scan:
    if not sys.stderr.isatty():
        return Scan(paths, library=library)
    console = Console(stderr=True)
    with console.status("reading files") as status:
        return Scan(
            paths,
            library=library,
            progress=lambda done, total: status.update(f"reading files: {done} of {total}"),
        )


def _show(report: Report, form: str, fail_on: str, *, statistics: bool) -> None:
    if form == "text":
        _print(_text.pieces(report, statistics=statistics))
        return
    if form == "github":
        rendered = _github.render(report, fail_on)
    else:
        rendered = (_json if form == "json" else _sarif).render(report, __version__)
    if rendered:
        click.echo(rendered)
