"""Several processes on one file: killed, forked, leaving; no acknowledged write is lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from floodline.stores import Grant, Held, SQLiteStore, new_owner

PRELUDE = """
    import asyncio, atexit, os, sys, threading, time, warnings
    from floodline.stores import Grant, Held, SQLiteStore, new_owner

    def put(store, id, content):
        owner = new_owner("test")
        while isinstance(grant := store.acquire("chat", id, owner, lease=15.0), Held):
            time.sleep(0.001)
        content = content(grant.envelope) if callable(content) else content
        return store.save("chat", id, content, fence=grant.fence, version=grant.version,
                          write_id=f"{owner}/{grant.fence}", release=True)
"""

WRITER = """
    store, lock = SQLiteStore(sys.argv[1], busy_timeout="30 s"), threading.Lock()

    def work(id):
        owner = new_owner(id)
        while True:
            grant = store.acquire("chat", id, owner, lease=600.0)
            assert isinstance(grant, Grant), grant  # its last owner was killed
            content = b"%d" % (int(grant.envelope or b"0") + 1) + b" " * 5000
            store.save("chat", id, content, fence=grant.fence, version=grant.version,
                       write_id=f"{owner}/{grant.fence}", release=True)
            with lock:
                os.write(1, b"%s %d\\n" % (id.encode(), int(content)))

    threads = [threading.Thread(target=work, args=(f"id{n}",)) for n in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""

COUNTER = """
    store = SQLiteStore(sys.argv[1], busy_timeout="30 s")
    for _ in range(100):
        put(store, "shared", lambda old: b"%d" % (int(old or b"0") + 1))
    store.close()
"""


def start(program: str, *args: object) -> subprocess.Popen[bytes]:
    source = textwrap.dedent(PRELUDE) + textwrap.dedent(program)
    command = [sys.executable, "-c", source, *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


def finish(process: subprocess.Popen[bytes]) -> str:
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err.decode()
    assert err == b"", err.decode()
    return out.decode()


def kill_once(path: Path, acknowledged: dict[str, int], random: random.Random) -> None:
    process = start(WRITER, path)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(random.randrange(1, 60))]
    process.kill()
    lines += process.stdout.read().splitlines()
    _, err = process.communicate(timeout=400)
    assert err == b"", err.decode()
    for line in lines:
        one, number = line.split()
        acknowledged[one.decode()] = int(number)


def kill_often(path: Path, times: int) -> set[str]:
    """Kill and look, again and again; return the ids that were acknowledged and found."""
    acknowledged: dict[str, int] = {}
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    for _ in range(times):
        kill_once(path, acknowledged, chance)
        store = SQLiteStore(path)
        for one, number in acknowledged.items():
            record = store.load("chat", one)
            assert record is not None, (seed, one)
            assert number <= int(record.envelope) <= number + 1, (seed, one)
            acknowledged[one] = int(record.envelope)
        store.close()
    return set(acknowledged)


def test_a_killed_writer_loses_no_acknowledged_save(tmp_path: Path) -> None:
    assert len(kill_often(tmp_path / "sessions.db", 10)) == 4


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_writer_killed_hundreds_of_times_loses_no_acknowledged_save(tmp_path: Path) -> None:
    assert len(kill_often(tmp_path / "sessions.db", 300)) == 4


def test_processes_that_make_the_file_at_once_share_it(tmp_path: Path) -> None:
    program = """
        sys.stdin.read(1)
        store = SQLiteStore(sys.argv[1])
        put(store, sys.argv[2], b"x")
        store.close()
    """
    processes = [start(program, tmp_path / "s.db", n) for n in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"x")
        process.stdin.flush()
    for process in processes:
        finish(process)
    store = SQLiteStore(tmp_path / "s.db")
    assert store.ids("chat") == ["0", "1", "2", "3"]
    store.close()


def test_two_processes_lose_no_write(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    for process in [start(COUNTER, path), start(COUNTER, path)]:
        finish(process)
    store = SQLiteStore(path)
    record = store.load("chat", "shared")
    store.close()
    assert record is not None
    assert (record.version, record.envelope) == (200, b"200")


def test_two_stores_on_one_file_lose_no_write(tmp_path: Path) -> None:
    path, errors = tmp_path / "sessions.db", list[BaseException]()
    stores = [SQLiteStore(path, busy_timeout="30 s") for _ in range(2)]

    def count(store: SQLiteStore, owner: str) -> None:
        try:
            for _ in range(50):
                while isinstance(grant := store.acquire("chat", "a", owner, lease=15.0), Held):
                    threading.Event().wait(0.0005)
                store.save(
                    "chat",
                    "a",
                    b"%d" % (int(grant.envelope or b"0") + 1),
                    fence=grant.fence,
                    version=grant.version,
                    write_id=f"{owner}/{grant.fence}",
                    release=True,
                )
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=count, args=(store, f"{n}/{m}"))
        for n, store in enumerate(stores)
        for m in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(400)
    record = stores[0].load("chat", "a")
    for store in stores:
        store.close()
    assert errors == []
    assert record is not None
    assert record.envelope == b"200"


def test_the_lease_of_a_killed_process_is_taken_over_at_once(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    process = start(
        """
        store = SQLiteStore(sys.argv[1])
        store.acquire("chat", "a", new_owner("victim"), lease=3600.0)
        print("leased", flush=True)
        time.sleep(600)
        """,
        path,
    )
    assert process.stdout is not None
    process.stdout.readline()
    store = SQLiteStore(path)
    assert isinstance(store.acquire("chat", "a", new_owner("me"), lease=15.0), Held)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie is dead enough
    assert isinstance(store.acquire("chat", "a", new_owner("me"), lease=15.0), Grant)
    store.close()
    process.communicate()


def test_a_process_that_leaves_keeps_the_log_of_those_that_stay(tmp_path: Path) -> None:
    path, log = tmp_path / "s.db", tmp_path / "s.db-wal"
    with SQLiteStore(path) as store, SQLiteStore(path):  # opening one takes no lock from the other
        assert isinstance(store.acquire("chat", "a", new_owner("me"), lease=15.0), Grant)
        before = log.stat().st_ino
        finish(start('put(SQLiteStore(sys.argv[1]), "b", b"x")', path))
        finish(start("SQLiteStore(sys.argv[1]).close()", path))
        assert log.stat().st_ino == before
        assert isinstance(store.acquire("chat", "c", new_owner("me"), lease=15.0), Grant)


FORK = """
    warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of threads beside a fork
    store = SQLiteStore(sys.argv[1])
    asyncio.run(store.aio.count("chat"))  # the thread runs
    stop = threading.Event()

    def busy():
        n = 0
        while not stop.is_set():
            put(store, "parent", b"%d" % (n := n + 1))

    thread = threading.Thread(target=busy)
    thread.start()
    children = []
    for n in range(8):
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(w)
            try:
                assert not store.is_writer_thread()
                put(store, f"child{n}", b"before")
                asyncio.run(store.aio.count("chat"))
                os.read(r, 1)  # the parent has closed its store
                for m in range(20):
                    put(store, f"child{n}", b"after %d" % m)
                os._exit(0)
            finally:
                os._exit(1)
        os.close(r)
        children.append((pid, w))
    stop.set()
    thread.join()
    store.close()
    for pid, w in children:
        os.write(w, b"x")
        assert os.waitpid(pid, 0)[1] == 0
    store = SQLiteStore(sys.argv[1])
    print(*(store.load("chat", f"child{n}").envelope.decode() for n in range(8)), sep=",")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_children_write_beside_their_parent_and_lose_nothing(tmp_path: Path) -> None:
    process = start(FORK, tmp_path / "s.db")
    assert finish(process).strip() == ",".join(["after 19"] * 8)


EXIT = """
    store = SQLiteStore(sys.argv[1])
    if sys.argv[2] == "thread":
        asyncio.run(store.aio.count("chat"))

    class Last:
        def __del__(self):
            put(store, "del", b"saved")

    async def save():
        grant = await store.aio.acquire("chat", "async", "me", lease=15.0)
        await store.aio.save("chat", "async", b"saved", fence=grant.fence, version=0,
                             write_id="w", release=True)

    last = Last()
    atexit.register(lambda: put(store, "atexit", b"saved"))
    atexit.register(lambda: asyncio.run(save()))
"""


@pytest.mark.parametrize("mode", ["thread", "no thread"])
def test_what_is_saved_at_exit_is_saved(tmp_path: Path, mode: str) -> None:
    finish(start(EXIT, tmp_path / "s.db", mode))
    store = SQLiteStore(tmp_path / "s.db")
    assert store.ids("chat") == ["async", "atexit", "del"]
    store.close()
