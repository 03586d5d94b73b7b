"""Finds containers that only grow, in source code; imports nothing from the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodline._lazy import lazy_names

if TYPE_CHECKING:
    from floodline.scan._findings.audit import Audited
    from floodline.scan._findings.finding import Finding, Proof
    from floodline.scan._findings.report import Report
    from floodline.scan._findings.rule import Rule
    from floodline.scan._rules.registry import RULES
    from floodline.scan._scan import Scan

__all__ = ["RULES", "Audited", "Finding", "Proof", "Report", "Rule", "Scan"]

_HOMES = {
    "RULES": "_rules.registry",
    "Audited": "_findings.audit",
    "Finding": "_findings.finding",
    "Proof": "_findings.finding",
    "Report": "_findings.report",
    "Rule": "_findings.rule",
    "Scan": "_scan",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
