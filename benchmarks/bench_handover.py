"""How long a session takes from one process to another that only has the store in common.

    python benchmarks/bench_handover.py [--turns 50] [--on redis] [--on postgres] [--on sqlite]

`park`: the other process keeps the session in memory, unused; the time is that of a whole use here.
`use`: the other process leaves its use while we wait; the time is that from then to our entry.
`dead`: the other process is killed in its use, under a lease of 3 s; the time is that from then.
Both processes say that they are on other machines, so neither can look into /proc for the other.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from floodline import Sessions
from floodline.stores import _owner
from servers import Postgres, Valkey, folder_of


def opened(
    url: str, machine: str, durability: Any, lease: str = "15 s"
) -> Sessions[dict[str, int]]:
    _owner._here = lambda: _owner._Place(machine, machine, "1")
    options: Any = {"durability": durability, "lease": lease, "busy_wait": "60 s"}
    return Sessions(dict, store=url, name="bench", **options)


def other(url: str, durability: str) -> None:
    """Use the session once for each line, and leave it a moment after we were told to."""
    if durability == "dead":
        with opened(url, "b", "use", "3 s") as sessions, sessions.use("a"):
            print("held", flush=True)
            time.sleep(60)
    with opened(url, "b", durability) as sessions:
        for _ in sys.stdin:
            with sessions.use("a") as state:
                state["n"] = state.get("n", 0) + 1
                if durability == "use":
                    print("held", flush=True)
                    time.sleep(0.1)
                left = time.monotonic()
            print(left, flush=True)


def measure(url: str, durability: str, turns: int) -> list[float]:
    command = [sys.executable, __file__, "--other", url, durability]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1) as process,
        opened(url, "a", durability) as sessions,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        taken = []
        for _ in range(turns):
            print(file=process.stdin, flush=True)
            process.stdout.readline()
            start = time.monotonic()
            with sessions.use("a") as state:
                entered = time.monotonic()
                state["n"] += 1
            if durability == "use":
                start = float(process.stdout.readline())
            taken.append(entered - start)
        process.stdin.close()
    return taken


def measure_dead(url: str) -> list[float]:
    command = [sys.executable, __file__, "--other", url, "dead"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as process,
        opened(url, "a", "use", "3 s") as sessions,
    ):
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(4)  # its heart has beaten
        process.kill()
        start = time.monotonic()
        with sessions.use("a"):
            return [time.monotonic() - start]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--on", action="append", choices=["redis", "postgres", "sqlite"])
    parser.add_argument("--other", nargs=2)
    options = parser.parse_args()
    if options.other:
        other(*options.other)
        return
    for kind in options.on or ["redis", "postgres", "sqlite"]:
        with folder_of(kind) as folder:
            server: Any = None
            if kind != "sqlite":
                server = Valkey(folder) if kind == "redis" else Postgres(folder)
            url = server.url if server else f"sqlite:///{folder}/s.db"
            for durability in ["use"] if kind == "sqlite" else ["park", "use", "dead"]:
                dead = durability == "dead"
                taken = measure_dead(url) if dead else measure(url, durability, options.turns)
                median, worst = statistics.median(taken) * 1e3, max(taken) * 1e3
                print(f"{kind}, {durability}: median {median:.1f} ms, worst {worst:.1f} ms")
            if server:
                server.end()


if __name__ == "__main__":
    main()
