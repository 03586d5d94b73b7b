"""A server on bounded sessions is watched from a cold start, and must never be called growing.

    python tests/acceptance/watch_bounded.py --minutes 10

For `nox -s watch`. Prints each change of the verdict, and ends with 0 only if the last is bounded.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from floodline.errors import ConfigError
from floodline.recorder import read_recording
from run_programs import BOUNDED, Load, Run


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    end = time.monotonic() + 60 * parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder), BOUNDED)
        load = Load(run.port, pause=0.005)
        try:
            seen = _watch(run, end)
        finally:
            load.stop()
            os.kill(run.process.pid, signal.SIGTERM)
            say(run.finish())
    return 0 if "growing" not in seen and seen[-1] == "bounded" else 1


def _watch(run: Run, end: float) -> list[str]:
    seen: list[str] = []
    while time.monotonic() < end and "growing" not in seen:
        time.sleep(1)
        try:
            state = read_recording(run.record).state()
        except ConfigError:  # before its first tick
            continue
        if not seen or state["verdict"] != seen[-1]:
            seen.append(state["verdict"])
            seconds = state["now"] - state["started"]
            say(f"{seconds:6.0f} s  {state['verdict']}  {state['needed'] or ''}")
            for suspect in state["suspects"]:
                say(f"          {suspect['owner']} {suspect['verdict']} {suspect['per_round']}/s")
    return seen


if __name__ == "__main__":
    sys.exit(main())
