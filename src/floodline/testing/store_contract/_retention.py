"""The contract of retention, quarantine, figures and the end."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from floodline.errors import SessionConflict, StoreClosed
from floodline.stores import Record, StoreStats
from floodline.testing.store_contract._concurrency import run_threads
from floodline.testing.store_contract._fixtures import (
    StoreFixtures,
    Wall,
    put,
    take,
)


class RetentionContract(StoreFixtures):
    """Retention by a date that may be wrong; what is kept, counted and closed."""

    # -- retention

    def test_unused_rows_are_purged_oldest_first_and_in_slices(
        self, store: Any, wall: Wall
    ) -> None:
        for n in range(5):
            put(store, b"x", f"id{n}")
            wall.now += 1000
        assert store.purge("chat", unused=1500, limit=2) == ["id0", "id1"]
        assert store.purge("chat", unused=1500, limit=10) == ["id2", "id3"]
        assert store.purge("chat", unused=1500, limit=10) == []
        assert store.ids("chat") == ["id4"]
        assert store.count("chat") == 1

    def test_a_row_is_unused_to_the_second(self, store: Any, wall: Wall) -> None:
        put(store, b"x")
        wall.now += 9
        assert store.purge("chat", unused=10, limit=10) == []
        wall.now += 1
        assert store.purge("chat", unused=10, limit=10) == ["a"]

    def test_a_use_without_a_write_counts_as_use(self, store: Any, wall: Wall) -> None:
        put(store, b"x")
        for _ in range(2):
            wall.now += 700
            store.release("chat", "a", take(store).fence)
        wall.now += 9
        assert store.purge("chat", unused=10, limit=10) == []

    def test_an_overwritten_row_is_used_anew(self, store: Any, wall: Wall) -> None:
        put(store, b"x")
        wall.now += 5000
        put(store, b"y")
        wall.now += 9
        assert store.purge("chat", unused=10, limit=10) == []

    def test_a_leased_row_is_not_purged(self, store: Any, wall: Wall) -> None:
        put(store, b"x")
        take(store)
        wall.now += 14
        assert store.purge("chat", unused=10, limit=10) == []
        wall.now += 10  # the lease ended 9 seconds ago
        assert store.purge("chat", unused=10, limit=10) == []
        wall.now += 1
        assert store.purge("chat", unused=10, limit=10) == ["a"]
        assert store.stats().leases == 0

    def test_purging_one_name_leaves_the_others(self, store: Any, wall: Wall) -> None:
        put(store, b"x")
        wall.now += 100
        assert store.purge("other", unused=10, limit=10) == []
        assert store.count("chat") == 1

    def test_a_purged_row_comes_again_with_a_higher_version(self, store: Any, wall: Wall) -> None:
        put(store, b"x")
        version = put(store, b"y")
        wall.now += 100
        store.purge("chat", unused=10, limit=10)
        assert put(store, b"z") > version

    # -- quarantine

    def test_quarantine_keeps_a_copy_once_and_leaves_the_row(self, store: Any, wall: Wall) -> None:
        put(store, b"broken")
        for _ in range(3):
            store.quarantine("chat", "a", b"broken", "checksum")
        store.quarantine("chat", "a", b"broken otherwise", "short")
        store.quarantine("chat", "b", b"broken", "checksum")
        kept = store.quarantined()
        assert [(one.id, one.why, one.envelope) for one in kept] == [
            ("b", "checksum", b"broken"),
            ("a", "short", b"broken otherwise"),
            ("a", "checksum", b"broken"),
        ]
        assert kept[0].at == wall.now
        assert store.quarantined("other") == []
        assert store.load("chat", "a") == Record(1, b"broken")
        assert store.stats().quarantined == 3

    def test_what_is_kept_is_capped_by_rows_and_drops_are_counted(self, made: Any) -> None:
        def keep(first: int) -> None:
            for n in range(first, 1003, 8):
                made.quarantine("chat", "a", b"%d" % n, "why")

        run_threads([partial(keep, first) for first in range(8)])
        stats = made.stats()
        assert (stats.quarantined, stats.quarantine_dropped) == (1000, 3)
        assert len(made.quarantined(limit=2000)) == 1000

    def test_what_is_kept_is_capped_by_bytes(self, made: Any) -> None:
        store = made  # the twin would only take its time
        for n in range(5):
            store.quarantine("chat", "a", b"%d" % n + bytes(20 * 1024**2), "why")
        stats = store.stats()
        assert (stats.quarantined, stats.quarantine_dropped) == (3, 2)
        for _ in range(4):
            with pytest.raises(SessionConflict):
                store.save(
                    "chat",
                    "a",
                    bytes(20 * 1024**2),
                    fence=9**18,
                    version=0,
                    write_id="w",
                    release=False,
                )
        stats = store.stats()
        assert (stats.conflicts, stats.conflicts_dropped) == (3, 1)

    # -- figures

    def test_stats_count_rows_bytes_and_leases(self, store: Any) -> None:
        put(store, b"12345", "a")
        put(store, b"123", "b")
        put(store, b"1", "b")
        take(store, "a")
        stats = store.stats()
        assert isinstance(stats, StoreStats)
        assert (stats.rows, stats.row_bytes, stats.leases) == (2, 6, 1)
        store.delete("chat", "a", fence=take(store, "a").fence)
        assert (store.stats().rows, store.stats().row_bytes) == (1, 1)
        assert store.count("chat") == 1

    # -- closing

    def test_a_closed_store_refuses_and_closes_again(self, made: Any) -> None:
        made.close()
        made.close()
        with pytest.raises(StoreClosed, match="close"):
            made.load("chat", "a")
        with pytest.raises(StoreClosed, match="close"):
            asyncio.run(made.aio.load("chat", "a"))

    def test_closing_the_twin_closes_the_store(self, made: Any) -> None:
        asyncio.run(made.aio.close())
        with pytest.raises(StoreClosed):
            made.count("chat")

    # -- a date that is wrong

    def test_a_date_that_jumps_deletes_nothing_before_it_has_lasted(
        self, store: Any, wall: Wall
    ) -> None:
        put(store, b"x")
        wall.now += 5
        right = wall.ahead
        wall.ahead += 40 * 86_400
        for _ in range(3):
            assert store.purge("chat", unused=86_400, limit=10) == []
            wall.now += 1000
        wall.ahead = right
        assert store.purge("chat", unused=86_400, limit=10) == []
        wall.ahead += 40 * 86_400
        assert store.purge("chat", unused=86_400, limit=10) == []  # the hour begins again
        wall.now += 3599
        assert store.purge("chat", unused=86_400, limit=10) == []
        wall.now += 1
        assert store.purge("chat", unused=86_400, limit=10) == ["a"]

    def test_a_date_that_never_stays_the_same_is_never_believed(
        self, store: Any, wall: Wall
    ) -> None:
        put(store, b"x")
        for _ in range(10):
            wall.ahead += 86_400
            wall.now += 3000
            assert store.purge("chat", unused=86_400, limit=10) == []

    def test_a_use_while_the_date_is_wrong_is_not_an_old_one(self, store: Any, wall: Wall) -> None:
        put(store, b"x")
        right = wall.ahead
        wall.ahead -= 40 * 86_400
        put(store, b"y")  # would be stamped with a day of last month
        assert store.purge("chat", unused=3600, limit=10) == []
        wall.ahead = right
        wall.now += 3599
        assert store.purge("chat", unused=3600, limit=10) == []
        wall.now += 1
        assert store.purge("chat", unused=3600, limit=10) == ["a"]

    def test_a_use_stamped_by_a_date_of_the_future_does_not_stay_for_ever(
        self, store: Any, wall: Wall
    ) -> None:
        right = wall.ahead
        put(store, b"x", id="other")
        wall.ahead += 40 * 86_400
        put(store, b"y")
        wall.ahead = right
        assert store.purge("chat", unused=86_400, limit=10) == []
        wall.now += 2 * 86_400
        assert sorted(store.purge("chat", unused=86_400, limit=10)) == ["a", "other"]

    def test_a_date_that_is_put_right_a_little_is_believed_at_once(
        self, store: Any, wall: Wall
    ) -> None:
        put(store, b"x")
        wall.ahead += 50
        assert store.purge("chat", unused=50, limit=10) == ["a"]
