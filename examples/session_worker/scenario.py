"""Four clients per round: one deletes its session, one is done, one goes away, one never returns.

floodline soak examples/session_worker/scenario.py
VERSION=bounded floodline soak examples/session_worker/scenario.py
"""

from __future__ import annotations

import importlib
import os
import tempfile
from typing import Any

worker: Any = None
folder: tempfile.TemporaryDirectory[str]


async def setup() -> None:
    global worker, folder
    folder = tempfile.TemporaryDirectory(prefix="session-worker-")
    os.environ["WORKER_STORE"] = f"sqlite:///{folder.name}/worker.db"
    worker = importlib.import_module(os.environ.get("VERSION", "leaky")).SessionWorker()
    for n in range(1000):  # whoever came before
        await worker.ask(f"first-{n}", "the water rises " * 750)


async def round(i: int) -> None:
    text = f"message {i}: " + "how high is the water; " * 4000
    await worker.ask(f"deleted-{i}", text, "anthropic")
    await worker.delete(f"deleted-{i}")

    await worker.enqueue(f"done-{i}", text)
    await worker.work(f"done-{i}")
    await worker.complete(f"done-{i}")

    stream = worker.stream(f"gone-{i}", text)
    await anext(stream)  # the first word; then the client closes its window
    del stream

    await worker.ask(f"silent-{i}", text, "gemini")
    await worker.ask("regular", "and now?", "openai")


async def teardown() -> None:
    await worker.shutdown()
    folder.cleanup()
