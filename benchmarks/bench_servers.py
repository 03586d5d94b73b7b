"""Saved uses a second on Redis (Valkey) and PostgreSQL, beside their bare clients, in one run.

    python benchmarks/bench_servers.py [--seconds 2] [--on redis] [--on postgres]

A use is one `acquire` and one `save(release=True)` of 4 KiB. The bare client upserts the same rows:
one after the other, and 16 at a time in one pipeline (one transaction, on PostgreSQL). Processor
time is that of this process and of the server, for each use.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from bench_store import payload, repeat, user
from floodline.stores import PostgresStore, RedisStore
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


def apiece(before: tuple[float, float], after: tuple[float, float], uses: float) -> str:
    here, there = ((b - a) / uses * 1e6 for a, b in zip(before, after, strict=True))
    return f"{here:,.0f} µs of processor time for each in this process, {there:,.0f} in the server"


def stored(store: Any, seconds: float, callers: int) -> float:
    rates: list[float] = []
    workers = [
        threading.Thread(target=lambda one=one: rates.append(repeat(one, seconds)))
        for one in (user(store, n) for n in range(callers))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(rates)


def measure(kind: str, seconds: float) -> None:
    with folder_of(kind) as folder:
        server: Any = Valkey(folder) if kind == "redis" else Postgres(folder)
        try:
            one, some = bare_redis(server) if kind == "redis" else bare_postgres(server)
            loop, before = repeat(one, seconds), spent(server.process.pid)
            pipelined = repeat(some, seconds) * TOGETHER
            each = apiece(before, spent(server.process.pid), pipelined * seconds + 100 * TOGETHER)
            print(f"{kind}: bare {loop:,.0f}/s, pipelined by {TOGETHER} {pipelined:,.0f}/s, {each}")
            for callers in (1, 16, 64):
                store: Any = (RedisStore if kind == "redis" else PostgresStore)(server.url)
                before = spent(server.process.pid)
                rate = stored(store, seconds, callers)
                uses = rate * seconds + 100 * callers
                each = apiece(before, spent(server.process.pid), uses)
                store.close()
                share = f"{rate / pipelined:.2f} of pipelined"
                print(f"  {callers} callers: {rate:,.0f}/s, {share}, {each}")
        finally:
            server.end()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--on", action="append", choices=["redis", "postgres"])
    options = parser.parse_args()
    for kind in options.on or ["redis", "postgres"]:
        measure(kind, options.seconds)


if __name__ == "__main__":
    main()
