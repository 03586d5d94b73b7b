"""Judges the files of a scan: facts → program → findings → report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from floodline.errors import ConfigError
from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.answers import Wrong, answered
from floodline.scan._findings.audit import Audited, audit
from floodline.scan._findings.finding import Finding, in_characters, worst_first
from floodline.scan._findings.report import Report
from floodline.scan._program.program import Program
from floodline.scan._proofs.holders import SCRIPTS
from floodline.scan._proofs.judge import Judge
from floodline.scan._rules.checks import found_by_rules
from floodline.scan._rules.containers import explain
from floodline.scan._rules.registry import RULES
from floodline.scan._sources.projects import Project
from floodline.scan._sources.reading import Reading

PREVIEW = [code for code, rule in RULES.items() if rule.preview]


def check_codes(codes: Iterable[str]) -> None:
    """Refuse what is neither a rule code nor the prefix of one."""
    for code in codes:
        if not any(known.startswith(code) for known in RULES):
            raise ConfigError(f"there is no rule {code!r}; `floodline explain` lists the rules")


class Told(Ground):
    """What kind of program was scanned."""

    HANDLERS = "handlers found: {}; ranked by what they lead to"
    LOOPS = "no handlers found, but loops that wait; ranked by what these lead to"
    STRUCTURE = "no handlers found; ranked by structure (for a library, add --library)"
    LIBRARY = "a library; its public classes and functions are assumed to be used"
    SHAPE = (
        "a library by its shape (packaged, no commands, no handlers); its public classes and "
        "functions are assumed to be used (for a program, add --no-library)"
    )


class Judging:
    """A program that was read, and the judge of its containers."""

    def __init__(self, reading: Reading, project: Project, *, library: bool | None) -> None:
        self._reading = reading
        self._library = library
        self.program = Program(reading.facts)
        self.judge = Judge(self.program, library=bool(library))
        self._by_shape = library is None and self._looks_like_a_library(project)
        if self._by_shape:
            self.judge = Judge(self.program, library=True)

    def _looks_like_a_library(self, project: Project) -> bool:
        """Return True if it is packaged for others and nothing in it runs on its own."""
        if not project.packaged or project.runs or self.judge.paths.events.shown:
            return False
        files = [f for f in self.program.files if not SCRIPTS & set(f.module.split("."))]
        starts = any(file.path.endswith("__main__.py") for file in self.program.files)
        run = {file.path for file in self.program.names.places.run}
        return not starts and not any(file.path in run for file in files)

    def report(
        self, chosen: tuple[str, ...], left_out: tuple[str, ...], *, preview: bool
    ) -> Report:
        """Report what the selected rules find."""
        asked = preview or any(code in chosen for code in PREVIEW)
        found = {
            (f.fingerprint, f.path, f.line): f
            for f in found_by_rules(self.judge, preview=asked)
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
            tuple(worst_first(findings)), len(self._reading.facts),
            sum(f.lines for f in self._reading.facts), tuple(self._reading.skipped),
            tuple(problems), tuple(self._reading.otherwise), self._kind(),
        )  # fmt: skip

    def _kind(self) -> str:
        """Say in one line what kind of program it is, and what the rank rests on."""
        events = self.judge.paths.events
        if self._by_shape:
            kind = Told.SHAPE()
        elif self._library:
            kind = Told.LIBRARY()
        elif events.handlers:
            kind = Told.HANDLERS(str(len(events.handlers)))
        else:
            kind = Told.LOOPS() if events.shown else Told.STRUCTURE()
        return str(kind)

    def _places(self, findings: list[Finding]) -> dict[str, list[tuple[str, int]]]:
        """Return where a comment may be: the lines that grow it, and the line that creates it."""
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

    def audit(self, findings: Sequence[Finding]) -> list[Audited]:
        """List every container with open keys and its ways out, including safe ones."""
        return audit(self.program, self.judge, findings)

    def silence(self, name: str) -> list[str]:
        """Explain what is known about every container whose qualified name ends in `name`."""
        told = []
        for key, held in sorted(self.program.held.items()):
            if not f".{key.replace(':', '.')}".endswith(f".{name}"):
                continue
            told.append(f"{key.replace(':', '.')} ({held.file.path}:{held.made[0].at.line})")
            told += [f"  {line}" for line in explain(self.judge, held)]
        return told
