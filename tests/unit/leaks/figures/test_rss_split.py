from __future__ import annotations

import ctypes

from floodline.leaks._figures import rss_split as split
from floodline.leaks._figures.rss_split import read_split


def test_without_the_counters_of_glibc_malloc_is_not_told(monkeypatch):
    split._mallinfo2.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    found = read_split()
    split._mallinfo2.cache_clear()
    assert (found.malloc_used, found.malloc_free, found.malloc_mapped) == (0, 0, 0)
    assert found.rss > 0
