from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def unfrozen() -> Iterator[None]:
    """Let referrers be found among the modules of the tests: frozen objects are not searched."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()
