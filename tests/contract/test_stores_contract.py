"""What every store must do, blocking and awaited: the suite that users get, for our own stores.

[T2] [T3] [T6] [T10]
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodline.errors import SessionConflict, StoreClosed
from floodline.stores import (
    AsyncRowStore,
    AsyncStore,
    Grant,
    Held,
    MemoryStore,
    RowStore,
    SQLiteStore,
    Store,
)
from floodline.stores._server import on_loop
from floodline.testing.store_contract import Clock, RowLogContract, StoreContract, Wall
from floodline.testing.store_contract._concurrency import check_fences, check_purge
from floodline.testing.store_contract._fixtures import put, take


class Ours(StoreContract, RowLogContract):
    def test_a_store_and_its_twin_follow_the_protocols(self, made: Any) -> None:
        assert isinstance(made, Store)
        assert isinstance(made, RowStore)
        assert isinstance(made.aio, AsyncStore)
        assert isinstance(made.aio, AsyncRowStore)
        assert not made.is_writer_thread()
        assert not made.aio.is_writer_thread()

    def test_leaving_the_with_block_closes_the_store(self, made: Any) -> None:
        with made as store:
            assert store.count("chats") == 0
        with pytest.raises(StoreClosed):
            store.count("chats")


class TestMemoryStore(Ours):
    @pytest.fixture
    def made(self, clock: Clock, wall: Wall) -> Iterator[Any]:
        with MemoryStore(clock=clock, wall=wall) as store:
            yield store

    def test_there_is_no_file(self, made: Any) -> None:
        assert (made.stats().kind, made.stats().file_bytes) == ("memory", None)


class TestSQLiteStore(Ours):
    @pytest.fixture
    def made(self, tmp_path: Path, clock: Clock, wall: Wall) -> Iterator[Any]:
        with SQLiteStore(tmp_path / "sessions.db", clock=clock, wall=wall) as store:
            yield store

    @pytest.fixture
    def another(self, tmp_path: Path, made: Any, clock: Clock, wall: Wall) -> Iterator[Any]:
        assert made.count("chat") == 0
        with SQLiteStore(tmp_path / "sessions.db", clock=clock, wall=wall) as store:
            yield store

    def test_stats_tell_the_size_of_the_file(self, made: Any) -> None:
        put(made, bytes(100_000))
        assert made.stats().kind == "sqlite"
        assert made.stats().file_bytes > 100_000


class OnServer(Ours):
    """A server; its twin runs the same code on the same threads, so it is tried less."""

    @pytest.fixture
    def opened(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def made(self, opened: Any, clock: Clock, wall: Wall) -> Iterator[Any]:
        with opened(clock=clock, wall=wall) as store:
            yield store

    @pytest.fixture
    def another(self, opened: Any, clock: Clock, wall: Wall) -> Iterator[Any]:
        with opened(clock=clock, wall=wall) as store:
            yield store

    @pytest.fixture
    def store(self, made: Any) -> Any:
        return made


class TestRedisStore(OnServer):
    @pytest.fixture
    def opened(self, redis: Any) -> Any:
        return redis

    def test_there_is_no_file(self, made: Any) -> None:
        assert (made.stats().kind, made.stats().file_bytes) == ("redis", None)


class TestRedisStoreOnItsLoop(TestRedisStore):
    """As from the 16th call on: an event loop asks the server by itself."""

    @pytest.fixture(autouse=True)
    def at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(on_loop, "_WORTH", 1)


class TestPostgresStore(OnServer):
    @pytest.fixture
    def opened(self, postgres: Any) -> Any:
        return postgres

    def test_stats_tell_the_size_of_the_tables(self, made: Any) -> None:
        put(made, random.Random(1).randbytes(100_000))
        assert made.stats().kind == "postgres"
        assert made.stats().file_bytes > 100_000

    def test_fences_are_handed_out_one_at_a_time(self, made: Any, pg: Any) -> None:
        psycopg = pytest.importorskip("psycopg")
        put(made, b"state")
        lock = "SELECT pg_advisory_lock(hashtext('\"floodline\".fences'))"
        with psycopg.connect(pg.url) as first, psycopg.connect(pg.url) as second:
            first.execute(lock)  # as if another connection were between its look and its step
            second.execute("SET lock_timeout = '20ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                second.execute('SELECT "floodline".next_fences(1, 0)')

    def test_who_waited_for_a_lease_gets_a_fence_of_its_own(self, made: Any, pg: Any) -> None:
        psycopg = pytest.importorskip("psycopg")
        put(made, b"state")
        take(made, lease=0.0)
        found: list[Any] = []
        late = threading.Thread(target=lambda: found.append(take(made, owner="late")))
        ask = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        draw = 'SELECT "floodline".next_fences(1, 0)'
        with psycopg.connect(pg.url) as other:
            ahead = "SELECT setval('\"floodline\".fences', last_value + 1000000000000)"
            other.execute(f'{ahead} FROM "floodline".fences')  # so that no clock makes a gap
            other.execute('SELECT FROM "floodline".leases FOR UPDATE')
            late.start()
            while not other.execute(ask).fetchone()[0]:  # until it has a fence, and waits
                pass
            (theirs,) = other.execute(draw).fetchone()
            other.execute('UPDATE "floodline".leases SET fence = %s', (theirs,))
            (elsewhere,) = other.execute(draw).fetchone()
        late.join()
        assert found[0].fence > elsewhere > theirs


# ---- the suite finds what it is for


class Repeating(MemoryStore):
    """Goes back to an old fence, like a replica that was promoted while it lagged."""

    asked = 0

    def acquire(self, *args: Any, **options: Any) -> Grant | Held:
        self.asked += 1
        if self.asked % 7 == 0:
            self._table._fence -= 2
        return super().acquire(*args, **options)


def test_a_store_that_repeats_a_fence_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_fences([Repeating()] * 4)


class Careless(MemoryStore):
    """A purge takes leases along, as if it had looked for them too early."""

    def acquire(self, *args: Any, **options: Any) -> Grant | Held:
        granted = super().acquire(*args, **options)
        if self._clock() > 1000.0:  # the rows are due
            self._table._leases.clear()
        return granted


def test_a_store_that_purges_what_is_leased_is_caught() -> None:
    clock = Clock()
    wall = Wall(clock, 0.0)
    with pytest.raises(SessionConflict):
        check_purge(store := Careless(clock=clock, wall=wall), store, wall)
