"""The row log of every store, blocking and awaited [T10]."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodline.stores import AsyncRowStore, MemoryStore, RowStore, SQLiteStore
from floodline.testing.store_contract import Clock, RowLogContract, Wall


class TestMemoryRowLog(RowLogContract):
    @pytest.fixture
    def made(self, clock: Clock, wall: Wall) -> Iterator[Any]:
        with MemoryStore(clock=clock, wall=wall) as store:
            yield store

    def test_a_store_and_its_twin_have_row_logs(self, made: Any) -> None:
        assert isinstance(made, RowStore)
        assert isinstance(made.aio, AsyncRowStore)


class TestSQLiteRowLog(TestMemoryRowLog):
    @pytest.fixture
    def made(self, tmp_path: Path, clock: Clock, wall: Wall) -> Iterator[Any]:
        with SQLiteStore(tmp_path / "sessions.db", clock=clock, wall=wall) as store:
            yield store
