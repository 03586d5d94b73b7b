"""A process that appends to shared sessions until its standard input ends.

It prints a line when it begins an append and one when that is acknowledged (its block was left
without an exception), or was not; the times are those of the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import threading
import time
from typing import Any

from floodline import AsyncSessions, Sessions
from floodline.errors import FloodlineError, StoreUnavailable

IDS, TASKS = 20, 4


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main() -> None:
    url, name, kind = sys.argv[1:]
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    if kind == "loop":
        asyncio.run(on_a_loop(url, name, ended))
    else:
        in_a_thread(url, name, ended)
    os._exit(0)  # what it did not say to be done may be lost


def opened(made: Any, url: str) -> Any:
    options: Any = {"lease": "1 s", "busy_wait": "2 s", "sweep_every": "1 s"}
    while True:  # the server may just be down
        with contextlib.suppress(StoreUnavailable):
            return made(dict, store=url, name="chaos", **options)


def in_a_thread(url: str, name: str, ended: threading.Event) -> None:
    rng, number = random.Random(name), 0
    sessions = opened(Sessions, url)
    while not ended.is_set():
        number += 1
        one, token = f"id{rng.randrange(IDS)}", f"{name}.{number}"
        say("begin", one, token, time.monotonic_ns())
        try:
            with sessions.use(one) as state:
                state.setdefault("log", []).append(token)
        except FloodlineError as error:
            say("failed", one, token, type(error).__name__)
            ended.wait(0.01)
        else:
            say("done", one, token, time.monotonic_ns())


async def on_a_loop(url: str, name: str, ended: threading.Event) -> None:
    """Let tasks append that make a batch together."""
    sessions = opened(AsyncSessions, url)

    async def append(task: int) -> None:
        rng, number = random.Random(f"{name} {task}"), 0
        while not ended.is_set():
            number += 1
            one, token = f"id{rng.randrange(IDS)}", f"{name}.{task}.{number}"
            say("begin", one, token, time.monotonic_ns())
            try:
                async with sessions.use(one) as state:
                    state.setdefault("log", []).append(token)
            except FloodlineError as error:
                say("failed", one, token, type(error).__name__)
                await asyncio.sleep(0.01)
            else:
                say("done", one, token, time.monotonic_ns())

    await asyncio.gather(*(append(task) for task in range(TASKS)))


if __name__ == "__main__":
    main()
