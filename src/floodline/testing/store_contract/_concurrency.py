"""The contract of many callers at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from floodline.errors import SessionConflict
from floodline.stores import Grant, Held, Record
from floodline.testing.store_contract._fixtures import (
    StoreFixtures,
    Wall,
    put,
    take,
    write,
)


class ConcurrencyContract(StoreFixtures):
    """Threads, tasks, connections, and answers that are lost."""

    # -- many at once

    def test_threads_that_count_in_one_row_lose_nothing(self, made: Any) -> None:
        count_in_threads([made] * 8)
        assert made.load("chat", "a") == Record(200, b"200")

    def test_tasks_that_count_in_one_row_lose_nothing(self, made: Any) -> None:
        twin = made.aio

        async def work(owner: str) -> None:
            for _ in range(10):
                grant: Any = None
                while not isinstance(grant, Grant):
                    grant = await twin.acquire("chat", "a", owner, lease=15.0)
                    await asyncio.sleep(0)
                total = int(grant.envelope or b"0") + 1
                await twin.save(
                    "chat",
                    "a",
                    b"%d" % total,
                    fence=grant.fence,
                    version=grant.version,
                    write_id=f"w{grant.fence}",
                    release=True,
                )

        async def main() -> Any:
            await asyncio.gather(*(work(f"t{n}") for n in range(10)))
            return await twin.load("chat", "a")

        assert asyncio.run(main()) == Record(100, b"100")

    def test_one_refused_write_does_not_harm_its_neighbours(self, made: Any) -> None:
        twin = made.aio

        async def save(id: str, fence: int) -> Any:
            return await twin.save(
                "chat", id, b"x", fence=fence, version=0, write_id=f"w{fence}", release=True
            )

        async def main() -> list[Any]:
            grants = [await twin.acquire("chat", f"id{n}", "me", lease=15.0) for n in range(20)]
            fences = [grant.fence if n % 2 else 9**18 for n, grant in enumerate(grants)]
            saves = (save(f"id{n}", fence) for n, fence in enumerate(fences))
            return await asyncio.gather(*saves, return_exceptions=True)

        results = asyncio.run(main())
        assert results[1::2] == [1] * 10
        assert all(isinstance(result, SessionConflict) for result in results[0::2])
        assert len({id(result) for result in results[0::2]}) == 10
        assert made.count("chat") == 10
        assert made.stats().conflicts == 10

    # -- several connections

    def test_connections_that_count_in_one_row_lose_nothing(self, made: Any, another: Any) -> None:
        count_in_threads([made, another] * 3)
        assert made.load("chat", "a") == another.load("chat", "a") == Record(150, b"150")

    def test_what_one_connection_has_written_another_sees(self, made: Any, another: Any) -> None:
        put(made, b"one")
        assert another.load("chat", "a") == Record(1, b"one")
        assert another.count("chat") == 1
        take(made, owner="me")
        held = another.acquire("chat", "a", "you", lease=15.0)
        assert isinstance(held, Held)
        assert held.owner == "me"

    def test_a_lease_taken_by_another_connection_fences_the_first(
        self, made: Any, another: Any
    ) -> None:
        old = take(made)
        new = take(another)
        assert new.fence > old.fence
        with pytest.raises(SessionConflict):
            write(made, b"late", old)
        assert write(another, b"good", new) == 1
        assert [kept.envelope for kept in another.conflicts()] == [b"late"]

    def test_closing_one_connection_leaves_the_other(self, made: Any, another: Any) -> None:
        put(made, b"one")
        another.close()
        assert put(made, b"two") == 2

    # -- a repeated fence

    def test_no_fence_is_given_twice(self, made: Any) -> None:
        check_fences([made] * 4)

    def test_no_fence_is_given_twice_by_two_connections(self, made: Any, another: Any) -> None:
        check_fences([made, another] * 2)

    def test_an_old_owner_cannot_write_whatever_happened_to_its_row(self, made: Any) -> None:
        old = take(made)
        version = write(made, b"one", old)
        made.delete("chat", "a", fence=take(made).fence)
        put(made, b"anew")
        for guess in (0, version, version + 1, version + 2):
            with pytest.raises(SessionConflict):
                write(made, b"late", old, version=guess, write_id=f"late {guess}")
        assert made.load("chat", "a").envelope == b"anew"

    # -- a lost answer

    def test_an_acquire_whose_answer_was_lost_is_asked_again(self, store: Any) -> None:
        lost = take(store)
        again = take(store)
        assert again.fence > lost.fence
        assert write(store, b"one", again) == 1

    def test_a_save_whose_answer_was_lost_is_found_or_repeated(self, store: Any) -> None:
        grant = take(store)
        version = write(store, b"one", grant, write_id="w", release=True)  # lost
        assert store.written("chat", "a", "w") == version
        assert write(store, b"one", grant, write_id="w", release=True) == version
        assert store.conflicts() == []

    def test_a_save_that_never_arrived_is_not_found_and_can_be_repeated(self, store: Any) -> None:
        grant = take(store)
        assert store.written("chat", "a", "w") is None
        assert write(store, b"one", grant, write_id="w") == 1

    def test_a_save_that_was_written_over_is_not_done_again(self, store: Any) -> None:
        grant = take(store)
        version = write(store, b"one", grant, write_id="w", release=True)  # lost
        put(store, b"two")
        with suppress(SessionConflict):  # or the store still knows it
            assert write(store, b"one", grant, write_id="w", release=True) == version
        assert store.load("chat", "a") == Record(version + 1, b"two")

    def test_a_release_and_a_renewal_whose_answers_were_lost_are_repeated(self, store: Any) -> None:
        grant = take(store)
        for _ in range(2):
            assert store.renew("chat", "me", {"a": grant.fence}, lease=15.0) == set()
        for _ in range(2):
            store.release("chat", "a", grant.fence)
        assert store.renew("chat", "me", {"a": grant.fence}, lease=15.0) == {"a"}
        take(store, owner="you")

    def test_a_delete_whose_answer_was_lost_harms_no_later_row(self, store: Any) -> None:
        put(store, b"one")
        fence = take(store).fence
        store.delete("chat", "a", fence=fence)  # lost
        put(store, b"anew")
        with pytest.raises(SessionConflict):
            store.delete("chat", "a", fence=fence)
        assert store.load("chat", "a").envelope == b"anew"

    # -- a purge against an acquire

    def test_a_grant_given_during_a_purge_can_write(self, made: Any, wall: Wall) -> None:
        check_purge(made, made, wall)

    def test_a_grant_given_during_a_purge_by_another_connection_can_write(
        self, made: Any, another: Any, wall: Wall
    ) -> None:
        check_purge(made, another, wall)


def check_purge(store: Any, purger: Any, wall: Wall) -> None:
    """Use rows that are due to be purged while somebody purges; no use may be refused."""
    ids = [f"id{n}" for n in range(40)]
    for one in ids:
        put(store, b"old", one)
    wall.now += 1000
    purged: list[str] = []

    def purge() -> None:
        while gone := purger.purge("chat", unused=100, limit=1):
            purged.extend(gone)

    def use() -> None:
        for one in reversed(ids):
            grant = take(store, one)
            terms = {"version": grant.version, "write_id": f"use of {one}", "release": True}
            assert store.save("chat", one, b"new", fence=grant.fence, **terms) > grant.version

    run_threads([purge, use])
    assert store.ids("chat") == sorted(ids)
    assert all(store.load("chat", one).envelope == b"new" for one in ids)
    assert len(purged) == len(set(purged))


def check_fences(stores: list[Any]) -> None:
    """Take leases of rows from several threads; every fence must be new."""
    found: list[list[int]] = [[] for _ in stores]

    def work(n: int) -> None:
        for turn in range(20):
            grant = stores[n].acquire("chat", f"id{turn % 3}", f"owner {n}", lease=0.0)
            if isinstance(grant, Grant):
                found[n].append(grant.fence)

    run_threads([lambda n=n: work(n) for n in range(len(stores))])  # type: ignore[misc]  # n=n
    fences = [fence for mine in found for fence in mine]
    assert len(fences) == len(set(fences)) > 0
    assert all(mine == sorted(mine) for mine in found)
    assert take(stores[0], "later").fence > max(fences)


def count_in_threads(stores: list[Any]) -> None:
    """Count to 25 in one row from each of several threads."""

    def work(n: int) -> None:
        for _ in range(25):
            while isinstance(grant := stores[n].acquire("chat", "a", f"t{n}", lease=15.0), Held):
                threading.Event().wait(0.0005)
            total = int(grant.envelope or b"0") + 1
            write(stores[n], b"%d" % total, grant, release=True)

    run_threads([lambda n=n: work(n) for n in range(len(stores))])  # type: ignore[misc]  # n=n


def run_threads(works: list[Callable[[], None]]) -> None:
    """Run functions at the same time, and raise what the first of them raised."""
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
