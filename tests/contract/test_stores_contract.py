"""What every store must do, blocking and awaited."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from floodline.errors import SessionConflict, StoreClosed
from floodline.stores import (
    AsyncStore,
    Grant,
    Held,
    MemoryStore,
    Record,
    SQLiteStore,
    Store,
    StoreStats,
    new_owner,
)


class Clock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Wall(Clock):
    """A date that moves with the clock of the leases, as on a machine whose date is right."""

    def __init__(self, clock: Clock, ahead: float) -> None:
        self.clock, self.ahead = clock, ahead

    @property  # type: ignore[override]  # an attribute that both have to follow
    def now(self) -> float:
        return self.clock.now + self.ahead

    @now.setter
    def now(self, now: float) -> None:
        self.clock.now = now - self.ahead


class Awaited:
    """The coroutine twin, called like the blocking one."""

    def __init__(self, store: Any) -> None:
        self._store, self._runner = store, asyncio.Runner()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store.aio, name)
        return lambda *args, **options: self._runner.run(method(*args, **options))

    def close(self) -> None:
        self._runner.run(self._store.aio.close())
        self._runner.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def wall(clock: Clock) -> Wall:
    return Wall(clock, 1_000_000.0)


@pytest.fixture
def dead_owner() -> str:
    program = "from floodline.stores import new_owner; print(new_owner('gone'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return done.stdout.decode().strip()


KINDS = ["memory", "sqlite", "redis", "postgres"]
# the twins of the servers run the same code on the same threads, but for the tests of `made`
USES = [(kind, use) for kind in KINDS[:2] for use in ("blocking", "awaited")]
USES += [(kind, "blocking") for kind in KINDS[2:]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames:
        metafunc.parametrize(("made", "store"), USES, indirect=True)
    elif "made" in metafunc.fixturenames:
        metafunc.parametrize("made", KINDS, indirect=True)


@pytest.fixture
def made(request: Any, tmp_path: Path, clock: Clock, wall: Wall) -> Iterator[Any]:
    made: Any
    if request.param == "memory":
        made = MemoryStore(clock=clock, wall=wall)
    elif request.param == "sqlite":
        made = SQLiteStore(tmp_path / "sessions.db", clock=clock, wall=wall)
    else:
        open_store = request.getfixturevalue(request.param)
        made = open_store(clock=clock, wall=wall)
    yield made
    made.close()


@pytest.fixture
def store(request: Any, made: Any) -> Iterator[Any]:
    used = made if request.param == "blocking" else Awaited(made)
    yield used
    used.close()


def take(store: Any, id: str = "a", owner: str = "me", **options: Any) -> Grant:
    grant = store.acquire("chat", id, owner, **{"lease": 15.0, **options})
    assert isinstance(grant, Grant)
    return grant


def put(store: Any, content: bytes, id: str = "a", write_id: str | None = None) -> int:
    grant = take(store, id)
    version: int = store.save(
        "chat",
        id,
        content,
        fence=grant.fence,
        version=grant.version,
        write_id=write_id or f"w{grant.fence}",
        release=True,
    )
    return version


def write(store: Any, content: bytes, grant: Grant, **options: Any) -> int:
    terms = {"version": grant.version, "write_id": f"w{grant.fence}", "release": False, **options}
    version: int = store.save("chat", "a", content, fence=grant.fence, **terms)
    return version


# -- the shape


@pytest.mark.parametrize("kind", [MemoryStore, SQLiteStore])
def test_a_store_and_its_twin_follow_the_protocols(kind: Any, tmp_path: Path) -> None:
    made = kind() if kind is MemoryStore else kind(tmp_path / "s.db")
    assert isinstance(made, Store)
    assert isinstance(made.aio, AsyncStore)
    assert not made.is_writer_thread()
    assert not made.aio.is_writer_thread()
    made.close()


# -- rows


def test_what_was_saved_is_loaded(store: Any) -> None:
    assert put(store, b"one") == 1
    assert store.load("chat", "a") == Record(1, b"one")


def test_an_absent_row_is_none(store: Any) -> None:
    assert store.load("chat", "a") is None
    assert store.count("chat") == 0
    assert store.ids("chat") == []


def test_each_write_counts_the_version_up(store: Any) -> None:
    assert [put(store, b"%d" % n) for n in range(3)] == [1, 2, 3]


def test_names_do_not_mix(store: Any) -> None:
    put(store, b"one")
    assert store.load("other", "a") is None
    assert store.acquire("other", "a", "somebody", lease=15.0).version == 0


def test_ids_come_in_order_and_in_pages(store: Any) -> None:
    for one in ("b", "ä", "a", "c"):
        put(store, b"", one)
    assert store.ids("chat") == ["a", "b", "c", "ä"]
    assert store.ids("chat", after="a", limit=2) == ["b", "c"]
    assert store.ids("chat", after="ä") == []


def test_any_text_is_an_id(store: Any) -> None:
    odd = ["'; DROP TABLE sessions; --", "a\x00b", "\N{SNOWMAN}" * 100, " ", "%"]
    for one in odd:
        put(store, one.encode(), one)
    assert [store.load("chat", one).envelope for one in odd] == [one.encode() for one in odd]


def test_an_empty_envelope_is_a_row(store: Any) -> None:
    put(store, b"")
    assert store.load("chat", "a") == Record(1, b"")


# -- leases


def test_a_grant_brings_the_row_unless_its_version_is_known(store: Any) -> None:
    put(store, b"one")
    for known, envelope in ((None, b"one"), (1, None), (7, b"one")):
        grant = take(store, known=known)
        assert (grant.version, grant.envelope) == (1, envelope)


def test_fences_rise_over_all_rows(store: Any) -> None:
    fences = [take(store, one).fence for one in "abca"]
    assert sorted(set(fences)) == fences


def test_a_held_lease_is_told_with_its_owner_and_rest(store: Any, clock: Clock) -> None:
    take(store)
    clock.now += 5
    assert store.acquire("chat", "a", "you", lease=15.0) == Held("me", 10.0)


def test_the_owner_who_asks_again_gets_a_new_fence(store: Any) -> None:
    old = take(store)
    new = take(store)
    assert new.fence > old.fence
    with pytest.raises(SessionConflict, match="lease was lost"):
        write(store, b"late", old)
    write(store, b"good", new)


def test_a_lease_that_ran_out_is_taken_over_and_the_old_one_cannot_write(
    store: Any, clock: Clock
) -> None:
    old = take(store)
    clock.now += 15
    new = take(store, owner="you")
    assert new.fence > old.fence
    with pytest.raises(SessionConflict):
        write(store, b"late", old)
    assert store.load("chat", "a") is None


def test_a_lease_that_ran_out_but_was_not_taken_still_writes(store: Any, clock: Clock) -> None:
    grant = take(store)
    clock.now += 1000
    assert write(store, b"slow", grant) == 1


def test_a_lease_from_before_a_reboot_does_not_hold(store: Any, clock: Clock) -> None:
    clock.now = 1_000_000.0
    old = take(store)
    clock.now = 10.0  # the clock of leases starts again at boot
    assert take(store, owner="you").fence > old.fence


def test_a_dead_owner_is_replaced_at_once(store: Any, dead_owner: str) -> None:
    old = take(store, owner=dead_owner)
    assert take(store, owner=new_owner("you")).fence > old.fence


def test_a_living_owner_of_this_process_is_not_replaced(store: Any) -> None:
    take(store, owner=new_owner("me"))
    assert isinstance(store.acquire("chat", "a", new_owner("you"), lease=15.0), Held)


def test_renewing_prolongs_and_tells_what_is_lost(store: Any, clock: Clock) -> None:
    a, b = take(store, "a"), take(store, "b")
    clock.now += 15
    take(store, "b", owner="you")
    assert store.renew("chat", "me", {"a": a.fence, "b": b.fence, "c": 99}, lease=15.0) == {
        "b",
        "c",
    }
    clock.now += 14
    assert isinstance(store.acquire("chat", "a", "you", lease=15.0), Held)


def test_a_lease_that_ran_out_but_was_not_taken_can_be_renewed(store: Any, clock: Clock) -> None:
    grant = take(store)
    clock.now += 100
    assert store.renew("chat", "me", {"a": grant.fence}, lease=15.0) == set()
    assert isinstance(store.acquire("chat", "a", "you", lease=15.0), Held)


def test_nobody_renews_the_lease_of_another_owner(store: Any) -> None:
    grant = take(store)
    assert store.renew("chat", "you", {"a": grant.fence}, lease=15.0) == {"a"}


def test_a_released_lease_is_free_and_cannot_write(store: Any) -> None:
    grant = take(store)
    store.release("chat", "a", grant.fence)
    take(store, owner="you")
    with pytest.raises(SessionConflict):
        write(store, b"late", grant)


def test_releasing_what_is_lost_is_harmless(store: Any) -> None:
    old = take(store)
    take(store)
    store.release("chat", "a", old.fence)
    store.release("chat", "never", 77)
    assert isinstance(store.acquire("chat", "a", "you", lease=15.0), Held)


def test_saving_with_release_frees_the_lease(store: Any) -> None:
    put(store, b"one")
    assert take(store, owner="you").version == 1


def test_saving_without_release_keeps_the_lease(store: Any) -> None:
    grant = take(store)
    assert write(store, b"one", grant) == 1
    assert isinstance(store.acquire("chat", "a", "you", lease=15.0), Held)
    assert write(store, b"two", grant, version=1, write_id="second") == 2


# -- compare and set


def test_a_write_over_another_version_is_refused_and_kept(store: Any, wall: Wall) -> None:
    put(store, b"one")
    grant = take(store)
    wall.now += 7
    with pytest.raises(SessionConflict, match=r"'a' of 'chat'.*version 5.*has 1"):
        write(store, b"mine", grant, version=5)
    assert store.load("chat", "a") == Record(1, b"one")
    (kept,) = store.conflicts()
    assert (kept.name, kept.id, kept.at, kept.envelope) == ("chat", "a", wall.now, b"mine")
    assert "version 5" in kept.why
    assert store.stats().conflicts == 1


def test_a_new_row_is_not_written_over_an_old_one(store: Any) -> None:
    put(store, b"one")
    grant = take(store)
    with pytest.raises(SessionConflict, match="has 1"):
        write(store, b"new", grant, version=0)


def test_a_write_without_its_row_is_refused(store: Any) -> None:
    grant = take(store)
    with pytest.raises(SessionConflict, match="has none"):
        write(store, b"x", grant, version=3)


def test_conflicts_are_told_newest_first_and_by_name(store: Any) -> None:
    for n in range(3):
        with pytest.raises(SessionConflict):
            store.save(
                f"name{n % 2}", "a", b"%d" % n, fence=99, version=0, write_id="w", release=False
            )
    assert [kept.envelope for kept in store.conflicts()] == [b"2", b"1", b"0"]
    assert [kept.envelope for kept in store.conflicts("name0")] == [b"2", b"0"]
    assert [kept.envelope for kept in store.conflicts(limit=1)] == [b"2"]


# -- one write id, one write


def test_the_same_write_id_is_one_write(store: Any) -> None:
    grant = take(store)
    assert write(store, b"one", grant, write_id="w") == 1
    assert write(store, b"one", grant, write_id="w") == 1
    assert store.load("chat", "a") == Record(1, b"one")


def test_a_write_is_known_by_its_id_after_its_lease_ended(store: Any) -> None:
    grant = take(store)
    assert write(store, b"one", grant, write_id="w", release=True) == 1
    assert write(store, b"one", grant, write_id="w", release=True) == 1
    take(store, owner="you")
    assert write(store, b"one", grant, write_id="w", release=True) == 1
    assert store.conflicts() == []


def test_a_repeated_write_still_ends_its_lease(store: Any) -> None:
    grant = take(store)
    write(store, b"one", grant, write_id="w")
    write(store, b"one", grant, write_id="w", release=True)
    assert take(store, owner="you").version == 1


def test_a_write_can_be_looked_up_while_it_is_the_last(store: Any) -> None:
    assert store.written("chat", "a", "w1") is None
    put(store, b"one", write_id="w1")
    assert store.written("chat", "a", "w1") == 1
    put(store, b"two", write_id="w2")
    assert store.written("chat", "a", "w1") is None
    assert store.written("chat", "a", "w2") == 2


# -- deleting


def test_deleting_tells_whether_there_was_a_row(store: Any) -> None:
    put(store, b"one")
    assert store.delete("chat", "a", fence=take(store).fence) is True
    assert store.load("chat", "a") is None
    assert store.delete("chat", "a", fence=take(store).fence) is False
    assert store.stats().leases == 0


def test_deleting_with_a_lost_lease_is_refused(store: Any) -> None:
    put(store, b"one")
    old = take(store)
    take(store)
    with pytest.raises(SessionConflict, match="lease was lost"):
        store.delete("chat", "a", fence=old.fence)
    assert store.load("chat", "a") == Record(1, b"one")


def test_a_hold_from_before_a_delete_cannot_write(store: Any) -> None:
    grant = take(store)
    version = write(store, b"one", grant)
    store.delete("chat", "a", fence=grant.fence)
    with pytest.raises(SessionConflict):
        write(store, b"late", grant, version=version, write_id="late")
    assert store.load("chat", "a") is None


def test_a_row_that_comes_again_never_has_a_version_it_had_before(store: Any) -> None:
    old = [put(store, b"old %d" % n) for n in range(3)]
    store.delete("chat", "a", fence=take(store).fence)
    new = [put(store, b"new %d" % n) for n in range(3)]
    assert not set(old) & set(new)
    assert take(store, known=old[0]).envelope == b"new 2"


def test_fences_do_not_go_back_when_all_rows_are_deleted(store: Any) -> None:
    put(store, b"one")
    fence = take(store).fence
    store.delete("chat", "a", fence=fence)
    assert take(store).fence > fence


# -- retention


def test_unused_rows_are_purged_oldest_first_and_in_slices(store: Any, wall: Wall) -> None:
    for n in range(5):
        put(store, b"x", f"id{n}")
        wall.now += 1000
    assert store.purge("chat", unused=1500, limit=2) == ["id0", "id1"]
    assert store.purge("chat", unused=1500, limit=10) == ["id2", "id3"]
    assert store.purge("chat", unused=1500, limit=10) == []
    assert store.ids("chat") == ["id4"]
    assert store.count("chat") == 1


def test_a_row_is_unused_to_the_second(store: Any, wall: Wall) -> None:
    put(store, b"x")
    wall.now += 9
    assert store.purge("chat", unused=10, limit=10) == []
    wall.now += 1
    assert store.purge("chat", unused=10, limit=10) == ["a"]


def test_a_use_without_a_write_counts_as_use(store: Any, wall: Wall) -> None:
    put(store, b"x")
    for _ in range(2):
        wall.now += 700
        store.release("chat", "a", take(store).fence)
    wall.now += 9
    assert store.purge("chat", unused=10, limit=10) == []


def test_an_overwritten_row_is_used_anew(store: Any, wall: Wall) -> None:
    put(store, b"x")
    wall.now += 5000
    put(store, b"y")
    wall.now += 9
    assert store.purge("chat", unused=10, limit=10) == []


def test_a_leased_row_is_not_purged(store: Any, wall: Wall) -> None:
    put(store, b"x")
    take(store)
    wall.now += 14
    assert store.purge("chat", unused=10, limit=10) == []
    wall.now += 10  # the lease ended 9 seconds ago
    assert store.purge("chat", unused=10, limit=10) == []
    wall.now += 1
    assert store.purge("chat", unused=10, limit=10) == ["a"]
    assert store.stats().leases == 0


def test_purging_one_name_leaves_the_others(store: Any, wall: Wall) -> None:
    put(store, b"x")
    wall.now += 100
    assert store.purge("other", unused=10, limit=10) == []
    assert store.count("chat") == 1


def test_a_purged_row_comes_again_with_a_higher_version(store: Any, wall: Wall) -> None:
    put(store, b"x")
    version = put(store, b"y")
    wall.now += 100
    store.purge("chat", unused=10, limit=10)
    assert put(store, b"z") > version


# -- quarantine


def test_quarantine_keeps_a_copy_once_and_leaves_the_row(store: Any, wall: Wall) -> None:
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


def test_what_is_kept_is_capped_by_rows_and_drops_are_counted(made: Any) -> None:
    async def fill() -> None:
        await asyncio.gather(
            *(made.aio.quarantine("chat", "a", b"%d" % n, "why") for n in range(1003))
        )

    asyncio.run(fill())
    stats = made.stats()
    assert (stats.quarantined, stats.quarantine_dropped) == (1000, 3)
    assert made.quarantined(limit=2000)[-1].envelope == b"3"


def test_what_is_kept_is_capped_by_bytes(store: Any) -> None:
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
                fence=9,
                version=0,
                write_id="w",
                release=False,
            )
    stats = store.stats()
    assert (stats.conflicts, stats.conflicts_dropped) == (3, 1)


# -- figures


def test_stats_count_rows_bytes_and_leases(store: Any) -> None:
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


def test_stats_tell_the_size_of_the_file_where_there_is_one(store: Any) -> None:
    put(store, random.Random(1).randbytes(100_000))
    stats = store.stats()
    if stats.kind in ("sqlite", "postgres"):
        assert stats.file_bytes > 100_000
    else:
        assert stats.kind in ("memory", "redis")
        assert stats.file_bytes is None


# -- closing


def test_a_closed_store_refuses_and_closes_again(made: Any) -> None:
    made.close()
    made.close()
    with pytest.raises(StoreClosed, match="close"):
        made.load("chat", "a")
    with pytest.raises(StoreClosed, match="close"):
        asyncio.run(made.aio.load("chat", "a"))


def test_closing_the_twin_closes_the_store(made: Any) -> None:
    asyncio.run(made.aio.close())
    with pytest.raises(StoreClosed):
        made.count("chat")


# -- many at once


def test_threads_that_count_in_one_row_lose_nothing(made: Any) -> None:
    errors: list[BaseException] = []

    def work(owner: str) -> None:
        try:
            for _ in range(25):
                while isinstance(grant := made.acquire("chat", "a", owner, lease=15.0), Held):
                    threading.Event().wait(0.0005)
                total = int(grant.envelope or b"0") + 1
                write(made, b"%d" % total, grant, release=True)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert made.load("chat", "a") == Record(200, b"200")


def test_tasks_that_count_in_one_row_lose_nothing(made: Any) -> None:
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

    async def main() -> Record | None:
        await asyncio.gather(*(work(f"t{n}") for n in range(10)))
        return await twin.load("chat", "a")

    assert asyncio.run(main()) == Record(100, b"100")


def test_one_refused_write_does_not_harm_its_neighbours(made: Any) -> None:
    twin = made.aio

    async def save(id: str, fence: int) -> int:
        return await twin.save(
            "chat", id, b"x", fence=fence, version=0, write_id=f"w{fence}", release=True
        )

    async def main() -> list[Any]:
        grants = [await twin.acquire("chat", f"id{n}", "me", lease=15.0) for n in range(20)]
        fences = [grant.fence if n % 2 else 999 for n, grant in enumerate(grants)]
        saves = (save(f"id{n}", fence) for n, fence in enumerate(fences))
        return await asyncio.gather(*saves, return_exceptions=True)

    results = asyncio.run(main())
    assert results[1::2] == [1] * 10
    assert all(isinstance(result, SessionConflict) for result in results[0::2])
    assert len({id(result) for result in results[0::2]}) == 10
    assert made.count("chat") == 10
    assert made.stats().conflicts == 10


@pytest.mark.parametrize("make", [MemoryStore, lambda: None], ids=["memory", "sqlite"])
def test_leaving_the_with_block_closes_the_store(make, tmp_path):
    with make() or SQLiteStore(tmp_path / "agent.db") as store:
        assert store.count("chats") == 0
    with pytest.raises(StoreClosed):
        store.count("chats")


# ---- a date that is wrong


def test_a_date_that_jumps_deletes_nothing_before_it_has_lasted(store: Any, wall: Wall) -> None:
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


def test_a_date_that_never_stays_the_same_is_never_believed(store: Any, wall: Wall) -> None:
    put(store, b"x")
    for _ in range(10):
        wall.ahead += 86_400
        wall.now += 3000
        assert store.purge("chat", unused=86_400, limit=10) == []


def test_a_use_while_the_date_is_wrong_is_not_an_old_one(store: Any, wall: Wall) -> None:
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
    store: Any, wall: Wall
) -> None:
    right = wall.ahead
    put(store, b"x", id="other")
    wall.ahead += 40 * 86_400
    put(store, b"y")
    wall.ahead = right
    assert store.purge("chat", unused=86_400, limit=10) == []
    wall.now += 2 * 86_400
    assert sorted(store.purge("chat", unused=86_400, limit=10)) == ["a", "other"]


def test_a_date_that_is_put_right_a_little_is_believed_at_once(store: Any, wall: Wall) -> None:
    put(store, b"x")
    wall.ahead += 50
    assert store.purge("chat", unused=50, limit=10) == ["a"]
