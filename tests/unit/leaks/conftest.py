"""What the tests of the leak engine share."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def untraced() -> Iterator[None]:
    """Take off the tracer of a coverage run, which else makes the feeder step back."""
    kept = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(kept)
