"""A process that appends to shared sessions until its standard input ends.

It prints a line when it begins an append and one when that is acknowledged (its block was left
without an exception), or was not; the times are those of the machine.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import threading
import time
from typing import Any

from floodline import Sessions
from floodline.errors import FloodlineError, StoreUnavailable

IDS = 20


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main() -> None:
    url, name = sys.argv[1:]
    rng, ended = random.Random(name), threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    options: Any = {"lease": "1 s", "busy_wait": "2 s", "sweep_every": "1 s"}
    sessions = None
    while sessions is None:  # the server may just be down
        with contextlib.suppress(StoreUnavailable):
            sessions = Sessions(dict, store=url, name="chaos", **options)
    number = 0
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
    os._exit(0)  # what it did not say to be done may be lost


if __name__ == "__main__":
    main()
