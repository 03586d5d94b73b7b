"""Runs all rules over a program: containers first, then the checks of single rules."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._findings.finding import LOW, Finding
from floodline.scan._proofs.judge import Judge
from floodline.scan._rules.containers import containers
from floodline.scan._rules.detectors import Check
from floodline.scan._rules.registry import DETECTORS

CHECKS = [detector for detector in DETECTORS if isinstance(detector, Check)]


def found_by_rules(judge: Judge, *, preview: bool) -> Iterator[Finding]:
    """Yield what the rules find; preview rules run only on request."""
    found = [*containers(judge)]
    for check in CHECKS:
        if not check.rule.preview:
            found += check.run(judge)
    yield from found
    if preview:
        told = {finding.symbol for finding in found if finding.confidence != LOW}
        for check in CHECKS:
            if check.rule.preview:
                for finding in check.run(judge):
                    if not (check.gives_way and finding.symbol in told):
                        yield finding
