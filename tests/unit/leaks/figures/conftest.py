"""What the tests of figures share."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest


@pytest.fixture
def walk() -> Callable[..., SimpleNamespace]:
    """Make a walk that counted these rows: count, length, text and bytes, one row a slot."""

    def counted(*rows: tuple[int, int, int, int]) -> SimpleNamespace:
        columns = zip(*rows, strict=True) if rows else ((), (), (), ())
        names = ("count", "length", "text", "bytes")
        return SimpleNamespace(**{n: list(c) for n, c in zip(names, columns, strict=True)})

    return counted
