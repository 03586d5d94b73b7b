"""Runs a scan for the command line, with the cache and a progress bar for large trees."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from floodline import __version__
from floodline.errors import ConfigError
from floodline.scan import Finding, Scan
from floodline.scan._sources.cache import Cache, default_folder
from floodline.scan._sources.files import matches

if TYPE_CHECKING:  # only a terminal needs rich, and it takes long to import
    from rich.console import Console
    from rich.progress import Progress

MANY_FILES = 200
DAY = 24 * 60 * 60


class Bar:
    """Shows how many files were read, and disappears after the last one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None and total > MANY_FILES:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            columns = (TextColumn("reading files"), BarColumn(), MofNCompleteColumn())
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._bar.add_task("", total=total)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done)
        if done == total:
            self.stop()

    def stop(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


@contextmanager
def scanning(
    paths: Sequence[Path],
    *,
    library: bool | None,
    exclude: Sequence[str],
    cache_dir: Path | None,
    jobs: int | None = None,
) -> Iterator[Scan]:
    """Yield a scan whose cache is written at the end; without a `cache_dir` there is no cache."""
    with ExitStack() as stack:
        cache = None
        if cache_dir is not None:
            cache = stack.enter_context(Cache(cache_dir, __version__, day=int(time.time()) // DAY))
        bar = None
        if sys.stderr.isatty():
            from rich.console import Console

            bar = Bar(Console(stderr=True))
            stack.callback(bar.stop)
        yield Scan(paths, library=library, exclude=exclude, cache=cache, progress=bar, jobs=jobs)


def folder_for_cache(*, wanted: bool, given: Path | None, set_to: Path | None) -> Path | None:
    """Choose the cache folder: the option, then the setting, then the user's cache folder."""
    return (given or set_to or default_folder()) if wanted else None


def without_ignored(
    findings: Sequence[Finding], by_pattern: Mapping[str, Sequence[str]]
) -> list[Finding]:
    """Drop what `per-file-ignores` leaves out; an unknown rule raises `ConfigError`."""
    if not by_pattern:
        return list(findings)
    from floodline.scan import RULES  # imports every rule, which a cached report does without

    for pattern, codes in by_pattern.items():
        for code in codes:
            if not any(known.startswith(code) for known in RULES):
                raise ConfigError(
                    f"per-file-ignores.{pattern!r}: there is no rule {code!r}; "
                    "`floodline explain` lists the rules"
                )
    return [
        finding
        for finding in findings
        if not any(
            finding.rule.startswith(tuple(codes)) and matches(finding.path, [pattern])
            for pattern, codes in by_pattern.items()
        )
    ]
