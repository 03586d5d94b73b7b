"""What the tests of the web share."""

from __future__ import annotations

import pytest

from floodline.web import _live


@pytest.fixture(autouse=True)
def _looks_are_short(monkeypatch):
    """Ending a server waits for the look that is under way."""
    monkeypatch.setattr(_live, "LOOK", 0.02)
