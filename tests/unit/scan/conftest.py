"""No test of the scan touches the caches of the user."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_caches(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("caches")))
