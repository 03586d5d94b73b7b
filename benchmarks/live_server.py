"""A busy asyncio server with a large heap and two leaks, watched on request from stdin.

Each line on stdin is one command, each line on stdout one JSON answer; see `bench_live.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
import tempfile
import threading
import time
import tracemalloc
from collections import OrderedDict

from floodline.leaks import Live

LEAK_EVERY = 0.2  # seconds
LAG_EVERY = 0.005


class Item:
    def __init__(self, n):
        self.n, self.tags = n, [n, str(n)]
        self.prices = {"list": [n], "net": (n, [n])}


class Chat:
    def __init__(self):
        self.events = []


class PlanService:
    def __init__(self):
        self._memory_services = {}

    def get_memory_service(self, n):
        self._memory_services[f"session-{n}"] = {"id": n, "turns": [f"turn {n}"] * 3}


class Store:
    """Build a heap of about so many objects tracked by the collector, in shelves of 3,000."""

    def __init__(self, objects):
        self.shelves = {}
        self.cache = OrderedDict()
        while len(gc.get_objects()) < objects:
            self.shelves[len(self.shelves)] = [Item(n) for n in range(3_000)]


SERVICE = PlanService()
CHATS = {n: Chat() for n in range(200)}
STORE = None


class Server:
    def __init__(self):
        self.done = self.leaked = 0
        self.lags, self.pauses = [], []
        self.collecting = 0.0
        gc.callbacks.append(self.collected)
        self.next_leak = 0.0

    def collected(self, what, about):
        if about["generation"] == 2 and what == "start":
            self.collecting = time.perf_counter()
        elif about["generation"] == 2:
            self.pauses.append(time.perf_counter() - self.collecting)

    async def serve(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                writer.write(self.answer(json.loads(line)))
                await writer.drain()
        writer.close()

    def answer(self, request):
        n = request["n"]
        STORE.cache[n % 2_000] = [{"n": n, "row": [k, str(k)]} for k in range(20)]
        rows = [
            {"id": item.n, "tags": item.tags}
            for item in STORE.shelves[n % len(STORE.shelves)][n % 2_900 :][:10]
        ]
        if time.monotonic() >= self.next_leak:
            self.next_leak = time.monotonic() + LEAK_EVERY
            self.leaked += 1
            SERVICE.get_memory_service(self.leaked)
            CHATS[self.leaked % 200].events.append(f"event {self.leaked}")
        self.done += 1
        return json.dumps({"n": n, "rows": rows}).encode() + b"\n"

    async def feel_lag(self):
        while True:
            due = time.perf_counter() + LAG_EVERY
            await asyncio.sleep(LAG_EVERY)
            self.lags.append(time.perf_counter() - due)


class Probe:
    """The thread that a recorder would run: it calls `step` when the watch wants it."""

    def __init__(self):
        self.live = None
        self.on = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def cost(self):
        return self.live.answer().cost_seconds if self.live else 0.0

    def run(self):
        while True:
            self.on.wait()
            self.live = self.live or Live()
            time.sleep(self.live.step())


@contextlib.contextmanager
def mode(name, probe):
    if name == "live":
        probe.on.set()
        yield
        probe.on.clear()
    elif name == "tracemalloc":
        tracemalloc.start()
        yield
        tracemalloc.stop()
    elif name == "memray":
        import memray

        with tempfile.TemporaryDirectory() as folder, memray.Tracker(f"{folder}/trace.bin"):
            yield
    else:
        yield


async def phase(server, probe, name, seconds):
    with mode(name, probe):
        await asyncio.sleep(0.05)
        server.lags.clear()
        server.pauses.clear()
        own = probe.cost()
        done, cpu, wall = server.done, time.process_time(), time.perf_counter()
        await asyncio.sleep(seconds)
        took = time.perf_counter() - wall
        return {
            "rate": (server.done - done) / took,
            "cpu": (time.process_time() - cpu) / max(1, server.done - done),
            "own": (probe.cost() - own) / took,
            "lags": sorted(server.lags),
            "pauses": list(server.pauses),
        }


async def name_leaks(probe, seconds):
    """Watch until both leaks are named and there is a verdict."""
    probe.on.set()
    began = time.monotonic()
    wanted = {"_memory_services": "named", "events": "named_in_items"}
    found = {}
    while time.monotonic() - began < seconds and len(found) < 3:
        await asyncio.sleep(0.5)
        answer = probe.live.answer() if probe.live else None
        for suspect in answer.suspects if answer else ():
            key = wanted.get(suspect.owner.rpartition(".")[2])
            found.setdefault(key or suspect.owner, round(time.monotonic() - began, 1))
        if answer and answer.verdict == "growing":
            found.setdefault("growing", round(time.monotonic() - began, 1))
    probe.on.clear()
    record = answer.as_record()
    record["suspects"] = record["suspects"][:3]
    return {"found": found, "answer": record}


async def main(objects):
    global STORE
    STORE = Store(objects)
    gc.collect()
    server, probe = Server(), Probe()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    say({"port": port, "objects": len(gc.get_objects())})
    lag = asyncio.create_task(server.feel_lag())
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        what, *rest = line.split()
        if what == "name":
            say(await name_leaks(probe, float(rest[0])))
        else:
            say(await phase(server, probe, what, float(rest[0])))
    lag.cancel()


def say(record):
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
