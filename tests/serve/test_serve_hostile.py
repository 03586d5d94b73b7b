"""Hostile clients, and a million ids: typed answers, flat memory, *bounded* under `floodline run`.

SERVE_SECONDS and SERVE_IDS set how long and how many.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress

import httpx
import psutil

SECONDS = float(os.environ.get("SERVE_SECONDS", "120"))
IDS = int(os.environ.get("SERVE_IDS", "1000000"))
CONNECTIONS = 16
TYPED = {200, 400, 404, 405, 408, 409, 413, 415, 421, 503}
JSON = {"content-type": "application/json"}
BOMBS = [
    b"[" * 200_000,
    b'{"items":[' + b"{}," * 150_000 + b"{}]}",
    b'{"items":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
    b'{"metadata":{"x":"' + b"y" * 6_000_000 + b'"}}',
    b"\x00" * 1000,
    b'{"items":[{"role":"user","content":"\\ud800"}]}',
]
PATHS = [
    "/%2e%2e/%2e%2e/etc/passwd",
    "/v1//conversations",
    "/v1/conversations/" + "a" * 5000,
    "/v1/conversations/%00",
    "/docs/..%2f",
    "/dashboard/static/..%2f..%2fsettings.py",
]


class Crowd:
    """Threads that misbehave until the time is up, and what they were answered."""

    def __init__(self, url):
        self.url, self.port = url, int(url.rpartition(":")[2])
        self.until = time.monotonic() + SECONDS
        self.seen, self.problems = set(), []

    def run(self):
        works = (
            self.slow_loris,
            self.endless,
            self.bombs,
            self.many_ids,
            self.many_ids,
            self.tricks,
        )
        threads = [threading.Thread(target=self._guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert self.problems == []

    def _guarded(self, work):
        try:
            work()
        except Exception as error:
            self.problems.append(repr(error))

    @property
    def going(self):
        return time.monotonic() < self.until

    def ask(self, client, *words, **options):
        try:
            answer = client.request(*words, **options)
        except httpx.TransportError:  # cut off, which is an answer too
            return None
        self.seen.add(answer.status_code)
        return answer

    def slow_loris(self):
        open_now = []
        while self.going:
            if len(open_now) < 300:
                sock = socket.create_connection(("127.0.0.1", self.port))
                sock.sendall(b"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nX-A: ")
                open_now.append(sock)
            with suppress(OSError):
                random.choice(open_now).sendall(b"a")
            time.sleep(0.01)
        for sock in open_now:
            sock.close()

    def endless(self):
        def body():
            while self.going:
                yield b" " * 65536

        with httpx.Client(timeout=60) as client:
            while self.going:
                self.ask(
                    client, "POST", f"{self.url}/v1/conversations", content=body(), headers=JSON
                )

    def bombs(self):
        with httpx.Client(timeout=60) as client:
            for bomb in itertools.cycle(BOMBS):
                if not self.going:
                    return
                self.ask(client, "POST", f"{self.url}/v1/conversations", content=bomb, headers=JSON)

    def many_ids(self):
        with httpx.Client(timeout=60) as client:
            base = f"{self.url}/v1/conversations"
            while self.going:
                self.ask(client, "GET", f"{base}/{random.getrandbits(64)}")
                item = {"role": "user", "content": "x" * 500}
                key = {"idempotency-key": str(random.getrandbits(64))}
                made = self.ask(client, "POST", base, json={"items": [item]}, headers=key)
                if made is not None and made.status_code == 200:
                    path = f"{base}/{made.json()['id']}"
                    self.ask(client, "POST", f"{path}/items", json={"items": [item]}, headers=key)
                    self.ask(
                        client, "GET", f"{self.url}/v1/floodline{path[len(self.url) + 3 :]}/window"
                    )

    def tricks(self):
        with httpx.Client(timeout=60) as client:
            for path in itertools.cycle(PATHS):
                if not self.going:
                    return
                self.ask(client, "GET", self.url + path)
                self.ask(client, "GET", self.url, headers={"host": "evil.example"})
                self.ask(client, "DELETE", self.url + "/health/live")
                time.sleep(0.01)


class Asker:
    """One connection that asks for ever new ids, and counts the answers by status."""

    def __init__(self, seen):
        self.seen = seen

    async def run(self, port, numbers):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        item = b'{"items":[{"role":"user","content":"hello"}]}'
        for number in numbers:
            if number % 10 == 0:  # a conversation of its own
                await self.ask("POST", "", item, f"key-{number}")
            elif number % 10 == 1:
                await self.ask("POST", f"/conv_{number}/items", item, f"key-{number}")
            else:
                await self.ask("GET", f"/conv_{number}")
        self.writer.close()

    async def ask(self, method, path, body=b"", key=""):
        head = f"{method} /v1/conversations{path} HTTP/1.1\r\nHost: localhost\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            head += f"Idempotency-Key: {key}\r\n"
        self.writer.write(head.encode() + b"\r\n" + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await self.reader.readexactly(length)
        self.seen[int(answer[9:12])] += 1


def verdict_of(record, folder):
    report = folder / "report.json"
    words = [sys.executable, "-m", "floodline", "report", str(record), "--format", "json"]
    subprocess.run([*words, "-o", str(report)], check=True)
    return json.loads(report.read_text(encoding="utf-8"))["verdict"]


def test_a_million_ids_leave_nothing_in_memory(serving, tmp_path):
    """A tenth are created, a tenth appended to in vain, the rest looked for in vain."""
    record = tmp_path / "serve.rec"
    watched = ("-m", "floodline", "run", "--no-dashboard", "--record", str(record),
               "-m", "floodline")  # fmt: skip
    seen, sizes = Counter(), []

    async def ask_for_all(port, main):
        for part in range(20):  # and look at its memory in between
            first, beyond = part * IDS // 20, (part + 1) * IDS // 20
            await asyncio.gather(
                *(
                    Asker(seen).run(port, range(first + n, beyond, CONNECTIONS))
                    for n in range(CONNECTIONS)
                )
            )
            sizes.append(main.memory_info().rss >> 20)
            print(f"{beyond:,} ids, {sizes[-1]} MiB", flush=True)  # noqa: T201 - a long test

    with serving(before=watched) as (process, url):
        main = psutil.Process(process.pid).children()[0]
        asyncio.run(ask_for_all(int(url.rpartition(":")[2]), main))
        assert httpx.get(f"{url}/health/ready").status_code == 200
    assert seen == {200: IDS // 10, 404: IDS - IDS // 10}
    assert max(sizes[-5:]) < max(sizes[4:9]) * 1.1, sizes
    assert verdict_of(record, tmp_path) == "bounded"


def test_hostile_clients_get_typed_answers_and_no_memory(serving, tmp_path):
    record = tmp_path / "serve.rec"
    watched = ("-m", "floodline", "run", "--no-dashboard", "--record", str(record),
               "-m", "floodline")  # fmt: skip
    with serving("--max-sessions", "50", before=watched) as (process, url):
        crowd = Crowd(url)
        main = psutil.Process(process.pid).children()[0]
        sizes = []

        def look():
            while crowd.going:
                sizes.append(main.memory_info().rss)
                time.sleep(SECONDS / 40)

        looking = threading.Thread(target=look)
        looking.start()
        crowd.run()
        looking.join()
        assert httpx.get(f"{url}/health/ready").status_code == 200
    assert crowd.seen <= TYPED, crowd.seen
    early, late = max(sizes[10:20]), max(sizes[-10:])
    assert late < early * 1.15, [size >> 20 for size in sizes]
    assert verdict_of(record, tmp_path) in ("bounded", "undecided")
