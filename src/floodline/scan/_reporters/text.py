"""The report for people: a code frame with carets, and the four proofs with their lines.

Every piece has a style; a terminal shows it in colour, a pipe gets the text alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from floodline.scan._findings.finding import HIGH, LOW, MEDIUM, Finding, Observed, Status
from floodline.scan._findings.report import Report
from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.evidence import ASSUMED, PROVED, REFUTED, UNKNOWN
from floodline.scan._sources.files import Otherwise

Piece = tuple[str, str]  # style, text
STYLES = {HIGH: "bold red", MEDIUM: "yellow", LOW: "cyan"}
LEGEND = "yes: proved   (yes): assumed   ?: unknown   rank: 0 to 100, the worst first"
SIGNS = {PROVED: "yes", ASSUMED: "(yes)", UNKNOWN: "?", REFUTED: "no"}


def pieces(
    report: Report,
    replacements: Callable[[Sequence[Finding]], Mapping[Finding, str]],
    *,
    statistics: bool = False,
    top: int | None = None,
) -> Iterator[Piece]:
    """Yield the text of a report, finding by finding, the worst first; at most `top` of them.

    `replacements` returns, for findings, the lines that would create their containers bounded.
    """
    fresh = [finding for finding in report.findings if finding.status is Status.NEW]
    instead = replacements(fresh[:top])
    for finding in fresh[:top]:
        yield from _finding(finding, instead.get(finding))
    if fresh:
        yield "dim", f"{LEGEND}\n"
    for problem in report.problems:
        yield "yellow", f"{problem.path}:{problem.line}: {problem.says}\n"
    for skipped in report.skipped:
        yield "yellow", f"{skipped.path}: skipped, {skipped.why}\n"
    for item in report.otherwise:
        if item.partly:
            yield "yellow", f"{item.path}: partly read, {item.how}\n"
    if statistics:
        yield from _statistics(fresh)
    yield from _summary(report, fresh, top)


def _rule(code: str) -> Rule:
    from floodline.scan._rules.registry import RULES  # a report without findings needs no rules

    return RULES[code]


def _finding(finding: Finding, instead: str | None) -> Iterator[Piece]:
    yield "bold", f"{finding.path}:{finding.line}:{finding.column}: "
    yield STYLES[finding.confidence], f"{finding.rule} {finding.confidence}"
    yield "", f" {finding.message} [{finding.name}]"
    yield "dim", f" rank {finding.rank}\n"
    yield from _frame(finding)
    if finding.observed:
        yield from _observed(finding.observed)
    for proof in finding.proofs:
        yield "dim", f"    {SIGNS[proof.state]:>5}  "
        yield "", f"{proof.claim}"
        yield "dim", f"  {proof.at}\n" if proof.at else "\n"
    yield "green", f"    use    {_rule(finding.rule).advice}\n"
    yield "green", f"           {instead}\n\n" if instead else "\n"


def _observed(seen: Observed) -> Iterator[Piece]:
    rate = f", {seen.rate:+g} items a round" if seen.rate is not None else ""
    what = "confirmed: it grew" if seen.verdict == "growing" else "it was fed and stayed flat"
    yield "bold", f"      run  {what} in the run{rate}"
    yield "dim", f"  {seen.line}\n" if seen.line else "\n"


def _frame(finding: Finding) -> Iterator[Piece]:
    text = line_of(finding.path, finding.line)
    if not text:
        return
    number = str(finding.line)
    end = finding.end_column if finding.end_line == finding.line else len(text) + 1
    shown = text.replace("\t", " ")
    yield "dim", f"  {number} | "
    yield "", f"{shown}\n"
    yield "dim", f"  {' ' * len(number)} | "
    carets = "^" * max(1, min(end, len(text) + 1) - finding.column)
    yield "red", f"{' ' * (finding.column - 1)}{carets}\n"


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, in the plural where that is needed."""
    return f"{number} {noun}{'s' * (number != 1)}"


def line_of(path: str, number: int) -> str:
    """Return one line of a file, `""` if it is gone."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            for count, line in enumerate(file, 1):
                if count == number:
                    return line.rstrip("\n")
    except OSError:
        pass
    return ""


def read_otherwise(files: Sequence[Otherwise]) -> Iterator[str]:
    """Count the files that this Python cannot parse and that were read in another way."""
    whole = [item.reason.values for item in files if not item.partly]
    for versions, count in sorted(Counter(whole).items()):
        how = f"read by Python {versions[0]}" if versions else "rewritten to be read"
        yield f"{counted(count, 'file')} with newer syntax {how}"
    if partly := sum(item.partly for item in files):
        yield f"{counted(partly, 'file')} partly read"


def _statistics(findings: list[Finding]) -> Iterator[Piece]:
    counts = Counter((finding.rule, finding.confidence) for finding in findings)
    for (rule, confidence), count in sorted(counts.items()):
        yield "", f"{count:6}  {rule} {_rule(rule).name} ({confidence})\n"


def _summary(report: Report, fresh: list[Finding], top: int | None) -> Iterator[Piece]:
    statuses = Counter(finding.status for finding in report.findings)
    levels = Counter(finding.confidence for finding in fresh)
    told = f"{counted(len(fresh), 'finding')} in {counted(report.files, 'file')}"
    if fresh:
        told += f" ({', '.join(f'{levels[level]} {level}' for level in STYLES if levels[level])})"
    if statuses[Status.SUPPRESSED]:
        told += f", {statuses[Status.SUPPRESSED]} suppressed"
    if statuses[Status.BASELINE]:
        told += f", {statuses[Status.BASELINE]} in the baseline"
    if report.skipped:
        told += f", {counted(len(report.skipped), 'file')} skipped"
    told += "".join(f", {text}" for text in read_otherwise(report.otherwise))
    if top is not None and len(fresh) > top:
        yield "yellow", f"{len(fresh) - top} more are not shown; --top 0 shows all\n"
    if report.program:
        yield "dim", f"{report.program}\n"
    yield "bold", told + "\n"
