"""Contract suites, steps and keywords for the tests of other projects."""

from __future__ import annotations

from floodline.testing._session_kit import SessionKit

__all__ = ["SessionKit"]
