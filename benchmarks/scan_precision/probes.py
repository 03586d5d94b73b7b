"""Drives the growth path of findings of the first run, each as its callers do, and counts.

    python benchmarks/scan_precision/probes.py NAME ...

Run it with a Python that has the package of the probe (`labels.json` has the versions). A probe
does one step of work and returns the size of the container; it grew if 200 steps leave it far
larger than 20 did. What does not open by itself (a display, a cluster, a cloud) is replaced by a
stand-in.
"""

from __future__ import annotations

import json
import sys

import probes_agents
import probes_servers
from registry import PROBES

__all__ = ["probes_agents", "probes_servers"]


def sizes(name: str) -> tuple[int, int]:
    step = PROBES[name]()
    seen = [step(i) for i in range(200)]
    return seen[19], seen[-1]


def main() -> None:
    """Print a line of JSON for each probe: the sizes after 20 and after 200 steps."""
    for name in sys.argv[1:] or PROBES:
        try:
            early, late = sizes(name)
        except ImportError as error:
            print(json.dumps({"probe": name, "skipped": str(error)}))
            continue
        grew = late >= early + 100
        print(json.dumps({"probe": name, "after_20": early, "after_200": late, "grew": grew}))


if __name__ == "__main__":
    main()
