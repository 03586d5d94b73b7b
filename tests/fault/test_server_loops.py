"""Calls that an event loop makes by itself: what breaks there is mended by the threads."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from floodline.errors import StoreClosed, StoreCorrupt, StoreUnavailable
from floodline.stores import Grant, RedisStore
from floodline.stores._server import on_loop
from loopback_proxy import Proxy
from servers import Valkey, put, take, told

Opened = Callable[..., RedisStore]


@pytest.fixture
def server(redis: Any, valkey: Valkey) -> Valkey:
    return valkey


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_loop, "_WORTH", 1)
    monkeypatch.setattr(on_loop, "_AGAIN", 0.0)


async def direct(store: RedisStore) -> on_loop.OnLoop:
    """Wait until the running loop has a connection of its own."""
    line = store._on_loop
    assert line is not None
    await store.aio.load("chat", "nobody")
    await until(lambda: line._talk is not None and not line._elsewhere)
    return line


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(60_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it does not come true")


def no_thread(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no call may be left to a thread."""

    def refuse(*_: object) -> None:
        raise AssertionError("a thread was asked")

    for writer in store._writers:
        monkeypatch.setattr(writer, "submit", refuse)


async def use(store: RedisStore, id: str, content: bytes, version: int = 0) -> int:
    grant = await store.aio.acquire("chat", id, "me", lease=15.0)
    assert isinstance(grant, Grant)
    terms = {"fence": grant.fence, "version": version or grant.version, "release": True}
    return await store.aio.save("chat", id, content, write_id=f"{id} {content[:9]!r}", **terms)


def test_callers_of_one_loop_need_no_thread(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()

    async def main() -> None:
        line = await direct(store)
        await use(store, "id0", b"the server knows the scripts now")
        no_thread(store, monkeypatch)
        for turn in range(3):
            big = bytes([turn]) * 300_000  # more than a socket takes at once
            await asyncio.gather(*(use(store, f"id{n}", big) for n in range(40)))
        assert not line._flights
        assert not line._unsent

    asyncio.run(main())
    monkeypatch.undo()
    assert {store.load("chat", f"id{n}").envelope for n in range(40)} == {b"\2" * 300_000}
    assert store.stats().leases == 0


def test_the_server_works_for_some_while_the_loop_works_for_others(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    send = on_loop.OnLoop._send

    def watched(self: on_loop.OnLoop, talk: Any, batch: list[Any]) -> None:
        sent.append((len(self._flights), len(batch)))
        send(self, talk, batch)

    monkeypatch.setattr(on_loop.OnLoop, "_send", watched)
    store = opened()

    async def main() -> None:
        await direct(store)
        for crowd in (16, 40, 40, 3):
            sent.clear()
            await asyncio.gather(*(store.aio.load("chat", str(n)) for n in range(crowd)))
            flights.append(sent.copy())

    flights: list[list[tuple[int, int]]] = []
    asyncio.run(main())
    assert flights == [
        [(0, 8), (1, 8)],
        [(0, 8), (1, 32)],  # as many as there were, and the rest
        [(0, 20), (1, 20)],
        [(0, 3)],
    ]


def test_no_more_than_two_batches_are_on_their_way(opened: Opened) -> None:
    store = opened()

    async def main() -> None:
        line = await direct(store)
        waves = []
        for n in range(5):
            waves.append(asyncio.ensure_future(store.aio.load("chat", str(n))))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert len(line._flights) <= 2
        assert await asyncio.gather(*waves) == [None] * 5

    asyncio.run(main())


def test_a_loop_after_another_one_takes_over_its_connection(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    put(store, b"the server knows the scripts now")
    first = asyncio.run(direct(store))._talk
    no_thread(store, monkeypatch)

    async def main() -> None:
        await use(store, "a", b"one")
        assert store._on_loop._talk is first

    asyncio.run(main())


def test_a_second_loop_beside_it_is_served_by_a_thread(opened: Opened) -> None:
    store = opened()

    async def main() -> None:
        await direct(store)
        other = threading.Thread(target=asyncio.run, args=(use(store, "b", b"two"),))
        other.start()
        while other.is_alive():
            await use(store, "a", b"one")
        other.join()

    asyncio.run(main())
    assert store.load("chat", "b").envelope == b"two"


def test_a_lost_answer_is_asked_for_again_by_a_thread(opened: Opened, server: Valkey) -> None:
    with Proxy(server.port) as proxy:
        store = opened(proxy.port)

        async def main() -> None:
            for lost in range(1, 4):
                line = await direct(store)
                proxy.cut_answers = 1
                ids = [f"id{n}" for n in range(20)]
                versions = await asyncio.gather(*(use(store, one, b"%d" % lost) for one in ids))
                assert versions == [lost] * 20
                assert line._elsewhere == 0

        asyncio.run(main())
        assert store.stats().conflicts == 0


def test_what_may_not_be_repeated_has_an_unknown_outcome(opened: Opened, server: Valkey) -> None:
    with Proxy(server.port) as proxy:
        store = opened(proxy.port)
        put(store, b"one", "b")
        store.delete("chat", "b", fence=take(store, "b").fence)  # the server knows the script now
        put(store, b"one")

        async def main() -> None:
            await direct(store)
            grant = await store.aio.acquire("chat", "a", "me", lease=15.0)
            proxy.cut_answers = 1
            with pytest.raises(StoreUnavailable, match="whether it was done is unknown"):
                await store.aio.delete("chat", "a", fence=grant.fence)

        asyncio.run(main())
    assert store.load("chat", "a") is None


def test_a_server_that_does_not_answer_is_not_waited_for(opened: Opened, server: Valkey) -> None:
    store = opened(timeout="300 ms")

    async def main() -> None:
        await direct(store)
        server.send(signal.SIGSTOP)
        started = time.monotonic()
        try:
            with pytest.raises(StoreUnavailable, match="unknown"):
                await store.aio.load("chat", "a")
        finally:
            server.send(signal.SIGCONT)
        assert time.monotonic() - started < 30
        await direct(store)
        await use(store, "a", b"one")

    asyncio.run(main())


def test_a_loop_goes_on_after_its_server_was_restarted(opened: Opened, server: Valkey) -> None:
    told(server, "CONFIG", "SET", "appendfsync", "always")
    store = opened()

    async def main() -> None:
        await direct(store)
        await use(store, "a", b"one")
        server.end()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await store.aio.load("chat", "a")
        server.start()
        await direct(store)
        assert (await store.aio.load("chat", "a")).envelope == b"one"

    asyncio.run(main())


def test_a_thread_says_what_the_server_refuses(opened: Opened, server: Valkey) -> None:
    store = opened()
    told(server, "SADD", f"{{out{os.getpid()}}}:v4:chata", "other data")

    async def main() -> None:
        await direct(store)
        asked = [store.aio.acquire("chat", one, "me", lease=15.0) for one in "abc"]
        refused, *granted = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(refused, StoreCorrupt)
        assert all(isinstance(one, Grant) for one in granted)

    asyncio.run(main())


def test_a_server_that_forgot_the_scripts_is_told_again(opened: Opened, server: Valkey) -> None:
    store = opened()

    async def main() -> None:
        await direct(store)
        for turn in range(1, 4):
            told(server, "SCRIPT", "FLUSH")
            assert (
                await asyncio.gather(*(use(store, one, b"%d" % turn) for one in "abc"))
                == [turn] * 3
            )

    asyncio.run(main())


def test_cancelling_an_await_undoes_nothing(opened: Opened) -> None:
    store = opened()

    async def main() -> None:
        line = await direct(store)
        for broken in (False, True):
            grants = [await store.aio.acquire("chat", one, "me", lease=15.0) for one in "ab"]
            saves = [
                asyncio.ensure_future(saved(store, one, grant, b"%d" % broken))
                for one, grant in zip("ab", grants, strict=True)
            ]
            await asyncio.sleep(0)
            for save in saves:
                save.cancel()
            if broken:  # the thread has to do it
                line._flush()
                line._leave(ConnectionError("cut"), again=True)
            await asyncio.gather(*saves, return_exceptions=True)
            # does not overtake the saves
            for one, grant in zip("ab", grants, strict=True):
                await store.aio.release("chat", one, grant.fence)
                assert (await store.aio.load("chat", one)).envelope == b"%d" % broken
            await direct(store)

    asyncio.run(main())


def saved(store: RedisStore, id: str, grant: Any, content: bytes) -> Awaitable[int]:
    terms = {"fence": grant.fence, "version": grant.version, "release": False}
    return store.aio.save("chat", id, content, write_id=f"{id}{content!r}", **terms)


def test_closing_finishes_what_was_begun(opened: Opened) -> None:
    for way in ("here", "soon", "thread", "later"):
        store = opened()

        async def main(store: RedisStore = store, way: str = way) -> None:
            await direct(store)
            asked = [asyncio.ensure_future(store.aio.count_rows("c", str(n))) for n in range(30)]
            await asyncio.sleep(0)
            if way == "here":
                store.close()
            elif way == "soon":
                await store.aio.close()
            elif way == "thread":
                closing = threading.Thread(target=store.close)
                closing.start()
            assert await asyncio.gather(*asked) == [0] * 30
            if way == "thread":
                closing.join()
            if way != "later":
                with pytest.raises(StoreClosed):
                    await store.aio.load("chat", "a")

        asyncio.run(main())
        store.close()
        assert store._on_loop._talk is None


def test_a_store_that_is_collected_leaves_no_connection(server: Valkey, opened: Opened) -> None:
    watching = opened()

    async def main() -> None:
        store = RedisStore(server.url)
        line = await direct(store)
        del store
        await until(lambda: line._talk is None)

    asyncio.run(main())
    assert watching.count("chat") == 0


def test_a_forked_child_lets_go_of_the_connection(opened: Opened) -> None:
    store = opened()

    async def main() -> None:
        line = await direct(store)
        child = os.fork()
        if child == 0:
            os._exit(0 if line._talk is None and put(store, b"child", "child") else 1)
        assert (await asyncio.to_thread(os.waitpid, child, 0))[1] == 0
        assert line._talk is not None
        await use(store, "a", b"parent")

    asyncio.run(main())
    assert store.load("chat", "child").envelope == b"child"


def test_few_calls_are_not_worth_a_connection(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_loop, "_WORTH", 16)
    store = opened()

    async def main() -> None:
        for _ in range(15):
            await store.aio.load("chat", "a")
        assert not store._on_loop._opening
        await direct(store)

    asyncio.run(main())


def test_replicas_are_waited_for_by_a_thread(opened: Opened) -> None:
    store = opened(wait_replicas=1, timeout="200 ms")

    async def main() -> None:
        await store.aio.load("chat", "a")
        await until(lambda: store._on_loop._impossible)
        with pytest.raises(StoreUnavailable, match="only 0 of 1 replicas"):
            await use(store, "a", b"one")

    asyncio.run(main())
    assert take(store).version == 1
