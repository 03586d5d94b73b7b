"""What the tests of the web share."""

from __future__ import annotations

import pytest

from floodline.web._dashboard import event_stream


@pytest.fixture(autouse=True)
def _looks_are_short(monkeypatch):
    """Ending a server waits for the look that is under way."""
    monkeypatch.setattr(event_stream, "LOOK", 0.02)
