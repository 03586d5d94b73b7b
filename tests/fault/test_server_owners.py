"""Owners on other machines [T8]: heartbeats, and how a session gets from one process to another."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any
from weakref import WeakMethod

import pytest

from event_loops import StillClock
from floodline import AsyncSessions, Sessions
from floodline.sessions._flows import leases
from floodline.stores import Grant, Held, RedisStore
from floodline.stores._redis import operations
from floodline.stores._server.heartbeats import Beat
from floodline.stores._server.listening import Listener
from loopback_proxy import Proxy
from servers import Valkey, folder_of, put, running, take, told
from worker_threads import Worker

PATIENCE = 60.0


def wait_until(condition: Any) -> None:
    for _ in range(int(PATIENCE / 0.005)):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it did not happen")


def ears() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "floodline-ears"]


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody listen, as behind a proxy that does not pass it on."""
    monkeypatch.setattr(Listener, "_start", lambda _: None)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask a store again only after minutes."""
    monkeypatch.setattr(leases, "FIRST_PAUSE", 600.0)
    monkeypatch.setattr(leases, "LONGEST_PAUSE", 600.0)


# -- heartbeats


def test_a_heartbeat_names_no_lease_that_it_has_already(opened: Any) -> None:
    store = opened(connections=1)
    fences = {one: take(store, one).fence for one in ("a", "b")}
    ties = store._operations.ties
    assert store.renew("chat", "me", fences, lease=15.0) == set()
    number = ties.next_beat("chat", "me", fences).number
    assert ties.next_beat("chat", "me", fences) == Beat(number, {}, {})
    store.release("chat", "a", fences["a"])
    assert ties.next_beat("chat", "me", {"b": fences["b"]}) == Beat(number, {}, {})
    store._writers[0]._runner.shut()  # another connection, and perhaps another server
    assert store.count("chat") == 0
    assert ties.next_beat("chat", "me", fences).new == fences


def test_a_heartbeat_that_stopped_is_told_which_leases_it_lost(opened: Any) -> None:
    clock = StillClock(10_000.0)
    store, other = opened(clock=clock, wall=clock), opened(clock=clock, wall=clock)
    fences = {one: take(store, one).fence for one in ("a", "b", "c")}
    assert store.renew("chat", "me", fences, lease=15.0) == set()
    clock.now += 15  # stopped, as by SIGSTOP
    take(other, "b", owner="you")
    assert store.renew("chat", "me", fences, lease=15.0) == {"b"}
    clock.now += 14
    for one in ("a", "c"):
        held = other.acquire("chat", one, "you", lease=15.0)
        assert isinstance(held, Held)
        assert held.seconds == pytest.approx(1.0)


def test_a_lease_whose_release_was_lost_with_the_connection_ends(opened: Any) -> None:
    clock = StillClock(10_000.0)
    store = opened(clock=clock, wall=clock)
    fences = {one: take(store, one).fence for one in ("a", "b")}
    assert store.renew("chat", "me", fences, lease=15.0) == set()
    ties = store._operations.ties
    ties._tied.clear()  # as if `a` had been tied and released by an answer that never came
    ties.renumber()
    del fences["a"]
    for _ in range(3):
        assert store.renew("chat", "me", fences, lease=15.0) == set()
        clock.now += 5
    assert isinstance(store.acquire("chat", "b", "you", lease=15.0), Held)
    take(store, "a", owner="you")


def test_what_a_heartbeat_keeps_is_neither_purged_nor_forgotten(opened: Any) -> None:
    clock = StillClock(10_000.0)
    store = opened(clock=clock, wall=clock)
    put(store, b"one")
    fence = take(store).fence
    for _ in range(100):
        assert store.renew("chat", "me", {"a": fence}, lease=100.0) == set()
        clock.now += 90
    assert store.purge("chat", unused=60, limit=10) == []
    other = opened(clock=clock, wall=clock)  # which throws away what crashes left behind
    assert isinstance(other.acquire("chat", "a", "you", lease=15.0), Held)
    assert other.stats().leases == 1
    clock.now += 4000
    opened(clock=clock, wall=clock)
    assert other.stats().leases == 0
    assert other.purge("chat", unused=60, limit=10) == ["a"]


def test_many_leases_are_tied_in_several_requests(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_RENEWED", 5)
    clock = StillClock(10_000.0)
    store = opened(clock=clock, wall=clock)
    fences = {f"id{n}": take(store, f"id{n}").fence for n in range(11)}
    assert store.renew("chat", "me", {**fences, "x": 1}, lease=15.0) == {"x"}
    gone = {f"id{n}": fences.pop(f"id{n}") for n in range(3, 9)}
    new = {f"new{n}": take(store, f"new{n}").fence for n in range(6)}
    clock.now += 10
    assert store.renew("chat", "me", fences | new, lease=15.0) == set()
    clock.now += 10
    for one in (*fences, *new):
        assert isinstance(store.acquire("chat", one, "you", lease=15.0), Held)
    for one in gone:
        assert isinstance(store.acquire("chat", one, "you", lease=15.0), Grant)


@pytest.mark.parametrize("driver", ["threads", "asyncio"])
def test_the_session_of_a_dead_owner_is_taken_one_period_after_its_last_heartbeat(
    opened: Any, driver: str, patient: None
) -> None:
    store = opened()
    fence = store.acquire("chat", "a", "on another machine", lease=0.1).fence
    assert store.renew("chat", "on another machine", {"a": fence}, lease=0.1) == set()
    options: Any = {"store": opened(), "name": "chat", "busy_wait": "10 min"}

    async def main() -> None:
        async with AsyncSessions(dict, **options) as sessions, sessions.use("a"):
            pass

    if driver == "asyncio":
        asyncio.run(main())
    else:
        with Sessions(dict, **options) as sessions, sessions.use("a"):
            pass
    assert store.renew("chat", "on another machine", {"a": fence}, lease=0.1) == {"a"}


# -- handing over


def test_a_store_tells_an_owner_which_sessions_others_want(opened: Any) -> None:
    store, other = opened(), opened()
    grant = take(store, "a")
    take(store, "b")
    assert store.wanted("chat", "me") == set()
    for _ in range(2):
        assert not isinstance(other.acquire("chat", "a", "you", lease=15.0), Grant)
    assert other.wanted("chat", "you") == set()
    assert store.wanted("chat", "me") == {"a"}
    assert store.wanted("chat", "me") == set()
    assert not isinstance(other.acquire("chat", "a", "you", lease=15.0), Grant)
    store.release("chat", "a", grant.fence)
    assert store.wanted("chat", "me") == set()


def test_a_wish_that_came_too_late_is_told_the_next_time(opened: Any) -> None:
    store, other, heard = opened(), opened(), threading.Event()

    class Owner:
        def told(self) -> None:
            heard.set()

    owner = Owner()
    store.on_wanted("me", WeakMethod(owner.told))
    wait_until(heard.is_set)  # as soon as we listen
    for _ in range(2):
        heard.clear()
        grant = take(store)
        assert isinstance(other.acquire("chat", "a", "you", lease=15.0), Held)
        wait_until(heard.is_set)
        store.release("chat", "a", grant.fence)  # before it asked what is wanted


def pass_on(mine: Any, yours: Any, driver: str, lease: str) -> None:
    """Use a session here, there and here again, while the other keeps it in memory."""
    options: Any = {"name": "chats", "durability": "park", "lease": lease, "busy_wait": "60 s"}

    def append(sessions: Any, word: str) -> None:
        with sessions.use("a") as state:
            state.setdefault("words", []).append(word)

    async def append_soon(sessions: Any, word: str) -> None:
        async with sessions.use("a") as state:
            state.setdefault("words", []).append(word)

    async def main() -> None:
        async with AsyncSessions(dict, store=mine.aio, **options) as ours:
            await append_soon(ours, "one")
            async with AsyncSessions(dict, store=yours, **options) as theirs:
                await append_soon(theirs, "two")
                await append_soon(ours, "three")

    if driver == "asyncio":
        asyncio.run(main())
    else:
        with Sessions(dict, store=mine, **options) as ours:
            append(ours, "one")
            with Sessions(dict, store=yours, **options) as theirs:
                append(theirs, "two")
                append(ours, "three")
    with Sessions(dict, store=mine, name="chats") as sessions, sessions.use("a") as state:
        assert state["words"] == ["one", "two", "three"]


@pytest.mark.parametrize("driver", ["threads", "asyncio"])
def test_an_idle_session_is_handed_over_long_before_its_lease_ends(
    opened: Any, driver: str, patient: None
) -> None:
    mine, yours = opened(), opened()
    pass_on(mine, yours, driver, lease="1 h")
    for store in (mine, yours):
        store.close()
    assert ears() == []


@pytest.mark.parametrize("driver", ["threads", "asyncio"])
def test_an_idle_session_is_handed_over_where_nobody_hears(
    opened: Any, driver: str, deaf: None
) -> None:
    pass_on(opened(), opened(), driver, lease="600 ms")


# -- waiting for a release


class Waiter:
    """Another process, as far as the store knows, that wants a session which is in use here."""

    def __init__(self, store: Any, driver: str = "threads") -> None:
        self._store, self._options = store, {"name": "chats", "busy_wait": "10 min"}
        self._worker = Worker(self._wait if driver == "threads" else self._wait_on_a_loop)
        wait_until(lambda: store._listener._hearing and store._listener._bells)

    def _wait(self) -> Any:
        made = Sessions(dict, store=self._store, **self._options)
        with made as sessions, sessions.use("a") as state:
            return dict(state)

    def _wait_on_a_loop(self) -> Any:
        async def main() -> Any:
            made = AsyncSessions(dict, store=self._store, **self._options)
            async with made as sessions, sessions.use("a") as state:
                return dict(state)

        return asyncio.run(main())

    def state(self) -> Any:
        found = self._worker.result()
        assert not self._store._listener._bells
        return found


@pytest.mark.parametrize("driver", ["threads", "asyncio"])
def test_a_waiter_is_woken_by_whatever_ends_a_use(opened: Any, driver: str, patient: None) -> None:
    with Sessions(dict, store=opened(), name="chats") as sessions:
        with sessions.use("a") as state:
            state["turns"] = 1
            waiter = Waiter(opened(), driver)
        assert waiter.state() == {"turns": 1}
        with sessions.use("a"):  # nothing to save
            waiter = Waiter(opened(), driver)
        assert waiter.state() == {"turns": 1}
        with sessions.use("a"):
            waiter = Waiter(opened(), driver)
            sessions.close("a")
        assert waiter.state() == {}


def test_who_listens_hears_again_after_the_connection_was_cut(
    server: Any, opened: Any, patient: None
) -> None:
    with (
        Proxy(server.port) as proxy,
        Sessions(dict, store=opened(), name="chats") as sessions,
    ):
        store = opened(proxy.port)
        with sessions.use("a") as state:
            state["turns"] = 1
            waiter = Waiter(store)
            ear = store._listener._ear
            proxy.cut()
            wait_until(lambda: store._listener._ear not in (ear, None))
        assert waiter.state() == {"turns": 1}


def test_a_child_hears_for_itself_and_leaves_its_parent_alone(opened: Any, patient: None) -> None:
    mine, yours = opened(), opened()
    with Sessions(dict, store=mine, name="chats") as sessions, sessions.use("a"):
        waiter = Waiter(yours)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                put(yours, b"child", "b")
                code = int(yours._listener._thread is not None)
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert waiter.state() == {}


def test_a_user_who_may_not_publish_waits_longer() -> None:
    with folder_of("valkey") as folder, running(Valkey(folder)) as server:
        told(server, "ACL", "SETUSER", "guest", "on", ">geheim", "~*", "+@all", "resetchannels")
        url = server.url.replace("//", "//guest:geheim@")
        with RedisStore(url) as mine, RedisStore(url) as yours:
            pass_on(mine, yours, "threads", lease="600 ms")
