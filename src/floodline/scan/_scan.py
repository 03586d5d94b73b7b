"""Scans paths: lists the files, and returns the cached report or judges them."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from floodline.scan._findings.packing import pack_report, unpack_report
from floodline.scan._findings.report import Report
from floodline.scan._sources.cache import Cache
from floodline.scan._sources.projects import Project, project_of
from floodline.scan._sources.reading import Progress, Reading

if TYPE_CHECKING:
    from floodline.scan._findings.audit import Audited
    from floodline.scan._judging import Judging


class Scan:
    """One scan of some paths; `silence(name)` explains afterwards why something is not reported.

    Up to `jobs` processes read the files, `None` for one per core; this one reads small trees.
    With `library=None`, the shape of the project decides whether it is a library.
    """

    def __init__(
        self,
        paths: Sequence[Path | str],
        *,
        library: bool | None = False,
        exclude: Sequence[str] = (),
        cache: Cache | None = None,
        progress: Progress | None = None,
        jobs: int | None = 1,
    ) -> None:
        self._library = library
        self._cache = cache
        self._known: Judging | None = None
        asked = library is None
        self._project = project_of([Path(path) for path in paths]) if asked else Project()
        self._reading = Reading(
            [Path(path) for path in paths],
            exclude=exclude, cache=cache, progress=progress, jobs=jobs,
        )  # fmt: skip

    @property
    def _judging(self) -> Judging:
        """All files, read and linked on first use, and their judge."""
        if self._known is None:
            # a cached report needs no rules, and importing them takes longer than reading it
            from floodline.scan._judging import Judging

            with _uncollected():
                self._reading.read()
                self._known = Judging(self._reading, self._project, library=self._library)
        return self._known

    def report(
        self,
        *,
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        preview: bool = False,
    ) -> Report:
        """Judge everything; `select` and `ignore` accept rule codes or prefixes.

        Preview rules run with `preview`, or one by one if `select` has their full code.
        """
        chosen, left_out = tuple(select), tuple(ignore)
        if chosen or left_out:
            from floodline.scan._judging import check_codes  # see above

            check_codes((*chosen, *left_out))
        with _uncollected():
            return self._known_or_new(chosen, left_out, preview=preview)

    def _known_or_new(
        self, chosen: tuple[str, ...], left_out: tuple[str, ...], *, preview: bool
    ) -> Report:
        if self._cache is None:
            return self._judging.report(chosen, left_out, preview=preview)
        asked = f"{chosen} {left_out} {preview} {self._library} {self._project}".encode()
        if not self._cache.is_empty:  # else reading all files for their digest is in vain
            key = self._cache.key(b"report", asked, self._reading.digest())
            if (known := self._cache.get(key)) is not None:
                with suppress(ValueError, TypeError, EOFError, LookupError):
                    return unpack_report(known)
        report = self._judging.report(chosen, left_out, preview=preview)
        if not self._reading.exhausted:
            key = self._cache.key(b"report", asked, self._reading.digest())
            self._cache.put(key, pack_report(report))
        return report

    @property
    def paths(self) -> list[str]:
        """The files that were read, as they are shown."""
        return [file.path for file in self._judging.program.files]

    def audit(self) -> list[Audited]:
        """List every container with open keys and its ways out, including safe ones."""
        findings = self.report().findings
        return self._judging.audit(findings)

    def silence(self, name: str) -> list[str]:
        """Explain what is known about every container whose qualified name ends in `name`."""
        return self._judging.silence(name)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the collector: trees and facts have no cycles that matter, and it doubles the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if not gc.get_freeze_count():  # what a program has frozen must stay so
                gc.freeze()  # these two make all facts old, or the next small
                gc.unfreeze()  # collection would visit each of them
            gc.enable()
