"""Programs of a few lines, and what the rules find in them."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from floodline.scan import Finding, Scan


@pytest.fixture
def found(tmp_path) -> Callable[..., list[Finding]]:
    """Return what all rules find in files that are given by name, apart from low confidence."""

    def scan(**files: str) -> list[Finding]:
        for name, code in files.items():
            (tmp_path / f"{name}.py").write_text(dedent(code), encoding="utf-8")
        findings = Scan([tmp_path]).report(preview=True).findings
        return [finding for finding in findings if finding.confidence != "low"]

    return scan
