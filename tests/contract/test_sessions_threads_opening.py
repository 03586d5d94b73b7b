"""`Sessions` for threads, into memory: the rules [S1] to [S7] of SEMANTICS."""

# ruff: noqa: SIM117 - blocks inside blocks are what is tested

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path
from typing import Any

import pytest

from floodline import Conversation, Sessions
from floodline.errors import (
    ConfigError,
    HoldDeadlock,
    ReentrantUse,
    SessionBusy,
    SessionClosed,
    SessionError,
    SessionNotFound,
    SessionsFull,
    StoreClosed,
    WouldBlockLoop,
)
from floodline.stores import MemoryStore, SQLiteStore
from worker_threads import (
    PATIENCE,
    Faulty,
    StillClock,
    Worker,
    assert_balanced,
    events_of,
    holding,
    until,
    waiting,
)

# ---- [S1] factories, ids, stores


def test_s1_a_factory_gets_the_id_only_if_it_asks_for_it() -> None:
    def named(id: str) -> list[str]:
        return [id]

    def optional(id: str = "none") -> list[str]:
        return [id]

    class Service:
        def __init__(self, id: str) -> None:
            self.id = id

    with Sessions(named) as sessions, sessions.use("a") as state:
        assert state == ["a"]
    with Sessions(optional) as lazy, lazy.use("a") as state:
        assert state == ["none"]
    with Sessions(dict) as plain, plain.use("a") as empty:
        assert empty == {}
    with Sessions(Service) as services, services.use("a") as service:
        assert service.id == "a"


def test_s1_without_a_factory_a_session_is_a_conversation() -> None:
    with Sessions() as sessions, sessions.use("a") as state:
        assert isinstance(state, Conversation)


@pytest.mark.parametrize("bad", ["", None, 7, b"a"])
def test_s1_an_id_is_a_string_that_is_not_empty(bad: Any) -> None:
    sessions = Sessions(dict)
    for call in (sessions.use, sessions.park, sessions.close, sessions.complete):
        with pytest.raises(ConfigError, match="non-empty string"):
            call(bad)
    assert bad not in sessions
    sessions.shutdown()


def test_s1_an_id_that_no_store_can_write_is_refused_at_once() -> None:
    with Sessions(dict) as sessions:
        with sessions.use("grüße 🌊"):
            pass
        with pytest.raises(ConfigError, match="lone surrogate"):
            sessions.use("a\udc80")


def test_s1_a_store_given_as_a_url_is_owned_and_closed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    sessions = Sessions(dict, store=url)
    with sessions.use("a") as state:
        state["n"] = 1
    store = sessions._store
    sessions.shutdown()
    with pytest.raises(StoreClosed):
        store.count("sessions")
    with Sessions(dict, store=url) as again, again.use("a", create=False) as state:
        assert state == {"n": 1}


def test_s1_a_store_given_as_an_object_stays_open() -> None:
    store = MemoryStore()
    with Sessions(dict, store=store) as sessions, sessions.use("a"):
        pass
    assert store.count("sessions") == 1


ARGUMENTS = """
    factory idle max_age max_sessions max_bytes store state_type weigh on_open on_leave close_state
    durability on_error when_full wait busy_wait max_hold lease linger tombstone retain pressure
    sweep_every scope name clock
"""


def test_the_arguments_are_those_of_the_design() -> None:
    parameters = inspect.signature(Sessions.__init__).parameters
    assert list(parameters)[1:] == ARGUMENTS.split()
    keyword = [p for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert len(keyword) == len(parameters) - 2


def test_the_environment_overrides_defaults_and_arguments_override_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLOODLINE_MAX_SESSIONS", "2")
    with Sessions(dict) as sessions:
        assert sessions.stats().max_items == 2
    with Sessions(dict, max_sessions=5) as sessions:
        assert sessions.stats().max_items == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"on_error": "discard"}, "needs store="),
        ({"max_bytes": "1 MiB"}, "needs weigh="),
        ({"retain": "1 h"}, "needs store="),
        ({"name": ""}, "non-empty"),
        ({"idle": None, "max_sessions": None}, "no bound at all"),
        ({"when_full": "explode"}, "when_full"),
        ({"factory": 3}, "callable"),
        ({"max_sessions": 0}, "max_sessions"),
        ({"idle": "soon"}, "idle"),
    ],
)
def test_bad_arguments_fail_at_construction(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Sessions(**({"factory": dict} | arguments))


# ---- [S2] holds


def test_s2_a_hold_saves_in_the_middle_of_its_body() -> None:
    store = MemoryStore()
    with Sessions(dict, store=store) as sessions, (hold := sessions.use("a")) as state:
        state["n"] = 1
        hold.save()
        record = store.load("sessions", "a")
        assert record is not None
        assert record.version == 1
        assert hold.state is state


def test_s2_saving_without_a_store_does_nothing() -> None:
    with Sessions(dict) as sessions, (hold := sessions.use("a")):
        hold.save()
        assert "a" in sessions
    assert sessions.stats().saved == 0


def test_s2_a_hold_discards_what_its_body_did() -> None:
    left: list[Any] = []
    with Sessions(
        dict, store=MemoryStore(), on_leave=lambda i, s, r: left.append((i, s, str(r)))
    ) as sessions:
        with sessions.use("a") as state:
            state["n"] = 1
        with (hold := sessions.use("a")) as state:
            state["n"] = 2
            hold.discard()
        assert left == [("a", {"n": 2}, "discarded")]
        assert "a" not in sessions
        with sessions.use("a") as state:
            assert state == {"n": 1}


def test_s2_discarding_without_a_store_starts_anew() -> None:
    with Sessions(dict) as sessions:
        with (hold := sessions.use("a")) as state:
            state["n"] = 1
            hold.discard()
        with sessions.use("a") as state:
            assert state == {}


def test_s2_a_hold_replaces_its_state() -> None:
    store = MemoryStore()
    with Sessions(dict, store=store) as sessions:
        with (hold := sessions.use("a")):
            hold.state = {"new": True}
        assert sessions.peek("a") == {"new": True}
        sessions.park("a")
        with sessions.use("a") as state:
            assert state == {"new": True}


def test_s2_a_hold_does_nothing_before_and_after_its_block() -> None:
    with Sessions(dict) as sessions:
        hold = sessions.use("a")
        for attempt in (lambda: hold.state, hold.discard, hold.save):
            with pytest.raises(SessionError, match="not held"):
                attempt()
        with hold:
            with pytest.raises(SessionError, match="under way"):
                hold.__enter__()
        with pytest.raises(SessionError, match="not held"):
            hold.state = {}
        with hold as state:  # a second time is as good as the first
            assert state == {}


# ---- [S3] create=False


@pytest.mark.parametrize("stored", [False, True])
def test_s3_an_unknown_id_is_refused_where_asked(stored: bool) -> None:
    with Sessions(dict, store=MemoryStore() if stored else None) as sessions:
        with pytest.raises(SessionNotFound, match="'a' is neither live nor stored"):
            with sessions.use("a", create=False):
                pass
        with pytest.raises(KeyError):
            sessions.use("a", create=False, shared=True).__enter__()
        with sessions.use("a"):
            pass
        with sessions.use("a", create=False):
            pass
        assert_balanced(sessions)


def test_s3_a_parked_session_is_found() -> None:
    with Sessions(dict, store=MemoryStore()) as sessions:
        with sessions.use("a") as state:
            state["n"] = 1
        sessions.park("a")
        with sessions.use("a", create=False) as state:
            assert state == {"n": 1}


def test_s3_those_who_would_create_it_are_not_told_that_it_is_missing() -> None:
    store, asked = Faulty(), threading.Event()
    store.entering = lambda method: method == "acquire" and asked.wait(PATIENCE)
    with Sessions(dict, store=store) as sessions:
        first = Worker(sessions.use("a", create=False).__enter__)
        until(lambda: store.calls)
        second = Worker(lambda: use_once(sessions, "a"))
        waiting(sessions, 1)
        third = Worker(sessions.use("a", create=False).__enter__)
        waiting(sessions, 2)
        asked.set()
        for worker in (first, third):
            assert isinstance(worker.wait().error, SessionNotFound)
        second.result()
        assert_balanced(sessions)


def use_once(sessions: Sessions[Any], id: str, **how: Any) -> Any:
    with sessions.use(id, **how) as state:
        return state


# ---- [S4] turns, rings and loops


def test_s4_exclusive_holds_come_in_the_order_of_asking() -> None:
    with Sessions(list) as sessions:
        with holding(sessions, "a"):
            workers = []
            for n in range(6):
                workers.append(Worker(lambda n=n: append(sessions, n)))
                waiting(sessions, n + 1)
        for worker in workers:
            worker.result()
        assert sessions.peek("a") == [0, 1, 2, 3, 4, 5]
        assert_balanced(sessions)


def append(sessions: Sessions[Any], item: Any, id: str = "a") -> None:
    with sessions.use(id) as state:
        state.append(item)


def test_s4_who_holds_a_session_cannot_ask_for_it_again() -> None:
    with Sessions(dict) as sessions, sessions.use("a"):
        with pytest.raises(ReentrantUse, match="'a' is already in the hands"):
            sessions.use("a").__enter__()


def test_s4_a_factory_or_finalizer_cannot_ask_for_its_own_session() -> None:
    caught: list[BaseException] = []

    def ask(id: str, *_: Any) -> dict[str, Any]:
        try:
            use_once(sessions, id)
        except ReentrantUse as error:
            caught.append(error)
        return {}

    with Sessions(ask, on_leave=ask) as sessions:
        use_once(sessions, "a")
        assert len(caught) == 1
        sessions.park("a")
        assert len(caught) == 2


def test_s4_a_ring_of_waiters_is_refused_where_it_would_close() -> None:
    with Sessions(dict) as sessions:
        got = threading.Event()

        def first() -> None:
            with sessions.use("a"):
                got.set()
                use_once(sessions, "b")

        with sessions.use("b"):
            worker = Worker(first)
            assert got.wait(PATIENCE)
            waiting(sessions, 1)
            with pytest.raises(HoldDeadlock, match="ring"):
                use_once(sessions, "a")
        worker.result()
        assert_balanced(sessions)


def test_s4_waiting_on_a_thread_with_a_running_loop_is_refused_at_once() -> None:
    async def main(sessions: Sessions[Any]) -> None:
        use_once(sessions, "free")
        with pytest.raises(WouldBlockLoop, match="AsyncSessions"):
            use_once(sessions, "a")

    with Sessions(dict, max_sessions=2) as sessions:
        with holding(sessions, "a"):
            asyncio.run(main(sessions))
        assert_balanced(sessions)


def test_s4_one_on_a_loop_that_finds_no_room_does_not_tell_the_others_so() -> None:
    """[S4], [S7]: that it must not wait there is the opener's own affair."""
    store, workers = Faulty(), list[Worker]()

    def queue_behind(method: str) -> None:
        if method == "save" and not workers:
            workers.append(Worker(use_once, sessions, "b"))
            waiting(sessions, 1)

    async def on_loop() -> None:
        with pytest.raises(WouldBlockLoop):
            use_once(sessions, "b")

    with Sessions(dict, max_sessions=1, store=store, durability="park") as sessions:
        use_once(sessions, "a")
        store.entering = queue_behind
        store.fail("save")  # so that "a" cannot make room
        asyncio.run(on_loop())
        store.recover()
        sessions.sweep()
        workers[0].result()
        assert_balanced(sessions)


# ---- [S5] the two waits


def test_s5_no_room_is_said_with_a_time_to_come_back() -> None:
    with Sessions(dict, max_sessions=1, wait=0) as sessions, holding(sessions, "a"):
        with pytest.raises(SessionsFull, match="1 of max_sessions=1") as caught:
            use_once(sessions, "b")
        assert caught.value.retry_after > 0
        assert isinstance(caught.value, TimeoutError)
    assert_balanced(sessions)


def test_s5_a_held_id_is_said_with_holder_age_and_stack() -> None:
    clock = StillClock()
    with Sessions(dict, busy_wait=0, clock=clock) as sessions, holding(sessions, "a"):
        clock.advance(42)
        with pytest.raises(SessionBusy) as caught:
            use_once(sessions, "a")
        said = str(caught.value)
        assert "thread 'Thread-" in said
        assert "42 s" in said
        assert "in _hold\n" in said
        assert isinstance(caught.value, TimeoutError)
    assert_balanced(sessions)


def test_s5_a_use_may_have_its_own_patience() -> None:
    with Sessions(dict, max_sessions=1) as sessions, holding(sessions, "a"):
        with pytest.raises(SessionBusy):
            use_once(sessions, "a", wait=0)
        with pytest.raises(SessionsFull):
            use_once(sessions, "b", wait="1 ms")
    assert_balanced(sessions)


def test_s5_waiting_for_one_that_is_being_opened_says_so() -> None:
    started, go = threading.Event(), threading.Event()

    def make() -> dict[str, Any]:
        started.set()
        assert go.wait(PATIENCE)
        return {}

    with Sessions(make) as sessions:
        opener = Worker(use_once, sessions, "a")
        assert started.wait(PATIENCE)
        with pytest.raises(SessionBusy, match="still being opened by thread"):
            use_once(sessions, "a", wait=0)
        go.set()
        opener.result()


def test_s5_waiting_for_one_that_is_being_finalized_says_so() -> None:
    started, go = threading.Event(), threading.Event()

    def finalizer(*_: Any) -> None:
        started.set()
        assert go.wait(PATIENCE)

    with Sessions(dict, on_leave=finalizer) as sessions:
        use_once(sessions, "a")
        parker = Worker(sessions.park, "a")
        assert started.wait(PATIENCE)
        with pytest.raises(SessionBusy, match="saved or finalized"):
            use_once(sessions, "a", wait=0)
        go.set()
        parker.result()


def test_s5_who_waits_for_room_gets_the_first_seat() -> None:
    with Sessions(dict, max_sessions=1) as sessions:
        with holding(sessions, "a"):
            worker = Worker(use_once, sessions, "b")
            waiting(sessions, 1)
        worker.result()
        assert sessions.ids() == ["b"]


# ---- [S6] shared


def test_s6_a_shared_hold_runs_beside_an_exclusive_one_and_others() -> None:
    store = MemoryStore()
    with Sessions(dict, store=store) as sessions:
        with holding(sessions, "a") as holder, holding(sessions, "a", shared=True):
            with sessions.use("a", shared=True) as state:
                assert state is holder.state
                state["changed"] = True
        record = store.load("sessions", "a")
        assert record is not None
        assert record.version == 1  # the exclusive one saved, the shared ones did not
        assert_balanced(sessions)


def test_s6_a_shared_hold_takes_no_lease_and_saves_nothing() -> None:
    store = MemoryStore()
    with Sessions(dict, store=store) as sessions:
        with (hold := sessions.use("a", shared=True)):
            assert store.stats().leases == 0
            for attempt in (hold.save, hold.discard):
                with pytest.raises(SessionError, match="shared use cannot"):
                    attempt()
            with pytest.raises(SessionError, match="shared use cannot replace"):
                hold.state = {}
        sessions.park("a")
    assert store.count("sessions") == 0


def test_s6_shared_holders_keep_a_session_in_memory() -> None:
    clock = StillClock()
    with Sessions(dict, idle=10, clock=clock) as sessions:
        with holding(sessions, "a", shared=True):
            clock.advance(100)
            assert sessions.sweep() == 0
            assert "a" in sessions
        clock.advance(9)
        assert "a" in sessions
        clock.advance(1)
        assert "a" not in sessions


# ---- [S7] single flight, stuck holds


@pytest.mark.parametrize("stored", [False, True])
def test_s7_all_who_ask_at_once_make_one_factory_call(stored: bool) -> None:
    made, go = list[str](), threading.Event()

    def make(id: str) -> dict[str, Any]:
        made.append(id)
        assert go.wait(PATIENCE)
        return {"n": 0}

    with Sessions(make, store=MemoryStore() if stored else None) as sessions:

        def count() -> int:
            with sessions.use("a") as state:
                state["n"] += 1
                return id(state)

        workers = [Worker(count) for _ in range(8)]
        waiting(sessions, 7)
        go.set()
        assert len({worker.result() for worker in workers}) == 1
        assert made == ["a"]
        assert sessions.peek("a") == {"n": 8}
        assert_balanced(sessions)


def test_s7_a_parked_session_is_loaded_once_for_all() -> None:
    store = Faulty()
    with Sessions(dict, store=store) as sessions:
        use_once(sessions, "a")
        sessions.park("a")
        asked = threading.Event()
        store.calls.clear()
        store.entering = lambda method: method == "load" and asked.wait(PATIENCE)
        workers = [Worker(lambda: use_once(sessions, "a", shared=True)) for _ in range(8)]
        waiting(sessions, 7)
        asked.set()
        for worker in workers:
            worker.result()
        assert store.calls.count("load") == 1
        assert sessions.stats().loaded == 1


def test_s7_a_failed_open_wakes_all_with_the_error_and_is_not_kept() -> None:
    go, fails = threading.Event(), [True]

    def make() -> dict[str, Any]:
        assert go.wait(PATIENCE)
        if fails[0]:
            raise LookupError("no model")
        return {}

    with Sessions(make) as sessions:
        workers = [Worker(use_once, sessions, "a") for _ in range(5)]
        waiting(sessions, 4)
        go.set()
        for worker in workers:
            assert isinstance(worker.wait().error, LookupError)
        assert_balanced(sessions)
        fails[0] = False
        assert use_once(sessions, "a") == {}


def test_s7_an_on_open_that_raises_is_a_failed_open_and_the_state_is_closed() -> None:
    class Service:
        closed = 0

        def close(self) -> None:
            Service.closed += 1

    def refuse(id: str, state: Service) -> None:
        raise PermissionError(id)

    with Sessions(Service, on_open=refuse) as sessions:
        with pytest.raises(PermissionError):
            use_once(sessions, "a")
        assert Service.closed == 1
        assert len(sessions) == 0
        assert_balanced(sessions)


def test_s7_who_loses_patience_while_opening_leaves_the_open_to_the_next() -> None:
    with Sessions(dict, max_sessions=1) as sessions:
        with holding(sessions, "a"):
            impatient = Worker(lambda: use_once(sessions, "b", wait=0.2))
            until(lambda: sessions.stats().waiting == 1 or not impatient.running())
            patient = Worker(use_once, sessions, "b")
            assert isinstance(impatient.wait().error, SessionsFull)
            assert patient.running()
        assert patient.result() == {}
        assert_balanced(sessions)


def test_s7_a_hold_longer_than_max_hold_is_reported_once_with_its_stack() -> None:
    clock = StillClock()
    with Sessions(dict, max_hold=10, clock=clock, name="stuck in threads") as sessions:
        with holding(sessions, "a"), holding(sessions, "b", shared=True):
            clock.advance(11)
            sessions.sweep()
            sessions.sweep()
            assert sessions.stats().stuck == 2
    events = events_of("stuck_hold", "stuck in threads")
    assert sorted(event.fields["id"] for event in events) == ["a", "b"]
    assert all("in _hold\n" in event.fields["stack"] for event in events)
    assert all(event.fields["seconds"] == 11 for event in events)


# ---- full


def test_when_full_an_unused_session_goes_first() -> None:
    with Sessions(dict, max_sessions=2) as sessions:
        for one in "abc":
            use_once(sessions, one)
        assert sessions.ids() == ["b", "c"]
        assert sessions.stats().left == {"count": 1}


def test_when_full_reject_refuses_at_once() -> None:
    with Sessions(dict, max_sessions=1, when_full="reject") as sessions, holding(sessions, "a"):
        with pytest.raises(SessionsFull):
            use_once(sessions, "b")
    assert_balanced(sessions)


def test_when_full_grow_goes_above_and_comes_back() -> None:
    with Sessions(dict, max_sessions=1, when_full="grow", name="growing") as sessions:
        with holding(sessions, "a"):
            with sessions.use("b"):
                assert len(sessions) == 2
            assert sessions.ids() == ["a"]
        assert sessions.stats().grown == 1
        assert len(sessions) == 1
        assert events_of("over_limit", "growing")
        assert_balanced(sessions)


def test_after_shutdown_new_uses_are_refused() -> None:
    sessions = Sessions(dict)
    use_once(sessions, "a")
    assert sessions.shutdown() == 0
    with pytest.raises(SessionClosed, match="shut down"):
        use_once(sessions, "a")


def test_an_interrupted_wait_leaves_the_queue() -> None:
    """A Ctrl-C in the middle of waiting, for the turn and for room."""

    class Interrupt(BaseException):
        pass

    def interrupt(hold: Any, deadline: float) -> bool:
        raise Interrupt

    with Sessions(dict, max_sessions=1) as sessions:
        with holding(sessions, "a"):
            sessions._wait = interrupt  # type: ignore[method-assign]
            for one in "ab":
                with pytest.raises(Interrupt):
                    use_once(sessions, one)
            del sessions._wait
            assert sessions.stats().waiting == 0
        use_once(sessions, "b")
        assert_balanced(sessions)


def test_sqlite_and_memory_stores_serve_alike(tmp_path: Path) -> None:
    for store in (MemoryStore(), SQLiteStore(tmp_path / "s.db")):
        with Sessions(list, store=store, max_sessions=3) as sessions:
            workers = [
                Worker(lambda n=n: [append(sessions, n, f"id{m}") for m in range(10)])
                for n in range(4)
            ]
            for worker in workers:
                worker.result()
            for m in range(10):
                assert sorted(use_once(sessions, f"id{m}")) == [0, 1, 2, 3]
            assert len(sessions) <= 3
            assert_balanced(sessions)
        store.close()
