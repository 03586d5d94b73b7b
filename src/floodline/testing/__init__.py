"""Contract suites for the tests of other projects."""

from __future__ import annotations

__all__: list[str] = []
