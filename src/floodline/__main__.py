"""The process of the command line: `floodline`, or `python -m floodline`."""

from __future__ import annotations

import gc
import sys

from floodline.cli import main


def run() -> int:
    """Run a command as the last thing that this process does, and return its exit status."""
    left: list[object] = []
    left.append(left)  # only the collector could free it
    status = main(left=left)
    if len(left) > 1:
        gc.freeze()  # and it may not: the process ends, and freeing a large scan takes long
    return status


if __name__ == "__main__":
    sys.exit(run())
