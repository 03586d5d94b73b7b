"""`floodline serve` beside a plain Starlette app with a dict, and one with the rows in sqlite3.

    python benchmarks/bench_serve.py                       # about two minutes
    python benchmarks/bench_serve.py --seconds 600 --only floodline --memory

Each server runs alone on one core, with h11 and without an access log; sixteen connections of one
client on the other core ask as fast as they are answered. An append is one item of 200 characters.
The CPU time that the server took for a request says more than the rate if others use the
machine, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CORES = sorted(os.sched_getaffinity(0))
CONNECTIONS = 16
TEXT = "x" * 200


def plain_app(path: str | None):
    """Return what people write first: items in a dict, or in a table with a commit each."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    chats: dict[str, list] = {}
    database = None
    if path is not None:
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute("CREATE TABLE items (chat TEXT, n INTEGER PRIMARY KEY, data TEXT)")
        database.execute("CREATE INDEX by_chat ON items (chat, n)")

    async def create(_request):
        made = f"conv_{os.urandom(12).hex()}"
        if database is None:
            chats[made] = []
        return JSONResponse({"id": made})

    async def append(request):
        chat, items = request.path_params["chat"], (await request.json())["items"]
        if database is None:
            chats[chat] += items
        else:
            rows = [(chat, json.dumps(item)) for item in items]
            database.execute("BEGIN")
            database.executemany("INSERT INTO items (chat, data) VALUES (?, ?)", rows)
            database.execute("COMMIT")
        return JSONResponse({"data": items})

    async def newest(request):
        chat = request.path_params["chat"]
        if database is None:
            found = chats[chat][-50:]
        else:
            query = "SELECT data FROM items WHERE chat = ? ORDER BY n DESC LIMIT 50"
            found = [json.loads(data) for (data,) in database.execute(query, (chat,))]
        return JSONResponse({"messages": found})

    async def live(_request):
        return JSONResponse({"status": "ok"})

    return Starlette(
        routes=[
            Route("/v1/conversations", create, methods=["POST"]),
            Route("/v1/conversations/{chat}/items", append, methods=["POST"]),
            Route("/v1/floodline/conversations/{chat}/window", newest),
            Route("/health/live", live),
        ]
    )


def fill(path: Path, number: int) -> None:
    """Park this many conversations of one item in the store of the service."""
    from floodline import Conversation, Sessions
    from floodline.stores import Append, NewRow

    item = {"type": "message", "role": "user", "content": TEXT}
    row = NewRow("msg_1", json.dumps(item).encode())
    with Sessions(
        Conversation, store=f"sqlite:///{path}", name="conversations", max_sessions=100
    ) as sessions:
        for n in range(number):
            with (hold := sessions.use(f"parked-{n}")) as chat:
                chat.append(item)
                hold.append_rows(Append("items", [row]))


class Served:
    """A server in a process of its own, on the first core."""

    def __init__(self, kind: str, folder: Path, flags: tuple[str, ...] = (), **environ: str):
        self.port = free_port()
        if kind == "floodline":
            words = ["-m", "floodline", "serve", "--store", f"sqlite:///{folder}/serve.db"]
            words += ["--no-access-log", "--drain", "0", "--port", str(self.port), *flags]
        else:
            words = [__file__, "--serve", kind, "--port", str(self.port), "--folder", str(folder)]
        self.process = subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, **environ},
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {CORES[0]}),
        )
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health/live").close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{kind} did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def cpu(self) -> float:
        """Return the CPU time that it has taken, in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        """Return resident memory in MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


class Client:
    """One connection that speaks just enough HTTP, so that the client is not what is measured."""

    async def open(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        if method == "POST":
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(head.encode() + b"\r\n" + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(answer.decode())
        length = int(answer.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        return await self._reader.readexactly(length)


async def measure(served: Served, seconds: float) -> dict[str, tuple[list[float], float]]:
    """Return the times of each kind of request in milliseconds, and the server's own for one."""
    clients = [Client() for _ in range(CONNECTIONS)]
    for client in clients:
        await client.open(served.port)
    chats = [
        json.loads(await client.ask("POST", "/v1/conversations", b"{}"))["id"]
        for client in clients
        for _ in range(4)
    ]
    item = json.dumps({"items": [{"role": "user", "content": TEXT}]}).encode()

    def path_of(kind: str, chat: str) -> tuple[str, str, bytes]:
        return {
            "health": ("GET", "/health/live", b""),
            "append": ("POST", f"/v1/conversations/{chat}/items", item),
            "window": ("GET", f"/v1/floodline/conversations/{chat}/window", b""),
        }[kind]

    async def work(number: int, kind: str, until: float, times: list[float]) -> None:
        mine, turn = chats[number * 4 : number * 4 + 4], 0
        while (began := time.perf_counter()) < until:
            await clients[number].ask(*path_of(kind, mine[turn % 4]))
            times.append((time.perf_counter() - began) * 1000)
            turn += 1

    found: dict[str, tuple[list[float], float]] = {}
    for kind in ("health", "append", "window"):
        times: list[float] = []
        before, until = served.cpu(), time.perf_counter() + seconds
        await asyncio.gather(*(work(n, kind, until, times) for n in range(CONNECTIONS)))
        found[kind] = times, (served.cpu() - before) / len(times) * 1000
    return found


def report(name: str, served: Served, seconds: float) -> None:
    for kind, (times, cpu) in asyncio.run(measure(served, seconds)).items():
        times.sort()
        p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
        print(
            f"{name:34} {kind:7} {len(times) / seconds:8.0f}/s   p50 {p50:6.2f} ms   "
            f"p99 {p99:6.2f} ms   max {times[-1]:7.2f} ms   CPU {cpu:5.2f} ms",
            flush=True,
        )
    print(f"{name:34} memory  {served.resident():8.0f} MiB", flush=True)


def watch_memory(served: Served, seconds: float) -> None:
    """Append for a while, and print resident memory ten times on the way."""
    for _ in range(10):
        asyncio.run(measure(served, seconds / 30))
        print(f"memory {served.resident():8.1f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4.0, help="for each kind of request")
    parser.add_argument("--parked", type=int, default=100_000)
    parser.add_argument("--only")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--serve")
    parser.add_argument("--port", type=int)
    parser.add_argument("--folder")
    given = parser.parse_args()
    if given.serve:
        import uvicorn

        path = f"{given.folder}/plain.db" if given.serve == "sqlite3" else None
        uvicorn.run(plain_app(path), port=given.port, http="h11", loop="asyncio", log_level="error")
        return
    os.sched_setaffinity(0, {CORES[-1]})
    os.environ["FLOODLINE_PROBE"] = ""
    for kind in ("dict", "sqlite3"):
        if given.only in (None, kind):
            with tempfile.TemporaryDirectory() as folder, Served(kind, Path(folder)) as served:
                report(f"plain Starlette, {kind}", served, given.seconds)
    if given.only not in (None, "floodline"):
        return
    with tempfile.TemporaryDirectory() as folder:
        with Served("floodline", Path(folder)) as served:
            if given.memory:
                watch_memory(served, given.seconds)
                return
            report("floodline serve", served, given.seconds)
        if given.parked:
            fill(Path(folder) / "serve.db", given.parked)
            with Served("floodline", Path(folder)) as served:
                report(f"… {given.parked:,} parked", served, given.seconds)
            flags = ("--ttl", "1 s", "--max-sessions", "40")
            with Served("floodline", Path(folder), flags, FLOODLINE_SWEEP_EVERY="1 s") as served:
                report("… and sweeping, 40 in memory", served, given.seconds)


if __name__ == "__main__":
    main()
