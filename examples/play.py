"""Plays one of the five systems until Ctrl-C, to be watched from outside.

    floodline run examples/play.py plan_service leaky
    floodline run examples/play.py plan_service bounded

It calls `round(i)` of the system's scenario 20 times per second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import inspect
import math
import os
import time
from pathlib import Path

from floodline.soak import load

PACE = 0.05  # seconds per round


async def _done(result: object) -> None:
    if inspect.isawaitable(result):
        await result


async def play(name: str, version: str, seconds: float) -> None:
    os.environ["VERSION"] = version
    scenario = load(Path(__file__).parent / name / "scenario.py")
    rounds, end = 0, time.monotonic() + seconds
    await _done(scenario.setup())
    while time.monotonic() < end:
        await _done(scenario.round(rounds))
        rounds += 1
        await asyncio.sleep(PACE)
    await _done(scenario.teardown())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", help="plan_service, session_worker, and so on")
    parser.add_argument("version", choices=["leaky", "bounded"])
    parser.add_argument("--seconds", type=float, default=math.inf, help="until Ctrl-C by default")
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(play(given.name, given.version, given.seconds))
