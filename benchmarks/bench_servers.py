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


def spent(pid: int) -> float:
    """Return the processor time of the server, with its children, and of this process."""
    total = time.process_time()
    server = psutil.Process(pid)
    for one in (server, *server.children(recursive=True)):
        times = one.cpu_times()
        total += times.user + times.system
    return total


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
            loop, pipelined = repeat(one, seconds), repeat(some, seconds) * TOGETHER
            print(f"{kind}: bare {loop:,.0f}/s, pipelined by {TOGETHER} {pipelined:,.0f}/s")
            for callers in (1, 16, 64):
                store: Any = (RedisStore if kind == "redis" else PostgresStore)(server.url)
                before = spent(server.process.pid)
                rate = stored(store, seconds, callers)
                each = (spent(server.process.pid) - before) / (rate * seconds + 100 * callers)
                store.close()
                print(
                    f"  {callers} callers: {rate:,.0f}/s, {rate / pipelined:.2f} of pipelined, "
                    f"{each * 1e6:,.0f} µs of processor time a use"
                )
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
