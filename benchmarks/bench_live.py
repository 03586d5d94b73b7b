"""Measures the cost of watching a busy server, and how soon a leak is named, at two heap sizes.

    python benchmarks/bench_live.py [--quick] [--objects 100000 ...] [--json FILE]

A real asyncio server runs in a child process and answers this one's requests without a pause.
First it is watched until its leaks are named; then short phases with and without the watch
alternate, and each pair gives one figure of the cost. tracemalloc and memray (if installed) are
measured against the same bare phases.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import threading
from math import comb
from pathlib import Path

CONNECTIONS = 8
WITHIN = {100_000: 60.0, 1_000_000: 600.0}  # seconds within which a leak must be named
MOST_COST, MOST_LAG = 5.0, 25.0  # percent, milliseconds


class Load(threading.Thread):
    """Sends requests on some connections, each as soon as the last answer has arrived."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port

    def run(self):
        with contextlib.suppress(ConnectionError):  # the server has ended
            asyncio.run(self.ask_all())

    async def ask_all(self):
        await asyncio.gather(*(self.ask(k) for k in range(CONNECTIONS)))

    async def ask(self, k):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        n = k
        while not reader.at_eof():
            writer.write(json.dumps({"n": n}).encode() + b"\n")
            await reader.readline()
            n += CONNECTIONS


class Child:
    def __init__(self, objects):
        server = Path(__file__).with_name("live_server.py")
        self.process = subprocess.Popen(
            [sys.executable, str(server), str(objects)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.about = self.read()
        Load(self.about["port"]).start()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the server ended with status {self.process.wait()}")
        return json.loads(line)

    def ask(self, *command):
        print(*command, file=self.process.stdin, flush=True)
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()


def interval(values):
    """Return the median and its 95 % interval, by the ranks that a fair coin would give."""
    ordered = sorted(values)
    size, rank, left = len(ordered), 0, 0.0
    while rank < size // 2:
        left += comb(size, rank) / 2**size
        if left > 0.025:
            break
        rank += 1
    low = max(0, rank - 1)
    return statistics.median(ordered), ordered[low], ordered[size - 1 - low]


def compare(child, name, pairs, seconds):
    """Run pairs of phases, bare first in every other one; return costs and lags."""
    cost, cpu, own, lags = [], [], [], {"bare": [], name: []}
    pauses = {"bare": [], name: []}
    for k in range(pairs):
        order = ("bare", name) if k % 2 else (name, "bare")
        found = {one: child.ask(one, seconds) for one in order}
        cost.append(100 * (1 - found[name]["rate"] / found["bare"]["rate"]))
        cpu.append(100 * (found[name]["cpu"] / found["bare"]["cpu"] - 1))
        own.append(100 * found[name]["own"])
        for one in order:
            lags[one].append((found[one]["lags"], found[one]["pauses"]))
            pauses[one] += found[one]["pauses"]
        print(f"  {name} {k + 1}/{pairs}", end="\r", file=sys.stderr, flush=True)
    return {
        "throughput_cost_percent": interval(cost),
        "cpu_cost_percent": interval(cpu),
        "own_percent": statistics.fmean(own),
        "lag_ms": {one: lag(phases) for one, phases in lags.items()},
        "collections": {one: (len(p), 1000 * max(p, default=0.0)) for one, p in pauses.items()},
        "pairs": pairs,
    }


def lag(phases):
    """Return figures on the lags of all phases, and their maximum without full collections."""
    pooled = sorted(value for lags, _ in phases for value in lags)
    worst = statistics.median(max(lags) for lags, _ in phases)
    calm = max((max(lags) for lags, pauses in phases if not pauses), default=pooled[-1])
    return {
        "p99": 1000 * pooled[int(0.99 * len(pooled))],
        "max": 1000 * pooled[-1],
        "calm_max": 1000 * calm,
        "typical_max": 1000 * worst,
    }


def measure(objects, *, pairs, seconds, quick):
    child = Child(objects)
    try:
        within = WITHIN.get(objects, 600.0)
        result = {"objects": child.about["objects"], "within": within}
        # the verdict, and leaks inside items, may come later
        result |= child.ask("name", within if quick else max(within, 150.0))
        result["live"] = compare(child, "live", pairs, seconds)
        few = max(3, pairs // 8)
        result["tracemalloc"] = compare(child, "tracemalloc", few, seconds)
        if importlib.util.find_spec("memray"):
            result["memray"] = compare(child, "memray", few, seconds)
    finally:
        child.close()
    return result


def show(result):
    found, answer = result["found"], result["answer"]
    named, deep, sure = (found.get(k) for k in ("named", "named_in_items", "growing"))
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{result['objects']:,} objects, budget 1 %, {os.cpu_count()} CPUs, load {load}")
    print(f"  named              {named} s after the start (at most {result['within']:.0f} s)")
    print(f"  named, in items    {deep} s;  called growing after {sure} s")
    print(f"  seen               {answer['objects']:,} objects per walk, {answer['walks']} walks")
    for name in ("live", "tracemalloc", "memray"):
        if name in result:
            show_cost(name, result[name])
    for suspect in answer["suspects"]:
        print(f"  suspect            {suspect['owner']}  +{suspect['per_round']:g} per second")


def show_cost(name, one):
    middle, low, high = one["throughput_cost_percent"]
    cpu, cpu_low, cpu_high = one["cpu_cost_percent"]
    bare, probed = one["lag_ms"]["bare"], one["lag_ms"][name]
    own = f", {one['own_percent']:.2f} % of one CPU" if name == "live" else ""
    print(f"  {name:18} {one['pairs']} pairs{own}")
    print(f"    throughput       {middle:+.1f} %  ({low:+.1f} to {high:+.1f})  lost")
    print(f"    CPU per request  {cpu:+.1f} %  ({cpu_low:+.1f} to {cpu_high:+.1f})  more")
    print(
        f"    loop lag         p99 {bare['p99']:.1f} → {probed['p99']:.1f} ms,"
        f" max {bare['max']:.1f} → {probed['max']:.1f} ms"
        f" ({bare['calm_max']:.1f} → {probed['calm_max']:.1f} without full collections),"
        f" typical max of a phase {bare['typical_max']:.1f} → {probed['typical_max']:.1f} ms"
    )
    (few, short), (many, long) = one["collections"]["bare"], one["collections"][name]
    print(f"    full collections {few} → {many}, longest {short:.0f} → {long:.0f} ms")


def verdicts(result, *, quick):
    """Return each promise, and whether it was kept.

    With few pairs the interval is wide, so a quick run only detects a clear miss of the cost.
    """
    one = result["live"]
    cost = one["throughput_cost_percent"][1 if quick else 2]
    bare, probed = one["lag_ms"]["bare"], one["lag_ms"]["live"]
    named = result["found"].get("named")
    return {
        f"named within {result['within']:.0f} s": named is not None and named <= result["within"],
        f"cost at most {MOST_COST:g} %": cost <= MOST_COST,
        f"lag p99 +{MOST_LAG:g} ms at most": probed["p99"] - bare["p99"] <= MOST_LAG,
        f"lag max +{MOST_LAG:g} ms at most": probed["max"] - bare["max"] <= MOST_LAG,
    }


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--objects", type=int, nargs="*", default=list(WITHIN))
    options.add_argument("--pairs", type=int, default=120)
    options.add_argument("--seconds", type=float, default=0.5, help="length of each phase")
    options.add_argument("--quick", action="store_true", help="10 pairs at 100,000 objects")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    if chosen.quick:
        chosen.objects, chosen.pairs = [100_000], 10
    results, kept = [], True
    for objects in chosen.objects:
        found = measure(objects, pairs=chosen.pairs, seconds=chosen.seconds, quick=chosen.quick)
        results.append(found)
        show(found)
        for promise, ok in verdicts(found, quick=chosen.quick).items():
            kept = kept and ok
            print(f"  {'ok ' if ok else 'NOT'} {promise}")
    if chosen.json:
        chosen.json.write_text(json.dumps(results), encoding="utf-8")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
