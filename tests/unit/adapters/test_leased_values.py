"""Values under keys, as the adapters of aiogram, Litestar and FastMCP keep them, on every store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from floodline.adapters._leased_values import LeasedValues, Value
from floodline.adapters._store_flows import FlowStore
from floodline.errors import CodecError, SessionBusy, SessionConflict
from floodline.stores import MemoryStore, SQLiteStore

Open = Callable[[], Any]


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Open the store of this test as another worker would."""
    kind, stores = request.param, []
    memory = MemoryStore()
    make = {"memory": lambda: memory, "sqlite": lambda: SQLiteStore(tmp_path / "values.db")}
    begin = make.get(kind) or request.getfixturevalue(kind)

    def open_one() -> Any:
        stores.append(begin())
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


def add(number: int) -> Callable[[Value | None], Value]:
    return lambda old: Value([*(old.data if old else ()), number])


def test_no_change_is_lost_between_workers_threads_and_tasks(opened: Open) -> None:
    workers = [(FlowStore(opened()), LeasedValues("n")) for _ in range(2)]

    async def tasks(flows: FlowStore, values: LeasedValues, first: int) -> None:
        changes = (flows.finish(values.change("a", add(first + n))) for n in range(5))
        await asyncio.gather(*changes)

    def thread(number: int) -> None:
        flows, values = workers[number % 2]
        if number < 2:
            asyncio.run(tasks(flows, values, 10 * number))
        else:
            for n in range(5):
                flows.run(values.change("a", add(10 * number + n)))

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    flows, values = workers[0]
    found = flows.run(values.get("a"))
    assert found is not None
    assert sorted(found.data) == [10 * number + n for number in range(4) for n in range(5)]
    assert flows.run(values.delete("a"))
    assert not flows.run(values.delete("a"))
    assert flows._store.count("n") == 0
    assert flows._store.stats().leases == 0


def test_what_has_expired_is_not_there_and_leaves_by_itself() -> None:
    now = [100.0]
    flows = FlowStore(None)
    values = LeasedValues("n", wall=lambda: now[0])
    flows.run(values.put("stays", 1))
    for number in range(200):
        flows.run(values.put(f"k{number}", number, expires_in=5.0))
        now[0] += 1
    assert flows._store.count("n") < 30
    assert flows.run(values.get("k199")).data == 199  # type: ignore[union-attr]
    assert flows.run(values.get("k190")) is None
    assert flows.run(values.get("stays")).data == 1  # type: ignore[union-attr]


def test_the_longest_unchanged_leave_above_the_limit() -> None:
    flows = FlowStore(None)
    values = LeasedValues("n", max_keys=10)
    for number in range(50):
        flows.run(values.put(f"k{number:02}", number))
    assert flows.run(values.keys("k")) == [f"k{number:02}" for number in range(38, 50)]


def test_retention_deletes_what_was_not_changed() -> None:
    now = [1000.0]
    store = MemoryStore(clock=lambda: now[0], wall=lambda: now[0])
    flows, values = FlowStore(store), LeasedValues("n", retention="1 h")
    flows.run(values.put("old", 1))
    now[0] += 4000
    for number in range(8):
        flows.run(values.put(f"new{number}", 1))
    now[0] += 1
    values._upkeep._next_purge = 0.0
    for number in range(8):
        flows.run(values.put(f"new{number}", 2))
    assert "old" not in store.ids("n")


def test_a_key_that_another_holds_is_waited_for_and_then_reported() -> None:
    store = MemoryStore()
    flows = FlowStore(store)
    grant = store.acquire("n", "a", "somebody", lease=60)
    with pytest.raises(SessionBusy, match="somebody"):
        flows.run(LeasedValues("n", wait=0).put("a", 1))
    store.release("n", "a", grant.fence)  # type: ignore[union-attr]
    flows.run(LeasedValues("n", wait=0).put("a", 1))


def test_a_change_is_tried_again_if_its_lease_was_lost() -> None:
    store, tries = MemoryStore(), []

    def decide(old: Value | None) -> Value:
        tries.append(old)
        if len(tries) < losses:
            grant = store.acquire("n", "a", tries_owner[0], lease=60)
            store.release("n", "a", grant.fence)  # type: ignore[union-attr]
        return Value(len(tries))

    tries_owner = [""]
    flows, values = FlowStore(store), LeasedValues("n")
    original = store.acquire

    def acquire(name: str, id: str, owner: str, **terms: Any) -> Any:
        tries_owner[0] = owner
        return original(name, id, owner, **terms)

    store.acquire = acquire  # type: ignore[method-assign]
    losses = 3
    flows.run(values.change("a", decide))
    assert flows.run(values.get("a")).data == 3  # type: ignore[union-attr]
    losses = 100
    with pytest.raises(SessionConflict):
        flows.run(values.change("a", decide))


def test_what_cannot_be_encoded_changes_nothing() -> None:
    flows, values = FlowStore(None), LeasedValues("n")
    flows.run(values.put("a", {"x": (1, {2}, b"3")}))
    with pytest.raises(CodecError):
        flows.run(values.put("a", object()))
    assert flows.run(values.get("a")).data == {"x": (1, {2}, b"3")}  # type: ignore[union-attr]
    assert flows._store.stats().leases == 0


def test_a_cancelled_caller_leaves_no_lease() -> None:
    async def body() -> None:
        flows, values = FlowStore(None), LeasedValues("n")
        caller = asyncio.ensure_future(flows.finish(values.put("a", 1)))
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.gather(*flows._running)
        assert flows._store.stats().leases == 0
        assert (await flows.arun(values.get("a"))).data == 1  # type: ignore[union-attr]

    asyncio.run(body())
