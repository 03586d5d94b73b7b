"""`kill -9` at random moments, and two processes at once: no acknowledged use is lost."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from floodline import Sessions
from floodline.stores import SQLiteStore

WRITER = """
    import logging, os, random, sys, threading
    from floodline import Sessions
    from floodline.stores import SQLiteStore

    # a lease of ten minutes: whoever comes after the kill must not wait for it
    sessions = Sessions(dict, store=SQLiteStore(sys.argv[1], busy_timeout="30 s"),
                        max_sessions=4, lease="10 min", busy_wait="30 s")
    lock = threading.Lock()

    def work(seed):
        chance = random.Random(seed)
        while True:
            one = f"id{chance.randrange(6)}"
            with sessions.use(one) as state:
                n = state["n"] = state.get("n", 0) + 1
                state["ballast"] = "x" * chance.randrange(3000)
            with lock:
                os.write(1, b"%s %d\\n" % (one.encode(), n))
            if chance.random() < 0.1:
                sessions.park(one)

    for n in range(3):
        threading.Thread(target=work, args=(os.getpid() + n,), daemon=True).start()
    threading.Event().wait()
"""

COUNTER = """
    import sys
    from floodline import Sessions
    from floodline.stores import SQLiteStore

    with Sessions(dict, store=SQLiteStore(sys.argv[1], busy_timeout="30 s"),
                  max_sessions=2) as sessions:
        for n in range(150):
            one = f"id{n % 3}"
            with sessions.use(one) as state:
                state["n"] = state.get("n", 0) + 1
            print(one)
"""


def start(program: str, path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def kill_once(path: Path, acknowledged: dict[str, int], chance: random.Random) -> None:
    process = start(WRITER, path)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(chance.randrange(1, 80))]
    process.kill()
    lines += process.stdout.read().splitlines()  # what `communicate` would not see is buffered here
    _, err = process.communicate(timeout=400)
    assert err == b"", err.decode()
    for line in lines:
        one, number = line.split()
        acknowledged[one.decode()] = max(int(number), acknowledged.get(one.decode(), 0))


def check(path: Path, acknowledged: dict[str, int], seed: int) -> None:
    store = SQLiteStore(path)
    with Sessions(dict, store=store, busy_wait=0) as sessions:  # a dead owner is not waited for
        for one, number in acknowledged.items():
            with sessions.use(one, create=False) as state:
                found = state["n"]
            assert found >= number, (seed, one, found, number)
            acknowledged[one] = found
    assert store.stats().conflicts == 0
    store.close()


def kill_often(path: Path, times: int) -> set[str]:
    """Kill and look, again and again; return the sessions that were acknowledged and found."""
    acknowledged: dict[str, int] = {}
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    for _ in range(times):
        kill_once(path, acknowledged, chance)
        said = dict(acknowledged)
        check(path, acknowledged, seed)
        for one, number in acknowledged.items():
            assert number <= said[one] + 3, (seed, one)  # each thread may have had one to say
    return set(acknowledged)


def test_a_killed_process_loses_no_acknowledged_use(tmp_path: Path) -> None:
    assert len(kill_often(tmp_path / "s.db", 24)) == 6


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_process_killed_hundreds_of_times_loses_no_acknowledged_use(tmp_path: Path) -> None:
    assert len(kill_often(tmp_path / "s.db", 400)) == 6


def test_two_processes_on_one_file_lose_no_acknowledged_use(tmp_path: Path) -> None:
    path, counted = tmp_path / "s.db", dict[str, int]()
    for process in [start(COUNTER, path), start(COUNTER, path)]:
        out, err = process.communicate(timeout=400)
        assert process.returncode == 0, err.decode()
        for one in out.decode().split():
            counted[one] = counted.get(one, 0) + 1
    store = SQLiteStore(path)
    with Sessions(dict, store=store) as sessions:
        for one, number in counted.items():
            with sessions.use(one, create=False) as state:
                assert state["n"] == number == 100
    assert store.stats().conflicts == 0
    store.close()
