"""One turn per round; PIPELINE=stress takes ten, PIPELINE=chaos fails, cancels and floods.

floodline soak examples/stage_pipeline/scenario.py
VERSION=bounded PIPELINE=chaos floodline soak examples/stage_pipeline/scenario.py
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os

KIND = os.environ.get("PIPELINE", "baseline")
pipeline = importlib.import_module(os.environ.get("VERSION", "leaky")).Pipeline()


async def round(i: int) -> None:
    words = f"turn {i}: " + "what does the gauge say; " * 150
    for n in range(10 if KIND == "stress" else 1):
        await pipeline.turn(f"{words} {n}")
        for step in range(50):
            pipeline.emit(f"turn {i}.{n}, step {step}")
    if KIND == "chaos":
        with contextlib.suppress(ValueError):
            await pipeline.turn(f"a flood in round {i}")
        cancelled = asyncio.create_task(pipeline.turn(words))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        for n in range(5000):
            pipeline.emit(f"event {i}.{n}")
