"""`AsyncSessions` and event loops: [S15], and what ends without a loop to run on."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from event_loops import assert_balanced, gather_all, own_tasks, run_clean, settle, turns, until
from floodline import AsyncSessions, Reason
from floodline.errors import WrongLoop
from floodline.stores import MemoryStore

STORED = pytest.mark.parametrize("stored", [False, True])


async def add(sessions: AsyncSessions[Any], key: str = "a") -> int:
    async with sessions.use(key) as state:
        state["n"] = state.get("n", 0) + 1
        return int(state["n"])


def run_python(code: str, *args: str) -> str:
    """Run a program in a process of its own; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *args],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


# ---- moving between loops


@STORED
def test_s15_sessions_move_to_the_next_loop_when_their_own_has_ended(stored: bool) -> None:
    store = MemoryStore() if stored else None
    sessions: AsyncSessions[dict[str, int]] = AsyncSessions(dict, store=store)
    assert [run_clean(lambda: add(sessions)) for _ in range(3)] == [1, 2, 3]

    async def last() -> None:
        assert sessions._driver._tick_timer is None or sessions._driver.loop is not None
        await add(sessions)
        assert sessions._driver._tick_timer is not None, "the new loop ticks too"
        assert await sessions.shutdown() == 0

    run_clean(last)


@pytest.mark.parametrize("call", ["use", "park", "complete", "close", "sweep", "shed", "shutdown"])
@STORED
def test_s15_a_second_running_loop_is_refused_while_something_is_live(
    call: str, stored: bool
) -> None:
    store = MemoryStore() if stored else None
    sessions: AsyncSessions[dict[str, int]] = AsyncSessions(dict, store=store)

    async def elsewhere() -> None:
        calls: dict[str, Any] = {
            "use": lambda: add(sessions, "b"),
            "sweep": sessions.sweep,
            "shed": lambda: sessions.shed(1),
            "shutdown": sessions.shutdown,
        }
        with pytest.raises(WrongLoop):
            await calls.get(call, lambda: getattr(sessions, call)("a"))()

    async def main() -> None:
        await add(sessions)
        errors: list[BaseException] = []

        def work() -> None:
            try:
                run_clean(elsewhere)
            except BaseException as error:  # handed to the test
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert not errors, errors
        assert await add(sessions) == 2
        await settle(sessions)
        assert_balanced(sessions)
        assert await sessions.shutdown() == 0

    run_clean(main)


def test_s15_sessions_move_to_a_second_running_loop_when_nothing_is_live() -> None:
    sessions = AsyncSessions(dict)

    async def main() -> None:
        await add(sessions)
        await sessions.close("a")
        assert await asyncio.to_thread(asyncio.run, add(sessions)) == 1

    run_clean(main)


@STORED
def test_s15_a_task_that_holds_when_its_loop_ends_is_saved(stored: bool) -> None:
    store = MemoryStore() if stored else None
    left: list[str] = []
    sessions: AsyncSessions[dict[str, int]] = AsyncSessions(
        dict, store=store, on_leave=lambda key, state, reason: left.append(key)
    )

    async def hang() -> None:
        async with sessions.use("a") as state:
            state["n"] = 1
            await asyncio.Event().wait()

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(hang())
        await turns()
        return task

    run_clean(main)
    assert_balanced(sessions)
    assert run_clean(lambda: add(sessions)) == 2
    assert run_clean(sessions.shutdown) == 0
    assert left == ["a"]
    if store is not None:
        assert store.stats().leases == 0


class Slow:
    """A coroutine twin whose saves and acquires reach the store, but never come back."""

    def __init__(self, inner: Any, hang: str) -> None:
        self.inner, self.hang = inner, hang

    def __getattr__(self, method: str) -> Any:
        call = getattr(self.inner, method)

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            answer = call(*args, **kwargs)
            if method == self.hang:
                await asyncio.Event().wait()
            return answer

        return awaited


@pytest.mark.parametrize("method", ["acquire", "save", "release"])
def test_s15_a_store_call_that_the_end_of_the_loop_cut_off_blocks_nothing(method: str) -> None:
    store: Any = MemoryStore()
    sessions = AsyncSessions(dict, store=store)
    sessions._driver._awaited = Slow(store, method)

    async def main() -> None:
        task = asyncio.create_task(add(sessions))
        await turns(20)
        assert not task.done() or method == "release"

    run_clean(main)
    assert_balanced(sessions)
    sessions._driver._awaited = store.aio
    first = run_clean(lambda: add(sessions))
    assert first == (1 if method == "acquire" else 2)
    assert run_clean(sessions.shutdown) == 0
    assert store.stats().conflicts == 0
    assert store.stats().leases == 0


def test_s15_a_finalizer_that_the_end_of_the_loop_cut_off_blocks_nothing() -> None:
    closed: list[str] = []

    class Thing:
        async def aclose(self) -> None:
            closed.append("aclose")

    async def on_leave(key: str, state: Any, reason: Reason) -> None:
        await asyncio.Event().wait()

    sessions = AsyncSessions(Thing, on_leave=on_leave)

    async def main() -> None:
        async with sessions.use("a"):
            pass
        task = asyncio.create_task(sessions.park("a"))
        await turns()
        assert not task.done()

    run_clean(main)
    assert len(sessions) == 0
    assert closed == ["aclose"]
    assert_balanced(sessions)


@STORED
def test_s15_what_a_loop_left_unfinished_when_it_was_closed_is_finished(stored: bool) -> None:
    store = MemoryStore() if stored else None
    ran: list[str] = []

    async def on_leave(key: str, state: Any, reason: Reason) -> None:
        ran.append(key)
        await asyncio.Event().wait()

    sessions: AsyncSessions[dict[str, int]] = AsyncSessions(dict, store=store, on_leave=on_leave)
    loop = asyncio.new_event_loop()

    async def main() -> None:
        await add(sessions)
        await add(sessions, "b")
        parks = [asyncio.ensure_future(sessions.park(key)) for key in "ab"]
        await turns()
        for park in parks:
            park.cancel()
        await turns()
        async with sessions.use("c"):
            await sessions.park("c")

    loop.run_until_complete(main())
    tasks = asyncio.all_tasks(loop)
    loop.close()  # without cancelling anything
    for task in tasks:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant to be
    del tasks

    async def after() -> None:
        assert await asyncio.wait_for(add(sessions), 5) == (2 if stored else 1)
        await sessions.sweep()

    run_clean(after)
    assert sorted(ran)[:2] == ["a", "b"]
    assert "c" not in sessions


# ---- coroutines that are destroyed


@STORED
@pytest.mark.parametrize("running", [False, True])
def test_a_coroutine_that_is_destroyed_while_it_holds_lets_go(stored: bool, running: bool) -> None:
    store = MemoryStore() if stored else None
    sessions: AsyncSessions[dict[str, int]] = AsyncSessions(dict, store=store)

    async def hang() -> None:
        async with sessions.use("a") as state:
            state["m"] = 1
            await _forever()

    async def main() -> None:
        first = asyncio.create_task(add(sessions))
        await first
        task = asyncio.create_task(hang())
        await until(lambda: (sessions.peek("a") or {}).get("m"))
        coroutine: Any = task.get_coro()
        if running:
            coroutine.close()
            await settle(sessions)
            assert_balanced(sessions)
        await _end(task)

    async def _end(task: asyncio.Task[None]) -> None:
        task.cancel()
        await gather_all(task)

    run_clean(main)
    assert_balanced(sessions)
    assert run_clean(lambda: add(sessions)) == 2


async def _forever() -> None:
    await asyncio.Event().wait()


@STORED
def test_a_pending_task_of_a_loop_that_was_dropped_lets_go_of_its_hold(stored: bool) -> None:
    store = MemoryStore() if stored else None
    sessions: AsyncSessions[dict[str, int]] = AsyncSessions(dict, store=store)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: None)  # "Task was destroyed but it is pending!"

    async def hang() -> None:
        async with sessions.use("a") as state:
            state["n"] = 1
            await _forever()

    async def main() -> None:
        asyncio.ensure_future(hang()).set_name("holder")
        waiting = asyncio.ensure_future(add(sessions))
        waiting.set_name("waiter")
        await turns(20)

    loop.run_until_complete(main())
    assert sessions.stats().held == 1
    assert sessions.stats().waiting == 1
    loop.close()
    gc.collect()
    assert_balanced(sessions)
    assert run_clean(lambda: add(sessions)) == 2
    assert run_clean(sessions.shutdown) == 0


def test_a_coroutine_collected_in_another_thread_lets_go() -> None:
    sessions: AsyncSessions[dict[str, int]] = AsyncSessions(dict, store=MemoryStore())

    async def main() -> None:
        inside = asyncio.Event()

        async def hang() -> None:
            async with sessions.use("a") as state:
                state["n"] = 1
                inside.set()
                await _forever()

        task = asyncio.create_task(hang())
        await inside.wait()
        coroutine: Any = task.get_coro()
        await asyncio.to_thread(coroutine.close)
        await until(lambda: sessions.stats().held == 0)
        await settle(sessions)
        assert_balanced(sessions)
        task.cancel()
        await gather_all(task)
        assert await add(sessions) == 2

    run_clean(main)


@pytest.mark.parametrize("where", ["opening", "waiting for a turn", "waiting for room"])
def test_a_coroutine_that_is_destroyed_on_its_way_in_leaves_nothing(where: str) -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def make(key: str) -> dict[str, int]:
            if key == "slow":
                await gate.wait()
            return {}

        sessions = AsyncSessions(make, max_sessions=1)
        key = {"opening": "slow", "waiting for a turn": "a", "waiting for room": "b"}[where]
        blocker = sessions.use("a")
        if where != "opening":
            await blocker.__aenter__()
        task = asyncio.create_task(add(sessions, key))
        await turns()
        coroutine: Any = task.get_coro()
        coroutine.close()
        task.cancel()
        await gather_all(task)
        gate.set()
        await settle(sessions)
        if where != "opening":
            await blocker.__aexit__(None, None, None)
        await settle(sessions)
        assert_balanced(sessions)
        assert await add(sessions, key) == 1

    run_clean(main)


# ---- timers


def test_the_sweeper_ticks_by_itself_stops_when_nothing_is_live_and_starts_again() -> None:
    async def main() -> None:
        sessions = AsyncSessions(dict, idle=0.01)
        assert sessions._driver._tick_timer is None
        for _ in range(2):
            await add(sessions)
            assert sessions._driver._tick_timer is not None
            await until(lambda: not sessions._core.table.entries)
            await until(lambda: sessions._driver._tick_timer is None)
            await settle(sessions)

    run_clean(main)


def test_the_timers_keep_neither_the_sessions_nor_the_loop_alive() -> None:
    refs: list[weakref.ref[Any]] = []

    async def main() -> None:
        sessions = AsyncSessions(dict, store=MemoryStore(), durability="park")
        await add(sessions)
        assert sessions._driver._tick_timer is not None
        assert sessions._driver._renew_timer is not None
        await settle(sessions)
        refs.append(weakref.ref(sessions))
        refs.append(weakref.ref(asyncio.get_running_loop()))
        del sessions
        gc.collect()
        assert refs[0]() is None

    run_clean(main)
    gc.collect()
    assert refs[1]() is None


def test_owners_that_die_add_no_timers() -> None:
    async def main() -> None:
        class Owner:
            pass

        async with AsyncSessions(dict) as sessions:
            for number in range(20):
                async with sessions.use("a"):
                    owner = Owner()
                    sessions.bind("a", owner)
                del owner
                await until(lambda: "a" not in sessions)
                await add(sessions, f"{number}")
            loop: Any = asyncio.get_running_loop()
            ticks = [t for t in loop._scheduled if not t.cancelled() and "_call_weakly" in repr(t)]
            assert len(ticks) == 1

    run_clean(main)


# ---- the end of the interpreter, and forks


def test_s15_at_exit_without_a_loop_everything_is_saved_and_async_finalizers_are_counted(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "a.db")
    code = """
        import asyncio, atexit, sys
        from floodline import AsyncSessions
        from floodline.stores import SQLiteStore
        ran = []
        class Thing(dict): pass
        async def on_leave(key, state, reason): ran.append(key)
        store = SQLiteStore(sys.argv[1])
        sessions = AsyncSessions(dict, store=store, durability="park", on_leave=on_leave)
        plain = AsyncSessions(dict, on_leave=lambda key, state, reason: ran.append((key, reason)))
        def last():
            print(sessions.stats().finalizers_not_run, ran, store.stats().rows)
        atexit._clear()
        atexit.register(last)
        import floodline.sessions._drivers.sessions_base as base
        atexit.register(base._shut_all_down)
        async def main():
            for key in "abc":
                async with sessions.use(key) as state:
                    state["key"] = key
            async with plain.use("p"): pass
        asyncio.run(main())
        """
    assert run_python(code, path).strip() == "3 [('p', <Reason.shutdown: 'shutdown'>)] 3"


def test_s15_at_exit_unsaved_sessions_and_those_of_a_pending_task_are_saved(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "a.db")
    code = """
        import asyncio, sys
        from floodline import AsyncSessions
        from floodline.errors import StoreUnavailable
        from floodline.stores import SQLiteStore
        class Moody:
            down = True
            def __init__(self, inner): self.inner = inner
            def __getattr__(self, name):
                if name in ("aio", "is_writer_thread"): raise AttributeError(name)
                return self.refuse if name == "save" and self.down else getattr(self.inner, name)
            def refuse(self, *args, **kwargs): raise StoreUnavailable("down")
        store = Moody(SQLiteStore(sys.argv[1]))
        sessions = AsyncSessions(dict, store=store)
        async def hang():
            async with sessions.use("b") as state:
                state["n"] = 2
                await asyncio.Event().wait()
        async def main():
            try:
                async with sessions.use("a") as state: state["n"] = 1
            except Exception as error: print(type(error).__name__)
            task = asyncio.create_task(hang())
            while not sessions.peek('b'): await asyncio.sleep(0)
            store.down = False
        asyncio.run(main())
        """
    assert run_python(code, path).strip() == "SaveFailed"
    check = """
        import sys
        from floodline import Sessions
        sessions = Sessions(dict, store="sqlite:///" + sys.argv[1])
        for key in "ab":
            with sessions.use(key, create=False) as state: print(state)
        """
    assert run_python(check, path).split("\n")[:2] == ["{'n': 1}", "{'n': 2}"]


def test_s15_at_exit_an_async_store_is_awaited_on_a_loop_of_its_own() -> None:
    code = """
        import asyncio, atexit
        from floodline import AsyncSessions
        from floodline.stores import MemoryStore
        inner = MemoryStore()
        class Awaited:
            async def acquire(self, *args, **kwargs): return inner.acquire(*args, **kwargs)
            aio = None
            def __getattr__(self, name):
                async def call(*args, **kwargs):
                    await asyncio.sleep(0)
                    return getattr(inner, name)(*args, **kwargs)
                return call
        def last(): print(inner.stats().rows, inner.stats().leases)
        atexit._clear()
        atexit.register(last)
        import floodline.sessions._drivers.sessions_base as base
        atexit.register(base._shut_all_down)
        sessions = AsyncSessions(dict, store=Awaited(), durability="park")
        async def main():
            async with sessions.use("a") as state: state["n"] = 1
        asyncio.run(main())
        """
    assert run_python(code).strip() == "1 0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_e4_a_forked_child_starts_empty_and_touches_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    code = """
        import asyncio, os, sys, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
        from floodline import AsyncSessions
        from floodline.stores import SQLiteStore
        left = []
        store = SQLiteStore(sys.argv[1])
        sessions = AsyncSessions(dict, store=store, on_leave=lambda *args: left.append(args))
        owner = sessions._core.owner
        async def child():
            assert len(sessions) == 0 and sessions.stats().held == 0
            assert sessions._core.owner != owner
            async with sessions.use("b") as state: state["n"] = 2
            assert await sessions.shutdown() == 0
            assert [args[0] for args in left] == ["b"], left
        def in_child(hold):
            try:
                hold.__aexit__(None, None, None).send(None)
            except StopIteration:
                pass  # it let go without a wait
            else:
                os._exit(1)
            asyncio.run(child())
            os._exit(0)
        async def parent():
            async with (hold := sessions.use("a")) as state:
                state["n"] = 1
                pid = os.fork()
                if pid == 0:  # on a thread: the inherited loop would steal what wakes the parent's
                    state["n"] = 100
                    thread = threading.Thread(target=in_child, args=(hold,))
                    thread.start()
                    thread.join()
                    os._exit(1)
            return pid
        pid = asyncio.run(parent())
        assert os.waitpid(pid, 0)[1] == 0
        async def after():
            async with sessions.use("a") as state: assert state == {"n": 1}, state
            async with sessions.use("b", create=False) as state: assert state == {"n": 2}, state
            assert await sessions.shutdown() == 0
        asyncio.run(after())
        print("good")
        """
    assert run_python(code, path).strip() == "good"


def test_no_task_is_left_after_the_shutdown() -> None:
    async def main() -> None:
        sessions = AsyncSessions(dict, store=MemoryStore(), idle=0.01)
        await asyncio.gather(*(add(sessions, f"{n}") for n in range(30)))
        await sessions.shutdown()
        assert own_tasks(sessions) == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}
        loop: Any = asyncio.get_running_loop()
        assert not [t for t in loop._scheduled if not t.cancelled() and "_call_weakly" in repr(t)]

    run_clean(main)
