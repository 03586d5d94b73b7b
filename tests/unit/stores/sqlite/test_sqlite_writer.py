"""The thread of a store: batches, closing, exits, finalizers, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from floodline.errors import ConfigError, StoreClosed, StoreUnavailable
from floodline.stores import Grant, MemoryStore, SQLiteStore, _lease_clock, open_store
from floodline.stores import _forks as forks
from floodline.stores import _writer as writer_module
from floodline.stores._sqlite.database import _inherited
from floodline.stores._writer import Call


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    made = SQLiteStore(tmp_path / "s.db")
    yield made
    made.close()


def files() -> list[str]:
    found = []
    for number in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(number.readlink()))
    return found


def wait_until(true: Any, patience: float = 100.0) -> None:
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, "waited too long"
        threading.Event().wait(0.001)


def watch_batches(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    batches: list[list[str]] = []
    run = store._database.run

    def watched(batch: Sequence[Call]) -> None:
        batches.append([call.what for call in batch])
        run(batch)

    monkeypatch.setattr(store._database, "run", watched)
    return batches


# -- batches


def test_what_waits_is_one_batch(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = watch_batches(store, monkeypatch)
    results: list[Any] = []

    def work(n: int) -> None:
        results.append(store.acquire("chat", f"id{n}", "me", lease=15.0))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(9)]
    with store._writer._running:
        threads[0].start()
        wait_until(lambda: store._writer._waiting)  # it has the first call, and waits to run it
        for thread in threads[1:]:
            thread.start()
        wait_until(lambda: store._writer._queue.qsize() == 8)
    for thread in threads:
        thread.join(100)
    assert [len(batch) for batch in batches] == [1, 8]
    assert sorted(grant.fence for grant in results) == list(range(1, 10))


def waiting(batch: Sequence[Call], woken: list[int]) -> list[threading.Thread]:
    def wait(n: int) -> None:
        batch[n].wait()
        woken.append(n)

    threads = [threading.Thread(target=wait, args=(n,)) for n in range(len(batch))]
    for thread in threads:
        thread.start()
    return threads


def test_callers_of_a_batch_wake_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_PATIENCE", 100.0)
    batch, woken = [Call("load", ()) for _ in range(5)], list[int]()
    threads = waiting(batch, woken)
    writer_module._settle_in_turn(batch)  # returns once the last is awake
    for thread in threads:
        thread.join(100)
    assert sorted(woken) == [0, 1, 2, 3, 4]
    assert [call.next for call in batch] == [None] * 5


def test_a_caller_that_has_gone_keeps_nobody_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_PATIENCE", 0.0)
    batch, woken = [Call("load", ()) for _ in range(5)], list[int]()
    threads = waiting(batch[1:], woken)  # the first was interrupted, and does not wait
    writer_module._settle_in_turn(batch)
    for thread in threads:
        thread.join(100)
    assert sorted(woken) == [0, 1, 2, 3]


def test_a_caller_runs_its_own_call_when_the_crowd_has_gone(store: SQLiteStore) -> None:
    workers: list[int] = []
    run = store._database.run

    def watched(batch: Sequence[Call]) -> None:
        workers.append(threading.get_ident())
        run(batch)

    store._database.run = watched  # type: ignore[method-assign]  # to see which thread works
    store._writer._crowded = True
    store.count("chat")
    wait_until(lambda: not store._writer._crowded)
    store.count("chat")
    me = threading.get_ident()
    assert workers[0] != me
    assert workers[1] == me


def test_a_batch_has_an_end(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_BATCH", 4)
    batches = watch_batches(store, monkeypatch)

    async def main() -> None:
        await asyncio.gather(*(store.aio.count("chat") for _ in range(10)))

    asyncio.run(main())
    assert sum(map(len, batches)) == 10
    assert max(map(len, batches)) <= 4


def test_a_lonely_call_needs_no_thread(store: SQLiteStore) -> None:
    store.acquire("chat", "a", "me", lease=15.0)
    assert store._writer._thread is None


def test_a_lonely_caller_waits_behind_the_thread(store: SQLiteStore) -> None:
    with store._writer._running:
        call = Call("count", ("chat",))
        assert not store._writer._run_alone(call)
    store._writer._waiting = True
    assert not store._writer._run_alone(call)
    store._writer._waiting = False
    assert store._writer._run_alone(call)


# -- awaiting


def test_cancelling_an_await_does_not_undo_the_operation(store: SQLiteStore) -> None:
    problems: list[Any] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        with store._writer._running:
            task = asyncio.create_task(store.aio.acquire("chat", "a", "me", lease=15.0))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await store.aio.count("chat")

    asyncio.run(main())
    assert problems == []
    assert store.stats().leases == 1


def test_a_loop_that_closed_meanwhile_harms_nothing(store: SQLiteStore) -> None:
    async def leave() -> None:
        task = asyncio.create_task(store.aio.acquire("chat", "a", "me", lease=15.0))
        await asyncio.sleep(0)
        task.cancel()

    with store._writer._running:
        asyncio.run(leave())
    assert store.aio is not None
    assert asyncio.run(store.aio.stats()).leases == 1


def test_the_twin_serves_several_loops(store: SQLiteStore) -> None:
    counts: list[int] = []

    def loop(n: int) -> None:
        async def main() -> None:
            grants = [store.aio.acquire(f"n{n}", f"id{m}", "me", lease=15.0) for m in range(20)]
            counts.append(len(await asyncio.gather(*grants)))

        asyncio.run(main())

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert counts == [20] * 4
    assert store.stats().leases == 80


# -- finalizers


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("twin", [False, True], ids=["blocking", "awaited"])
def test_a_call_inside_a_call_is_refused_and_can_be_foreseen(
    tmp_path: Path, kind: str, twin: bool
) -> None:
    seen: list[Any] = []
    store: Any = None

    def clock() -> float:  # runs in the middle of a call, as a finalizer might
        if store is None:  # it is tried at construction
            return 1.0
        seen.append((store.is_writer_thread(), store.aio.is_writer_thread()))
        with pytest.raises(StoreUnavailable, match=r"is_writer_thread|inside another call"):
            store.load("chat", "a")
        return 1.0

    in_memory = kind == "memory"
    store = MemoryStore(clock=clock) if in_memory else SQLiteStore(tmp_path / "s.db", clock=clock)
    if twin:
        asyncio.run(store.aio.acquire("chat", "a", "me", lease=15.0))
    else:
        store.acquire("chat", "a", "me", lease=15.0)
    assert seen == [(True, True)]
    assert not store.is_writer_thread()
    store.close()


def test_another_thread_is_not_the_writer_while_one_works(tmp_path: Path) -> None:
    answers: list[bool] = []
    memory: MemoryStore | None = None

    def clock() -> float:
        if memory is None:  # it is tried at construction
            return 1.0
        thread = threading.Thread(target=lambda: answers.append(memory.is_writer_thread()))
        thread.start()
        thread.join(100)
        return 1.0

    memory = MemoryStore(clock=clock)
    memory.acquire("chat", "a", "me", lease=15.0)
    assert answers == [False]


def test_a_close_on_the_writer_thread_does_not_wait_for_itself(tmp_path: Path) -> None:
    stores: list[SQLiteStore] = []

    def clock() -> float:
        for store in stores:
            store.close()
        return 1.0

    store = SQLiteStore(tmp_path / "s.db", clock=clock)
    stores.append(store)
    assert isinstance(store.acquire("chat", "a", "me", lease=15.0), Grant)
    with pytest.raises(StoreClosed):
        store.count("chat")
    store.close()


def test_an_interrupted_call_leaves_the_store_usable(tmp_path: Path) -> None:
    def clock() -> float:
        if times:
            raise times.pop()
        return 1.0

    times: list[BaseException] = []
    store = SQLiteStore(tmp_path / "s.db", clock=clock)
    times.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        store.acquire("chat", "a", "me", lease=15.0)
    connection = store._database._connection
    assert connection is not None
    connection.execute("BEGIN IMMEDIATE")  # as a second Ctrl-C during the rollback would leave it
    assert isinstance(store.acquire("chat", "a", "me", lease=15.0), Grant)
    store.close()


# -- closing


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
@pytest.mark.parametrize("way", ["close", "aclose", "collect", "collect unused"])
def test_no_thread_and_no_file_is_left_behind(tmp_path: Path, way: str) -> None:
    threads = set(threading.enumerate())

    def ours() -> list[str]:
        return [file for file in files() if str(tmp_path) in file]

    for _ in range(3):
        store = SQLiteStore(tmp_path / "s.db")
        if way != "collect unused":
            asyncio.run(store.aio.acquire("chat", "a", "me", lease=15.0))
            assert set(threading.enumerate()) - threads
        assert ours()
        if way == "close":
            store.close()
        elif way == "aclose":
            asyncio.run(store.aio.close())
        del store
        gc.collect()
    wait_until(lambda: set(threading.enumerate()) <= threads and not ours())
    assert [file.name for file in tmp_path.iterdir()] == ["s.db"], "the log was folded in"


def test_the_twin_keeps_its_store(tmp_path: Path) -> None:
    twin = SQLiteStore(tmp_path / "s.db").aio
    gc.collect()
    assert asyncio.run(twin.count("chat")) == 0
    asyncio.run(twin.close())


def test_closing_finishes_what_was_asked_before(store: SQLiteStore) -> None:
    async def main() -> list[Any]:
        with store._writer._running:
            acquires = [store.aio.acquire("chat", f"id{n}", "me", lease=15.0) for n in range(5)]
            tasks = [asyncio.create_task(call) for call in acquires]
            await asyncio.sleep(0)
            closing = threading.Thread(target=store.close)
            closing.start()
            wait_until(lambda: store._writer._closed)
        grants = await asyncio.gather(*tasks)
        closing.join(100)
        return grants

    assert [grant.fence for grant in asyncio.run(main())] == [1, 2, 3, 4, 5]


def test_a_call_that_came_behind_the_end_is_refused(store: SQLiteStore) -> None:
    asyncio.run(store.aio.count("chat"))
    store.close()
    late = Call("count", ("chat",))
    store._writer._queue.put(late)
    store._writer._finish()
    assert isinstance(late.error, StoreClosed)
    assert late.done.acquire(timeout=1)


def test_a_call_that_meets_the_close_is_answered(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    help_out = store._writer._help

    def close_and_help() -> None:
        help_out()
        store._writer._stop()

    monkeypatch.setattr(store._writer, "_help", close_and_help)
    assert asyncio.run(store.aio.count("chat")) == 0


def test_a_call_that_stands_behind_the_end_is_refused(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(store.aio.count("chat"))
    writer = store._writer

    def close_meanwhile() -> bool:
        monkeypatch.undo()
        writer.close()
        return False

    async def main() -> None:
        # asked after the call saw an open store, and before it stands in the queue
        monkeypatch.setattr(writer, "is_writer_thread", close_meanwhile)
        with pytest.raises(StoreClosed, match="in the meantime"):
            await asyncio.wait_for(store.aio.count("chat"), 20)

    asyncio.run(main())


def test_a_lonely_call_that_meets_the_close_is_refused(store: SQLiteStore) -> None:
    writer = store._writer

    class Closing:
        """A lock that is got just after somebody closed the store."""

        def locked(self) -> bool:
            return False

        def __enter__(self) -> None:
            writer._closed = True

        def __exit__(self, *error: object) -> None:
            pass

    lock, writer._running = writer._running, Closing()  # type: ignore[assignment]  # a double
    with pytest.raises(StoreClosed):
        store.count("chat")
    writer._running, writer._closed = lock, False


# -- without threads


def test_where_no_thread_can_be_started_the_caller_does_the_work(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    async def main() -> list[Any]:
        return await asyncio.gather(
            *(store.aio.acquire("chat", f"id{n}", "me", lease=15.0) for n in range(3))
        )

    assert [grant.fence for grant in asyncio.run(main())] == [1, 2, 3]
    store.close()


def test_a_thread_that_exit_froze_is_not_waited_for(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "_LAST_PATIENCE", 0.01)
    monkeypatch.setattr(store._writer, "_start", lambda: False)
    with monkeypatch.context() as patch:
        patch.setattr(writer_module.sys, "is_finalizing", lambda: True)
        with store._writer._running, pytest.raises(StoreUnavailable, match="at exit"):
            store.count("chat")
        with store._writer._running:
            store.close()
        assert store._database._connection is not None
    store._database.shut()


def test_two_helpers_start_one_thread(store: SQLiteStore) -> None:
    asyncio.run(store.aio.count("chat"))
    thread = store._writer._thread
    store._writer._help()
    assert store._writer._thread is thread


# -- forks


def test_connections_are_closed_around_a_fork(store: SQLiteStore) -> None:
    store.acquire("chat", "a", "me", lease=15.0)
    forks._before_fork()
    assert store._database._connection is None
    assert store._writer._running.locked()
    forks._after_fork_in_parent()
    assert store.stats().leases == 1


def test_a_child_starts_anew(store: SQLiteStore) -> None:
    asyncio.run(store.aio.count("chat"))
    parents_thread, queue = store._writer._thread, store._writer._queue
    forks._before_fork()
    forks._after_fork_in_child()  # as in a child, but in this process
    assert store._writer._thread is None
    assert store.count("chat") == 0
    assert not store._writer._running.locked()
    for one in (queue, store._writer._queue):  # a real child has no such thread to end
        one.put(None)
    assert parents_thread is not None
    parents_thread.join(100)
    assert not parents_thread.is_alive()


def test_a_connection_that_could_not_be_closed_is_never_touched_by_the_child(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "_FORK_PATIENCE", 0.01)
    connection = store._database._connection
    assert connection is not None
    with store._writer._running:
        forks._before_fork()
        forks._after_fork_in_child()
    assert store.count("chat") == 0
    assert store._database._connection is not connection
    assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
    _inherited.clear()
    connection.close()


def test_a_child_finds_its_memory_store_empty() -> None:
    from floodline.stores._memory import store as store_module

    store = MemoryStore()
    store.acquire("chat", "a", "me", lease=15.0)
    store_module._after_fork()
    assert store.stats().leases == 0


# -- making one


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": ""}, "names no file"),
        ({"path": "a\0b"}, "names no file"),
        ({"path": ":memory:"}, "use MemoryStore"),
        ({"synchronous": "off"}, "synchronous='off' is unknown; choose one of 'normal', 'full'"),
        ({"busy_timeout": "long"}, "busy_timeout='long'"),
        ({"busy_timeout": -1}, "busy_timeout=-1"),
    ],
)
def test_bad_arguments_are_refused(tmp_path: Path, options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SQLiteStore(**{"path": tmp_path / "s.db", **options})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("word", "number"), [("normal", 1), ("full", 2)])
def test_synchronous_is_set(tmp_path: Path, word: str, number: int) -> None:
    """[T6]"""
    store = SQLiteStore(tmp_path / "s.db", synchronous=word)
    connection = store._database._connection
    assert connection is not None
    assert connection.execute("PRAGMA synchronous").fetchone() == (number,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_stores_are_opened_by_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_store("memory://"), MemoryStore)
    for url, name in [
        ("sqlite:///agent.db", "agent.db"),
        (f"sqlite:///{tmp_path}/absolute.db", "absolute.db"),
        ("sqlite:///with%20space%3F.db", "with space?.db"),
    ]:
        store = open_store(url)
        assert isinstance(store, SQLiteStore)
        assert store.path == str(tmp_path / name)
        store.close()
        assert (tmp_path / name).exists()


@pytest.mark.parametrize(
    "url",
    [
        "mysql://localhost",
        "agent.db",
        "",
        "sqlite://",
        "sqlite:///",
        "sqlite://agent.db",
        "sqlite:///a.db?mode=ro",
        "memory://name",
        None,
        Path("agent.db"),
    ],
)
def test_an_unknown_url_names_what_is_known(url: Any) -> None:
    with pytest.raises(ConfigError, match=r"sqlite:///relative\.db.*memory://"):
        open_store(url)


# -- space and time


def test_deleted_sessions_give_their_space_back_in_slices(tmp_path: Path) -> None:
    times = [1000.0]
    store = SQLiteStore(tmp_path / "s.db", clock=lambda: times[0], wall=lambda: times[0])
    for n in range(1000):
        grant = store.acquire("chat", f"id{n}", "me", lease=15.0)
        assert isinstance(grant, Grant)
        store.save(
            "chat",
            f"id{n}",
            bytes(8000),
            fence=grant.fence,
            version=0,
            write_id="w",
            release=True,
        )
    store.close()
    full = (tmp_path / "s.db").stat().st_size
    store = SQLiteStore(tmp_path / "s.db", clock=lambda: times[0], wall=lambda: times[0])
    times[0] += 1000
    sizes = []
    while store.purge("chat", unused=10, limit=100):
        store._database.shut()
        sizes.append((tmp_path / "s.db").stat().st_size)
    store.close()
    assert sizes[-1] < full / 2
    assert sorted(sizes, reverse=True) == sizes


def test_leases_that_crashes_left_are_forgotten_when_the_file_is_opened(tmp_path: Path) -> None:
    now = [100_000.0]
    store = SQLiteStore(tmp_path / "s.db", clock=lambda: now[0])
    store.acquire("chat", "old", "gone", lease=15.0)
    now[0] += 3000
    store.acquire("chat", "young", "gone", lease=15.0)
    store.close()
    now[0] += 700
    store = SQLiteStore(tmp_path / "s.db", clock=lambda: now[0])
    assert store.stats().leases == 2, "reading changes nothing"
    store.acquire("chat", "new", "me", lease=15.0)
    assert store.stats().leases == 2
    store.close()


def test_the_clock_of_leases_counts_sleep_where_the_system_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _lease_clock.machine_clock()() > 0
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert _lease_clock.machine_clock() is time.monotonic


def test_the_write_ahead_log_is_bounded(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "s.db")
    for n in range(600):
        grant = store.acquire("chat", "a", "me", lease=15.0)
        assert isinstance(grant, Grant)
        store.save(
            "chat",
            "a",
            n.to_bytes(2, "big") * 50_000,
            fence=grant.fence,
            version=grant.version,
            write_id=f"w{n}",
            release=True,
        )
    log = (tmp_path / "s.db-wal").stat().st_size
    store.close()
    assert log < 20 * 1024**2, "60 MB were written"
