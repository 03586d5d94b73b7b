"""SQLite's page cache fills to a limit; telemetry says how far, so that nobody calls it a leak."""

from __future__ import annotations

import gc

from floodline import Sessions, telemetry
from floodline.stores._sqlite import database
from floodline.stores._sqlite.places import place_of
from floodline.stores._sqlite.schema import CACHE_BYTES


def test_the_cache_is_as_large_as_the_file_and_no_larger_than_its_limit(tmp_path, monkeypatch):
    gc.collect()
    before = telemetry.native_bytes()
    with Sessions(dict, store=f"sqlite:///{tmp_path}/chats.db") as sessions:
        for n in range(80):
            with sessions.use(f"user-{n}") as state:
                state["text"] = "hello " * 2000
        filled = telemetry.native_bytes() - before
        assert 80 * 12_000 * 0.7 < filled < 80 * 12_000 * 2
        monkeypatch.setattr(database, "CACHE_BYTES", 1000)
        assert telemetry.native_bytes() - before < filled
    gc.collect()
    assert telemetry.native_bytes() <= before
    assert CACHE_BYTES == 8 << 20


def test_remembered_places_are_full_before_a_soak_measures():
    assert place_of.cache_parameters()["maxsize"] <= 64
