"""How fast `floodline scan` reads a tree, and how much memory that takes; beside ruff and pylint.

    python benchmarks/bench_scan.py [--quick] [FOLDER]

The default is the standard library of this Python; `--quick` takes its `asyncio` alone. Seconds are
those of the processor, so a busy machine changes little. pylint is slow: it gets a small part.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import sysconfig
import time
from importlib.util import find_spec
from pathlib import Path

from floodline.scan import Scan

TARGET = 70_000
PART = "asyncio"


def seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def other(tool: str, folder: Path, *arguments: str) -> None:
    if find_spec(tool) is None:
        print(f"{tool:>10}: not installed")
        return
    read = [p for p in folder.rglob("*.py") if "site-packages" not in p.relative_to(folder).parts]
    lines = sum(path.read_bytes().count(b"\n") for path in read)
    before = seconds_of_children()
    command = [sys.executable, "-m", tool, *arguments, str(folder)]
    subprocess.run(command, capture_output=True, check=False)
    took = seconds_of_children() - before
    print(f"{tool:>10}: {lines:>9,} lines {took:7.2f} s {int(lines / took):>9,} lines/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    library = Path(sysconfig.get_paths()["stdlib"])
    folder = asked.folder or (library / PART if asked.quick else library)
    start = time.process_time()
    report = Scan([folder]).report()
    took = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"Python {sys.version.split()[0]}, {report.files} files, {len(report.skipped)} skipped")
    speed = int(report.lines / took)
    print(
        f"{'floodline':>10}: {report.lines:>9,} lines {took:7.2f} s {speed:>9,} lines/s, {peak} MB"
    )
    print(f"{'target':>10}: {TARGET:,} lines/s: {'met' if speed >= TARGET else 'missed'}")
    other("ruff", folder, "check", "--isolated", "--no-cache", "--quiet", "--exit-zero")
    other("pylint", library / PART, "--disable=all", "--enable=method-cache-max-size-none")


if __name__ == "__main__":
    main()
