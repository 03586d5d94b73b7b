"""Sessions against a locked `cachetools.TTLCache` and a bare `sqlite3` loop, in one run.

python benchmarks/bench_sessions.py            # everything; the million sessions take some minutes
python benchmarks/bench_sessions.py --quick    # a twentieth of the million
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import sqlite3
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import psutil
from cachetools import TTLCache

from floodline import AsyncSessions, Sessions
from floodline.stores import MemoryStore, SQLiteStore
from measure import Row, at_most, best, loop, show

STEM = "x" * 4000


def nothing() -> None:
    return None


def use_beside_ttlcache(number: int = 20_000) -> list[Row]:
    ids = [f"session-{n:06d}" for n in range(10_000)]
    cache: TTLCache[str, None] = TTLCache(20_000, 1800)
    sessions: Sessions[None] = Sessions(nothing, max_sessions=20_000)
    for key in ids:
        cache[key] = None
        with sessions.use(key):
            pass
    peer = loop(
        "with lock:\n    value = cache.get(key)\n    cache[key] = value",
        number,
        lock=threading.Lock(),
        cache=cache,
        key=ids[500],
    )
    ours = loop("with use(key):\n    pass", number, use=sessions.use, key=ids[500])
    sync_time, peer_time, async_time = best(
        [ours, peer, lambda: asyncio.run(async_uses(number))], number=number, repeats=7
    )
    sessions.shutdown()
    return [
        at_most("with use(id), live, no store / TTLCache", sync_time, peer_time, 1.5),
        at_most("async with use(id) / TTLCache", async_time, peer_time, 2.0),
    ]


async def async_uses(number: int) -> None:
    sessions: AsyncSessions[None] = AsyncSessions(nothing)
    for _ in range(number):
        async with sessions.use("session-000500"):
            pass
    await sessions.shutdown()


def bytes_a_session(store: MemoryStore | None, number: int = 20_000) -> float:
    """Return what one live session costs, without its state and without the store's own bytes."""
    ids = [f"session-{n:06d}" for n in range(number)]
    warm: Sessions[None] = Sessions(nothing, store=store, max_sessions=None, name="warm")
    with warm.use("x"):
        pass
    sessions: Sessions[None] = Sessions(nothing, store=store, max_sessions=None)
    gc.collect()
    tracemalloc.start()
    for key in ids:
        with sessions.use(str(key.encode(), "ascii")):  # an id of its own, as from a request
            pass
    gc.collect()
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    stores = tracemalloc.Filter(False, "*/floodline/stores/*")
    kept = sum(line.size for line in snapshot.filter_traces([stores]).statistics("filename"))
    sessions.shutdown()
    warm.shutdown()
    return kept / number


def payload(turn: int) -> str:
    return f"{turn:016d}{STEM}{turn:016d}"


def rate(call: Callable[[int], object], seconds: float) -> float:
    start, turns = time.perf_counter(), itertools.count()
    while (passed := time.perf_counter() - start) < seconds:
        call(next(turns))
    return next(turns) / passed


def bare_upserts(directory: Path, seconds: float) -> float:
    connection = sqlite3.connect(directory / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE rows (id TEXT PRIMARY KEY, state BLOB)")
    sql = "INSERT INTO rows VALUES (?, ?) ON CONFLICT DO UPDATE SET state = excluded.state"
    result = rate(lambda n: connection.execute(sql, (f"id{n % 1000}", payload(n))), seconds)
    connection.close()
    return result


def saved_uses(directory: Path, callers: int, seconds: float) -> float:
    """Return saved uses per second: 4 KiB states, leases on, every use saved before it ends."""
    with (
        SQLiteStore(directory / f"uses{callers}.db") as store,
        Sessions(dict, store=store) as sessions,
    ):

        def work(number: int) -> None:
            def one(turn: int) -> None:
                with sessions.use(f"{number}-{turn % 50}") as state:
                    state["text"] = payload(turn)

            rates.append(rate(one, seconds))

        rates: list[float] = []
        threads = [threading.Thread(target=work, args=(n,)) for n in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sum(rates)


def push_through(directory: Path, number: int, cap: int, after: int) -> list[str]:
    """Push sessions through a cap, then open each again; resident memory must not follow."""
    resident = psutil.Process().memory_info
    with (
        SQLiteStore(directory / "million.db") as store,
        Sessions(dict, store=store, durability="park", max_sessions=cap) as sessions,
    ):
        start = time.perf_counter()
        first = 0
        for n in range(number):
            with sessions.use(f"session-{n:07d}") as state:
                state["n"] = n
            if n + 1 == after:
                first = resident().rss
        last, pushed = resident().rss, time.perf_counter() - start
        start = time.perf_counter()
        for n in range(number):
            with sessions.use(f"session-{n:07d}", create=False) as state:
                assert state == {"n": n}, (n, state)
        reopened = time.perf_counter() - start
    return [
        f"{number:,} sessions through a cap of {cap:,}, durability='park': {pushed:.0f} s",
        f"resident after the first {after:,}: {first / 2**20:.1f} MiB, after the last: "
        f"{last / 2**20:.1f} MiB, ratio {last / first:.2f} (target ≤ 1.3) "
        + ("yes" if last <= 1.3 * first else "NO"),
        f"each opened again with its content: {reopened:.0f} s",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the million")
    quick = parser.parse_args().quick
    good = show("with sessions.use(id)", use_beside_ttlcache())

    plain, stored = bytes_a_session(None), bytes_a_session(MemoryStore())
    print(f"\noverhead of a live session: {plain:.0f} bytes (target ≤ 600), ", end="")
    print(f"with a store {stored:.0f} bytes (target ≤ 750)")
    good = good and plain <= 600 and stored <= 750

    seconds = 1.0 if quick else 4.0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        bare = bare_upserts(directory, seconds)
        one, many = (saved_uses(directory, callers, seconds) for callers in (1, 16))
        print(f"\nbare sqlite3 upserts of 4 KiB           {bare:>9,.0f}/s")
        print(f"saved uses, one caller                  {one:>9,.0f}/s  {one / bare:.2f} of bare")
        print(f"saved uses, 16 callers                  {many:>9,.0f}/s  (target ≥ 5,000/s)")
        print("target for one caller: ≥ 0.125 of bare")
        good = good and one >= bare / 8 and many >= 5000
    with tempfile.TemporaryDirectory() as name:
        size = (50_000, 2_000, 4_000) if quick else (1_000_000, 10_000, 20_000)
        print("\n" + "\n".join(push_through(Path(name), *size)))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
