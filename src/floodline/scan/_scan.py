"""Scans paths: files → facts → links → findings."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from floodline.errors import ConfigError
from floodline.scan._findings.answers import Wrong, answered
from floodline.scan._findings.audit import Audited, audit
from floodline.scan._findings.finding import Finding, in_characters
from floodline.scan._findings.packing import pack_report, unpack_report
from floodline.scan._findings.report import Report
from floodline.scan._program.program import Program
from floodline.scan._proofs.judge import Judge
from floodline.scan._rules.checks import found_by_rules
from floodline.scan._rules.containers import explain
from floodline.scan._rules.registry import RULES
from floodline.scan._sources.cache import Cache
from floodline.scan._sources.reading import Progress, Reading

PREVIEW = [code for code, rule in RULES.items() if rule.preview]


class Scan:
    """One scan of some paths; `silence(name)` explains afterwards why something is not reported."""

    def __init__(
        self,
        paths: Sequence[Path | str],
        *,
        library: bool = False,
        exclude: Sequence[str] = (),
        cache: Cache | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._library = library
        self._cache = cache
        self._program: Program | None = None
        self._judge: Judge | None = None
        self._reading = Reading(
            [Path(path) for path in paths], exclude=exclude, cache=cache, progress=progress
        )

    @property
    def program(self) -> Program:
        """All files, read and linked when this is first asked for."""
        if self._program is None:
            with _uncollected():
                self._reading.read()
                self._program = Program(self._reading.facts)
        return self._program

    @property
    def judge(self) -> Judge:
        """Who answers for the containers of the program."""
        if self._judge is None:
            with _uncollected():
                self._judge = Judge(self.program, library=self._library)
        return self._judge

    def report(
        self,
        *,
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        preview: bool = False,
    ) -> Report:
        """Judge everything; `select` and `ignore` take rule codes or their beginnings.

        Preview rules run with `preview`, or one by one if `select` has their whole code.
        """
        chosen, left_out = tuple(select), tuple(ignore)
        for code in (*chosen, *left_out):
            if not any(known.startswith(code) for known in RULES):
                raise ConfigError(f"there is no rule {code!r}; `floodline explain` lists the rules")
        with _uncollected():
            return self._known_or_new(chosen, left_out, preview=preview)

    def _known_or_new(
        self, chosen: tuple[str, ...], left_out: tuple[str, ...], *, preview: bool
    ) -> Report:
        if self._cache is None:
            return self._report(chosen, left_out, preview=preview)
        asked = f"{chosen} {left_out} {preview} {self._library}".encode()
        key = self._cache.key(b"report", asked, self._reading.digest())
        if (known := self._cache.get(key)) is not None:
            with suppress(ValueError, TypeError, EOFError, LookupError):
                return unpack_report(known)
        report = self._report(chosen, left_out, preview=preview)
        if not self._reading.exhausted:
            key = self._cache.key(b"report", asked, self._reading.digest())
            self._cache.put(key, pack_report(report))
        return report

    def _report(
        self, chosen: tuple[str, ...], left_out: tuple[str, ...], *, preview: bool
    ) -> Report:
        found = {
            (f.fingerprint, f.path, f.line): f
            for f in found_by_rules(
                self.judge, preview=preview or any(c in chosen for c in PREVIEW)
            )
            if preview or not RULES[f.rule].preview or f.rule in chosen
            if (not chosen or f.rule.startswith(chosen)) and not f.rule.startswith(left_out or "-")
        }
        ordered = sorted(
            (in_characters(f) for f in found.values()),
            key=lambda f: (f.path, f.line, f.column, f.rule),
        )
        unasked = frozenset(c for c in PREVIEW if not preview and c not in chosen)
        findings, problems = answered(
            ordered, self._reading.comments, self._places(ordered), RULES, unasked
        )
        if chosen or left_out:
            problems = [p for p in problems if p.reason.ground is not Wrong.ANSWERS_NOTHING]
        return Report(
            tuple(findings), len(self._reading.facts), sum(f.lines for f in self._reading.facts),
            tuple(self._reading.skipped), tuple(problems),
        )  # fmt: skip

    def _places(self, findings: list[Finding]) -> dict[str, list[tuple[str, int]]]:
        """Where a comment may stand: the lines that grow it, and the line that makes it."""
        made = {
            f"{key.replace(':', '.')}": (held.file.path, held.made[0].at.line)
            for key, held in self.program.held.items()
        }
        places: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for finding in findings:
            for text in finding.grows:
                path, _, line = text.rpartition(":")
                places[finding.fingerprint].append((path, int(line)))
            if finding.symbol in made:
                places[finding.fingerprint].append(made[finding.symbol])
        return places

    @property
    def paths(self) -> list[str]:
        """The files that were read, as they are shown."""
        return [file.path for file in self.program.files]

    def audit(self) -> list[Audited]:
        """List every container whose keys have no end, with its ways out; the safe ones too."""
        return audit(self.program, self.judge, self.report().findings)

    def silence(self, name: str) -> list[str]:
        """Explain what is known about every container whose qualified name ends in `name`."""
        told = []
        for key, held in sorted(self.program.held.items()):
            if not f".{key.replace(':', '.')}".endswith(f".{name}"):
                continue
            told.append(f"{key.replace(':', '.')} ({held.file.path}:{held.made[0].at.line})")
            told += [f"  {line}" for line in explain(self.judge, held)]
        return told


@contextmanager
def _uncollected() -> Iterator[None]:
    """Trees and facts have no cycles that matter, and the collector would double the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
