from __future__ import annotations

import ctypes
from dataclasses import replace

from floodline import telemetry
from floodline.leaks._figures import rss_split as split
from floodline.leaks._figures.rss_split import judged_malloc, judged_split, read_split


def test_without_the_counters_of_glibc_malloc_is_not_told(monkeypatch):
    split._mallinfo2.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    found = read_split()
    split._mallinfo2.cache_clear()
    assert (found.malloc_used, found.malloc_free, found.malloc_mapped) == (0, 0, 0)
    assert found.rss > 0


def test_what_our_caches_in_c_code_hold_is_not_judged(monkeypatch):
    one = replace(read_split(), rss=100 << 20, malloc_used=20 << 20)
    monkeypatch.setattr(split, "read_split", lambda: one)
    monkeypatch.setattr(split, "read_malloc", lambda: (20 << 20, 2, 3))
    monkeypatch.setattr(telemetry, "native_bytes", lambda: 8 << 20)
    assert judged_split() == replace(one, rss=92 << 20, malloc_used=12 << 20)
    assert judged_malloc() == (12 << 20, 2, 3)


def test_a_malloc_that_says_nothing_says_nothing_less(monkeypatch):
    monkeypatch.setattr(split, "read_malloc", lambda: (0, 0, 0))
    monkeypatch.setattr(telemetry, "native_bytes", lambda: 8 << 20)
    assert judged_malloc() == (0, 0, 0)
    assert judged_split().malloc_used == 0
