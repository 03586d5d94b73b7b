"""Finds containers that only grow, in source code; imports nothing of the runtime."""

from __future__ import annotations

from floodline.scan._findings.audit import Audited
from floodline.scan._findings.finding import Finding, Proof
from floodline.scan._findings.report import Report
from floodline.scan._findings.rule import Rule
from floodline.scan._rules.registry import RULES
from floodline.scan._scan import Scan

__all__ = ["RULES", "Audited", "Finding", "Proof", "Report", "Rule", "Scan"]
