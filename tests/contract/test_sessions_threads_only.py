"""What is special to `Sessions` for threads; the rest is in the scenarios for both drivers."""

# ruff: noqa: PT012 - a use is a block, and what it raises comes from the whole of it

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from event_loops import StillClock
from floodline import Sessions
from floodline.errors import SaveFailed, WouldBlockLoop
from floodline.stores import MemoryStore
from worker_threads import Faulty, Worker, assert_balanced, holding, waiting


def use_once(sessions: Sessions[Any], id: str, **change: Any) -> Any:
    with sessions.use(id) as state:
        state.update(change)
        return state


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


def test_s9_a_save_that_failed_once_is_not_tried_again_in_the_same_breath() -> None:
    store = Faulty()
    with Sessions(dict, store=store, sweep_every=None) as sessions:
        store.fail("save")
        with pytest.raises(SaveFailed):
            use_once(sessions, "a", n=1)
        assert store.calls.count("save") == 1
        store.recover()
        use_once(sessions, "b")  # any use that goes well tries again
        assert sessions.stats().unsaved == 0


def test_s10_an_interrupt_inside_a_finalizer_leaves_nothing_half_done() -> None:
    class Interrupt(BaseException):
        pass

    def finalizer(*_: Any) -> None:
        raise Interrupt

    with Sessions(dict, store=MemoryStore(), on_leave=finalizer) as sessions:
        use_once(sessions, "a", n=1)
        with pytest.raises(Interrupt):
            sessions.park("a")
        assert_balanced(sessions)
        with pytest.raises(Interrupt), (hold := sessions.use("a")) as state:
            state["n"] = 2
            hold.discard()
        assert_balanced(sessions)
        sessions._core.hooks.on_leave = None
        assert use_once(sessions, "a") == {"n": 1}


def test_s10_threads_see_out_a_bounded_number_a_call() -> None:
    clock = StillClock()
    with Sessions(dict, idle=10, clock=clock, max_sessions=None, sweep_every=None) as sessions:
        for n in range(100):
            use_once(sessions, f"id{n}")
        clock.advance(10)
        use_once(sessions, "new")
        assert 0 < sum(sessions.stats().left.values()) < 20
        assert sessions.ids() == ["new"]
        assert len(sessions) == 1
        assert sessions.sweep() > 0


def test_t1_leases_are_renewed_each_third_of_one_while_something_is_live() -> None:
    with Sessions(dict, store=MemoryStore(), lease=15) as sessions:
        with sessions.use("a"):
            assert sessions._renew_tick() == 5
        assert sessions._renew_tick() == 5
        sessions.park("a")
        assert sessions._renew_tick() is None
