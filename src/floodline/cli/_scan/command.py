"""`floodline scan`: which containers in this source code grow without limit, and why."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import click

from floodline import __version__
from floodline.cli._scan import settings
from floodline.cli._scan.scanning import folder_for_cache, scanning, without_ignored
from floodline.cli._scan.settings import codes
from floodline.scan import Finding, Report, Scan
from floodline.scan._findings.baseline import against, known, write
from floodline.scan._findings.finding import Confidence, Status, at_least, worst_first

# Importing takes longer than showing a cached report: rich, the reporters and `--fix` are imported
# where they are used.
FOUND, SKIPPED = 1, 3
TOP = 20  # findings that a terminal shows
LEVEL = click.Choice(settings.LEVELS)


@click.command("scan")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), required=True)
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif", "github"]),
              default="text", show_default=True, help="Output format.")  # fmt: skip
@click.option("--confidence", type=LEVEL,
              help="Show findings of at least this confidence.  [default: medium]")  # fmt: skip
@click.option("--fail-on", type=LEVEL,
              help="Exit with 1 on findings of at least this level.  [default: high]")  # fmt: skip
@click.option("--select", help="Only these rules: FLD101,FLD2.")
@click.option("--ignore", help="Leave out these rules.")
@click.option("--exclude", metavar="PATTERN", multiple=True,
              help="Do not read these files and folders.")  # fmt: skip
@click.option("--preview", is_flag=True, help="Run the preview rules too.")
@click.option("--baseline", type=click.Path(path_type=Path, dir_okay=False),
              help="Findings listed in this file do not count.")  # fmt: skip
@click.option("--write-baseline", is_flag=True,
              help="Write the findings to the --baseline file; it may only shrink.")  # fmt: skip
@click.option("--top", type=click.IntRange(min=0), metavar="N",
              help="Show the N worst, or all for 0.  [default: 20 in a terminal]")  # fmt: skip
@click.option("--with", "run", type=click.Path(path_type=Path, dir_okay=False, exists=True),
              help="A recording, or the JSON of a soak: what grew there is confirmed.")  # fmt: skip
@click.option("--statistics", is_flag=True, help="Count the findings per rule.")
@click.option("--library/--no-library", default=None,
              help="Is it a library, with public classes that may be long-lived?"
                   "  [default: by the shape of the project]")  # fmt: skip
@click.option("--fix", is_flag=True, help="Fix what can be fixed safely, and show the diff.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option("--unsafe", is_flag=True,
              help="With --fix or --diff: also bound containers; changes behaviour.")  # fmt: skip
@click.option("--audit", is_flag=True,
              help="List every container with open keys and how entries leave it.")  # fmt: skip
@click.option("--cache-dir", type=click.Path(path_type=Path, file_okay=False),
              help="Folder for the cache, instead of the user's cache folder.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), metavar="N",
              help="Read files in N processes.  [default: one per core, up to 4]")  # fmt: skip
@click.option("--no-cache", is_flag=True, help="Read every file and cache nothing.")
@click.option("--why-not", metavar="NAME", help="Explain what is known about a container.")
@click.pass_obj
def command(
    left: list[object] | None,
    *,
    paths: tuple[Path, ...],
    form: str,
    confidence: str | None,
    fail_on: str | None,
    select: str | None,
    ignore: str | None,
    exclude: tuple[str, ...],
    preview: bool,
    baseline: Path | None,
    write_baseline: bool,
    top: int | None,
    run: Path | None,
    statistics: bool,
    library: bool | None,
    fix: bool,
    diff: bool,
    unsafe: bool,
    audit: bool,
    cache_dir: Path | None,
    jobs: int | None,
    no_cache: bool,
    why_not: str | None,
) -> int:
    """Find containers in source code that only grow.

    Options that are not given come from the table [tool.floodline.scan] in pyproject.toml.

    Exit status: 0 no findings, 1 findings, 2 usage error, 3 some files had to be skipped.
    """
    said = settings.load()
    confidence, fail_on = confidence or said.confidence, fail_on or said.fail_on
    chosen, left_out = codes(select) or said.select, codes(ignore) or said.ignore
    baseline, preview = baseline or said.baseline, preview or said.preview
    _refuse_contradictions(
        form=form,
        fix=fix or diff,
        unsafe=unsafe,
        audit=audit,
        explains=bool(why_not),
        has_baseline=baseline is not None,
        write_baseline=write_baseline,
    )
    _refuse_missing(paths)

    def opened() -> AbstractContextManager[Scan]:
        folder = folder_for_cache(wanted=not no_cache, given=cache_dir, set_to=said.cache_dir)
        left = (*said.exclude, *exclude)
        return scanning(
            paths, library=said.library if library is None else library, exclude=left,
            cache_dir=folder,
            jobs=jobs or said.jobs,
        )  # fmt: skip

    def judged(scan: Scan) -> Report:
        found = scan.report(select=chosen, ignore=left_out, preview=preview)
        level = min(map(Confidence, (confidence, fail_on)), key=list(Confidence).index)
        wanted = without_ignored(found.findings, said.per_file_ignores)
        if run is not None:
            from floodline.cli._scan.observed_suspects import suspects_of
            from floodline.scan._findings.observed import with_run

            wanted = worst_first(with_run(wanted, suspects_of(run)))
        kept = [f for f in wanted if at_least(f.confidence, level)]
        if write_baseline and baseline is not None:
            count = write(baseline, kept)
            click.echo(f"{count} finding{'s' * (count != 1)} written to {baseline}", err=True)
        if baseline is not None:
            kept = against(kept, known(baseline))
        return found._replace(findings=tuple(kept))

    with opened() as scan:
        if left is not None:
            left.append(scan)  # freeing all facts takes longer than ending the process
        if why_not:
            return _explain(scan, why_not)
        if audit:
            return _audited(scan, form)
        report = judged(scan)
    if left is not None:
        gc.freeze()  # showing the report makes enough for a collection, which would visit all facts
    if fix or diff:
        from floodline.cli._scan import fixing

        shown = [f for f in report.findings if at_least(f.confidence, confidence)]
        changed = fixing.fix(shown, scan.paths, dry=diff, unsafe=unsafe, to_stderr=form != "text")
        if diff:
            return FOUND if changed else SKIPPED if report.left_out else 0
        if changed:
            with opened() as scan:
                report = judged(scan)
    _show(report, form, fail_on, statistics=statistics, top=top)
    return _status(report, fail_on)


def _refuse_contradictions(
    *,
    form: str,
    fix: bool,
    unsafe: bool,
    audit: bool,
    explains: bool,
    has_baseline: bool,
    write_baseline: bool,
) -> None:
    if write_baseline and not has_baseline:
        raise click.UsageError("--write-baseline needs --baseline FILE")
    if audit and form not in ("text", "json"):
        raise click.UsageError(f"--audit has no format {form!r}; use text or json")
    if fix + audit + explains > 1:
        raise click.UsageError("--fix, --audit and --why-not exclude each other; choose one")
    if unsafe and not fix:
        raise click.UsageError("--unsafe needs --fix or --diff")
    if fix and write_baseline:
        raise click.UsageError("run --fix first, then write a baseline of what is left")


def _refuse_missing(paths: Iterable[Path]) -> None:
    for path in paths:
        if not path.exists():
            raise click.UsageError(f"there is no file or folder {str(path)!r}")


def _status(report: Report, fail_on: str) -> int:
    if any(f.status is Status.NEW and at_least(f.confidence, fail_on) for f in report.findings):
        return FOUND
    return SKIPPED if report.left_out else 0


def _explain(scan: Scan, name: str) -> int:
    lines = scan.silence(name)
    if not lines:
        raise click.UsageError(f"no container named {name!r} was found in the given paths")
    click.echo("\n".join(lines))
    return 0


def _audited(scan: Scan, form: str) -> int:
    from floodline.scan._reporters import audit

    report, containers = scan.report(), scan.audit()
    if form == "json":
        click.echo(audit.render(containers, report.files, report.left_out, __version__))
    else:
        _print(audit.pieces(containers, report.left_out))
    return SKIPPED if report.left_out else 0


def _print(pieces: Iterable[tuple[str, str]]) -> None:
    """Print with colours on a terminal, and plain text otherwise."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=True)
        console.print(Text.assemble(*((text, style) for style, text in pieces)), end="")
    else:
        click.echo("".join(text for _, text in pieces), nl=False)


def _replacements(findings: Sequence[Finding]) -> Mapping[Finding, str]:
    if not findings:
        return {}
    from floodline.scan._fix.fix import created_with_bounds

    return created_with_bounds(findings)


def _show(report: Report, form: str, fail_on: str, *, statistics: bool, top: int | None) -> None:
    if form == "text":
        from floodline.scan._reporters import text

        if top is None and sys.stdout.isatty():
            top = TOP
        _print(text.pieces(report, _replacements, statistics=statistics, top=top or None))
        return
    if top:
        report = report._replace(findings=report.findings[:top])
    if form == "github":
        from floodline.scan._reporters import github

        rendered = github.render(report, fail_on)
    elif form == "json":
        from floodline.scan._reporters import json

        rendered = json.render(report, __version__)
    else:
        from floodline.scan._reporters import sarif

        rendered = sarif.render(report, __version__)
    if rendered:
        click.echo(rendered)
