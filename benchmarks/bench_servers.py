"""Saved uses a second on Redis (Valkey) and PostgreSQL, beside their bare clients, in one run.

    python benchmarks/bench_servers.py [--seconds 1] [--repeats 5] [--on redis] [--on postgres]

A use is one `acquire` and one `save(release=True)` of 4 KiB. The bare client upserts the same rows:
one after the other, and 16 at a time in one pipeline (one transaction, on PostgreSQL), under the
same settings of the server. Callers are threads, or tasks of one event loop. Processor time is that
of this process and of the server, for each use.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from bench_store import payload, user
from floodline.stores import PostgresStore, RedisStore, new_owner
from servers import Postgres, Valkey, folder_of

TOGETHER = 16


def bare_redis(server: Valkey) -> tuple[Callable[[], object], Callable[[], object]]:
    import redis

    client, turns = redis.Redis(port=server.port), itertools.count()

    def one() -> None:
        turn = next(turns)
        client.hset(f"id{turn % 1000}", mapping={"v": turn, "e": payload(turn)})

    def some() -> None:
        with client.pipeline(transaction=False) as pipe:
            for turn in itertools.islice(turns, TOGETHER):
                pipe.hset(f"id{turn % 1000}", mapping={"v": turn, "e": payload(turn)})
            pipe.execute()

    return one, some


def bare_postgres(server: Postgres) -> tuple[Callable[[], object], Callable[[], object]]:
    import psycopg

    connection, turns = psycopg.connect(server.url, autocommit=True), itertools.count()
    connection.execute("CREATE TABLE bare (id text PRIMARY KEY, v bigint, e bytea)")
    sql = """INSERT INTO bare VALUES (%b, %b, %b)
        ON CONFLICT (id) DO UPDATE SET v = excluded.v, e = excluded.e"""

    def one() -> None:
        turn = next(turns)
        connection.execute(sql, (f"id{turn % 1000}", turn, payload(turn)))

    def some() -> None:
        with connection.pipeline():
            for turn in itertools.islice(turns, TOGETHER):
                connection.execute(sql, (f"id{turn % 1000}", turn, payload(turn)))

    return one, some


def spent(pid: int) -> tuple[float, float]:
    """Return the processor time of this process, and of the server with its children."""
    server = psutil.Process(pid)
    times = [one.cpu_times() for one in (server, *server.children(recursive=True))]
    return time.process_time(), sum(one.user + one.system for one in times)


def threads(store: Any, seconds: float, callers: int) -> tuple[float, int]:
    """Return the rate of callers on threads of their own, and how many uses that were."""
    done: list[tuple[float, int]] = []
    uses = [user(store, n) for n in range(callers)]
    workers = [
        threading.Thread(target=lambda: done.append(timed(uses.pop(), seconds))) for _ in uses
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(rate for rate, _ in done), sum(count for _, count in done)


def tasks(store: Any, seconds: float, callers: int) -> tuple[float, int]:
    """Return the same for callers on one event loop."""

    async def main() -> int:
        end = time.perf_counter() + seconds
        return sum(await asyncio.gather(*(one(end, n) for n in range(callers))))

    async def one(end: float, number: int) -> int:
        use, done = awaited_user(store.aio, number), 0
        while time.perf_counter() < end:
            await use()
            done += 1
        return done

    count = asyncio.run(main())
    return count / seconds, count


def timed(work: Callable[[], object], seconds: float) -> tuple[float, int]:
    start, done = time.perf_counter(), 0
    while (took := time.perf_counter() - start) < seconds:
        work()
        done += 1
    return done / took, done


def awaited_user(store: Any, number: int) -> Callable[[], Any]:
    """See `bench_store.user`, on the coroutine twin of a store."""
    owner, turns = new_owner("bench"), itertools.count()
    versions: dict[str, int] = {}

    async def use() -> None:
        turn = next(turns)
        key = f"t{number}/{turn % 64}"
        grant = await store.acquire("bench", key, owner, lease=15.0, known=versions.get(key))
        terms = {"fence": grant.fence, "version": grant.version, "release": True}
        written = store.save("bench", key, payload(turn), write_id=f"{owner}-{turn}", **terms)
        versions[key] = await written

    return use


def measure(kind: str, seconds: float, repeats: int) -> None:
    """Print the median of interleaved runs: the machine may be busy."""
    with folder_of(kind) as folder:
        server: Any = Valkey(folder) if kind == "redis" else Postgres(folder)
        store: Any = (RedisStore if kind == "redis" else PostgresStore)(server.url)
        one, some = bare_redis(server) if kind == "redis" else bare_postgres(server)
        ways: dict[str, Callable[[], tuple[float, int]]] = {
            "bare": lambda: timed(one, seconds),
            f"bare, pipelined by {TOGETHER}": lambda: pipelined(some, seconds),
        }
        for callers in (1, 16, 64):
            ways[f"{callers} threads"] = lambda n=callers: threads(store, seconds, n)
            ways[f"{callers} tasks"] = lambda n=callers: tasks(store, seconds, n)
        found: dict[str, list[tuple[float, ...]]] = {way: [] for way in ways}
        try:
            for turn in range(repeats + 1):
                for way, run in ways.items():
                    before = spent(server.process.pid)
                    rate, uses = run()
                    here, there = (
                        (b - a) / uses * 1e6
                        for a, b in zip(before, spent(server.process.pid), strict=True)
                    )
                    if turn:  # the first is to warm up
                        found[way].append((rate, here, there))
        finally:
            store.close()
            server.end()
    print(f"{kind}, {repeats} interleaved runs of {seconds:g} s, medians")
    print(f"{'':28}{'a second':>10}{'of pipelined':>14}{'µs here':>9}{'µs there':>10}")
    best = [rate for rate, _, _ in found[f"bare, pipelined by {TOGETHER}"]]
    for way, runs in found.items():
        shares = [rate / peer for (rate, _, _), peer in zip(runs, best, strict=True)]
        rate, here, there = (statistics.median(column) for column in zip(*runs, strict=True))
        share = statistics.median(shares)
        print(f"{way:28}{rate:>10,.0f}{share:>14.2f}{here:>9,.0f}{there:>10,.0f}")


def pipelined(some: Callable[[], object], seconds: float) -> tuple[float, int]:
    rate, done = timed(some, seconds)
    return rate * TOGETHER, done * TOGETHER


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--on", action="append", choices=["redis", "postgres"])
    options = parser.parse_args()
    for kind in options.on or ["redis", "postgres"]:
        measure(kind, options.seconds, options.repeats)


if __name__ == "__main__":
    main()
