"""Scans paths: files → facts → links → findings."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from floodline.errors import ConfigError
from floodline.scan._audit import Audited, audit
from floodline.scan._comments import Comment, Problem, answered, comments
from floodline.scan._files import Skipped, Source, decoded, sources
from floodline.scan._finding import LEVELS, LOW, Finding, in_characters
from floodline.scan._judge import Judge
from floodline.scan._link import Program
from floodline.scan._marked import marked
from floodline.scan._model import FileFacts
from floodline.scan._preview import preview as previewed
from floodline.scan._python import read
from floodline.scan._resources import clients, resources
from floodline.scan._rules import RULES
from floodline.scan._siblings import siblings

PREVIEW = [code for code, rule in RULES.items() if rule.preview]
MANY_BYTES = 8 * 1024 * 1024


class Report(NamedTuple):
    """What a scan found: findings in the order of places, and what had to be skipped."""

    findings: tuple[Finding, ...]
    files: int
    lines: int
    skipped: tuple[Skipped, ...]
    problems: tuple[Problem, ...]


class Scan:
    """One scan of some paths; `silence(name)` explains afterwards why something is not reported."""

    def __init__(
        self,
        paths: Sequence[Path | str],
        *,
        library: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._skipped: list[Skipped] = []
        self._comments: list[Comment] = []
        self._facts: list[FileFacts] = []
        collecting = gc.isenabled()
        gc.disable()  # syntax trees have no cycles that matter, and the collector doubles the time
        try:
            self._read([Path(path) for path in paths], progress)
        finally:
            if collecting:
                gc.enable()
        self.program = Program(self._facts)
        self.judge = Judge(self.program, library=library)

    def _read(self, paths: list[Path], progress: Callable[[int], None] | None) -> None:
        for number, source in enumerate(sources(paths)):
            if isinstance(source, Skipped):
                self._skipped.append(source)
            else:
                self._read_one(source)
            if progress:
                progress(number + 1)

    def _read_one(self, source: Source) -> None:
        try:
            if source.path.stat().st_size > MANY_BYTES:
                raise ValueError(f"larger than {MANY_BYTES} bytes")
            text = decoded(source.path.read_bytes())
            facts = read(text, source.shown, source.module)
        except SyntaxError as error:
            at = f" in line {error.lineno}" if error.lineno else ""
            self._skipped.append(Skipped(source.shown, f"syntax error{at}: {error.msg}"))
        except (OSError, ValueError, LookupError, RecursionError, MemoryError) as error:
            self._skipped.append(Skipped(source.shown, f"{type(error).__name__}: {error}"))
        else:
            self._facts.append(facts)
            self._comments += comments(source.shown, text)

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
        found = {
            (f.fingerprint, f.path, f.line): f
            for f in self._found(preview=preview or any(c in chosen for c in PREVIEW))
            if preview or not RULES[f.rule].preview or f.rule in chosen
            if (not chosen or f.rule.startswith(chosen)) and not f.rule.startswith(left_out or "-")
        }
        ordered = sorted(
            (in_characters(f) for f in found.values()),
            key=lambda f: (f.path, f.line, f.column, f.rule),
        )
        unasked = frozenset(c for c in PREVIEW if not preview and c not in chosen)
        findings, problems = answered(ordered, self._comments, self._places(ordered), unasked)
        if chosen or left_out:
            problems = [p for p in problems if "answers no finding" not in p.says]
        return Report(
            tuple(findings), len(self._facts), sum(f.lines for f in self._facts),
            tuple(self._skipped), tuple(problems),
        )  # fmt: skip

    def _found(self, *, preview: bool) -> Iterator[Finding]:
        found = [*self.judge.findings()]
        for rule in (marked, siblings, clients):
            found += rule(self.program, self.judge)
        yield from found
        if preview:
            told = {finding.symbol for finding in found if finding.confidence != LOW}
            yield from previewed(self.program, self.judge, told)
            yield from resources(self.program, self.judge)

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
            told += [f"  {line}" for line in self.judge.explain(held)]
        return told


def at_least(confidence: str, level: str) -> bool:
    """Whether a confidence is as high as a level."""
    return LEVELS.index(confidence) >= LEVELS.index(level)
