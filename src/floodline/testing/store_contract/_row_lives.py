"""The contract of row logs over the life of a session, and under many callers."""

from __future__ import annotations

from typing import Any

from floodline.stores import Append, NewRow
from floodline.testing.store_contract._concurrency import run_threads
from floodline.testing.store_contract._fixtures import Clock, StoreFixtures, Wall
from floodline.testing.store_contract._row_logs import (
    ID,
    LOG,
    NAME,
    keys_of,
    lease_of,
    rows_of,
    save_rows,
)


class RowLifeContract(StoreFixtures):
    """Rows live and die with their session."""

    # -- living and dying with the session

    def test_rows_are_deleted_with_their_session(self, store: Any) -> None:
        save_rows(store, lease_of(store), rows_of("a", "b"))
        store.append_rows(NAME, "other", rows_of("x"))
        store.delete(NAME, ID, fence=lease_of(store).fence)
        assert store.count_rows(NAME, ID) == 0
        assert store.stats().log_rows == 1
        store.append_rows(NAME, ID, rows_of("c"))
        assert keys_of(store) == ["c"]
        assert keys_of(store, id="other") == ["x"]

    def test_a_session_with_many_rows_is_deleted_whole(self, store: Any) -> None:
        many = [f"k{n:04}" for n in range(1500)]
        store.append_rows(NAME, ID, rows_of(*many))
        assert store.count_rows(NAME, ID, LOG) == 1500
        store.delete(NAME, ID, fence=lease_of(store).fence)
        stats = store.stats()
        assert (stats.log_rows, stats.log_bytes) == (0, 0)
        store.append_rows(NAME, ID, rows_of(*many[:3]))
        assert keys_of(store) == many[:3]

    def test_rows_are_purged_with_their_session(self, store: Any, wall: Wall) -> None:
        save_rows(store, lease_of(store), rows_of("a", "b"))
        store.append_rows(NAME, "rows only", rows_of("x"))
        wall.now += 100
        store.append_rows(NAME, "used", rows_of("y"))
        gone = store.purge(NAME, unused=50, limit=10)
        assert sorted(gone) == [ID, "rows only"]
        assert store.count_rows(NAME, ID) == 0
        assert store.stats().log_rows == 1
        assert keys_of(store, id="used") == ["y"]

    def test_an_append_counts_as_use(self, store: Any, wall: Wall) -> None:
        save_rows(store, lease_of(store), [])
        wall.now += 700
        store.append_rows(NAME, ID, rows_of("a"))
        wall.now += 40
        assert store.purge(NAME, unused=50, limit=10) == []
        wall.now += 700
        assert store.purge(NAME, unused=50, limit=10) == [ID]

    def test_a_row_has_the_date_of_its_append(self, store: Any, wall: Wall, clock: Clock) -> None:
        store.append_rows(NAME, ID, rows_of("a"))
        clock.now += 5
        store.append_rows(NAME, ID, rows_of("b", "a"))
        assert [row.at for row in store.rows(NAME, ID, LOG)] == [wall.now - 5, wall.now]

    def test_names_that_have_sessions_are_listed_in_order(self, store: Any) -> None:
        assert store.names() == []
        for name in ("c", "a", "b"):
            store.append_rows(name, ID, rows_of("x"))
        fence = store.acquire("b", ID, "me", lease=15.0).fence
        store.delete("b", ID, fence=fence)
        assert store.names() == ["a", "c"]
        assert store.names(limit=1) == ["a"]
        assert store.names(after="a") == ["c"]

    # -- many at once

    def test_threads_that_append_to_one_log_lose_and_double_nothing(self, made: Any) -> None:
        check_appends([made] * 4)

    def test_connections_that_append_to_one_log_lose_and_double_nothing(
        self, made: Any, another: Any
    ) -> None:
        check_appends([made, another] * 2)


def check_appends(stores: list[Any]) -> None:
    """Append to one log from several threads, each row twice; every row must be there once."""

    def work(n: int) -> None:
        for turn in range(25):
            new = [Append(LOG, [NewRow(f"{n}.{turn}", b"%d" % n), NewRow(f"all.{turn}", b"")])]
            stores[n].append_rows(NAME, ID, new)
            assert stores[n].append_rows(NAME, ID, new) == 0

    run_threads([lambda n=n: work(n) for n in range(len(stores))])  # type: ignore[misc]  # n=n
    page = stores[0].rows(NAME, ID, LOG, limit=1000)
    wanted = {f"{n}.{turn}" for n in (*range(len(stores)), "all") for turn in range(25)}
    assert {row.key for row in page} == wanted
    assert len(page) == len({row.number for row in page}) == len(wanted)
    for n in range(len(stores)):  # each in its own order
        mine = [row.key for row in page if row.key.startswith(f"{n}.")]
        assert mine == [f"{n}.{turn}" for turn in range(25)]
