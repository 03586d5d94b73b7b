"""Acquire and save through the store, against a bare `sqlite3` upsert loop, in one run.

    python benchmarks/bench_store.py [--seconds 1] [--threads 16] [--repeats 3]

A use is one `acquire` and one `save(release=True)`, two transactions; the bare loop commits one
upsert each. Both write 4 KiB, in WAL with `synchronous=NORMAL`.
"""

from __future__ import annotations

import argparse
import itertools
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import measure
from floodline.stores import Grant, SQLiteStore, new_owner

STEM = b"x" * 4088


def payload(turn: int) -> bytes:
    """Make 4 KiB that differ at both ends: SQLite does not write what has not changed."""
    number = turn.to_bytes(4, "big")
    return number + STEM + number


def bare(directory: Path, seconds: float) -> float:
    connection = sqlite3.connect(directory / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE rows (id TEXT PRIMARY KEY, state BLOB)")
    sql = "INSERT INTO rows VALUES (?, ?) ON CONFLICT DO UPDATE SET state = excluded.state"
    turns = itertools.count()

    def upsert() -> None:
        turn = next(turns)
        connection.execute(sql, (f"id{turn % 1000}", payload(turn)))

    rate = repeat(upsert, seconds)
    connection.close()
    return rate


def stored(directory: Path, seconds: float, threads: int) -> float:
    store = SQLiteStore(directory / f"store{threads}.db")
    users = [user(store, n) for n in range(threads)]
    rates: list[float] = []
    workers = [
        threading.Thread(target=lambda one=one: rates.append(repeat(one, seconds))) for one in users
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    store.close()
    return sum(rates)


def user(store: SQLiteStore, number: int) -> Callable[[], object]:
    owner, turns = new_owner("bench"), itertools.count()
    versions: dict[str, int] = {}

    def use() -> None:
        turn = next(turns)
        key = f"{number}/{turn % 64}"
        grant = store.acquire("bench", key, owner, lease=15.0, known=versions.get(key))
        if not isinstance(grant, Grant):
            raise SystemExit(f"{key} is held: {grant}")
        versions[key] = store.save(
            "bench",
            key,
            payload(turn),
            fence=grant.fence,
            version=grant.version,
            write_id=f"{owner}-{turn}",
            release=True,
        )

    return use


def repeat(work: Callable[[], object], seconds: float) -> float:
    for _ in range(100):
        work()
    start, done = time.perf_counter(), 0
    while (spent := time.perf_counter() - start) < seconds:
        work()
        done += 1
    return done / spent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    seconds, threads = options.seconds, options.threads
    loops, ones, alls = [], [], []
    for _ in range(options.repeats):  # interleaved, because the machine may be busy
        with tempfile.TemporaryDirectory() as name:
            loops.append(bare(Path(name), seconds))
            ones.append(stored(Path(name), seconds, 1))
            alls.append(stored(Path(name), seconds, threads))
    loop, one, all_ = max(loops), max(ones), max(alls)
    print(f"per second: bare {loop:,.0f}, one caller {one:,.0f}, {threads} callers {all_:,.0f}")
    rows = [
        measure.at_most("acquire + save, one caller / bare upsert", 1 / one, 1 / loop, 4),
        measure.at_most(f"acquire + save, {threads} callers / bare upsert", 1 / all_, 1 / loop, 4),
        measure.below(f"acquire + save, {threads} callers", 1 / all_, 1 / 9000),
    ]
    sys.exit(not measure.show("SQLiteStore against sqlite3, 4 KiB", rows))


if __name__ == "__main__":
    main()
