"""How fast `floodline scan` reads a tree, cold and warm, and the memory; beside ruff and pylint.

    python benchmarks/bench_scan.py [--quick] [FOLDER ...]

The default is the standard library of this Python and its site-packages; `--quick` takes `asyncio`
alone. Seconds are those of the processor, so a busy machine changes little. Warm is a second run
that finds its cache: once with nothing changed, once with one new file. pylint is slow and gets
`asyncio`.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

TARGET = 70_000
TIMES = 10
ENOUGH = 500_000
PART = "asyncio"
SCAN = """
import resource, sys
from pathlib import Path
from floodline.scan import Scan
from floodline.scan._cache import Cache
folder, *paths = sys.argv[1:]
if folder == "-":
    report = Scan(paths).report()
else:
    with Cache(Path(folder), "bench", day=1) as cache:
        report = Scan(paths, cache=cache).report()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(report.files, report.lines, len(report.skipped), peak)
"""


def seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command: list[str]) -> tuple[str, float]:
    before = seconds_of_children()
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    return done.stdout, seconds_of_children() - before


def scan(what: str, cache: str, paths: list[Path]) -> tuple[int, float]:
    told, took = run([sys.executable, "-c", SCAN, cache, *map(str, paths)])
    files, lines, skipped, peak = map(int, told.split())
    print(
        f"{what:>26}: {lines:>9,} lines {took:7.2f} s {int(lines / took):>10,} lines/s, {peak} MB, "
        f"{files} files, {skipped} skipped"
    )
    return lines, took


def other(tool: str, paths: list[Path], *arguments: str) -> None:
    if find_spec(tool) is None:
        print(f"{tool:>26}: not installed; it is in the extra `bench`")
        return
    lines = 0
    for folder in paths:
        for path in folder.rglob("*.py"):
            if "site-packages" not in path.relative_to(folder).parts and path.is_file():
                lines += path.read_bytes().count(b"\n")
    _, took = run([sys.executable, "-m", tool, *arguments, *map(str, paths)])
    print(f"{tool:>26}: {lines:>9,} lines {took:7.2f} s {int(lines / took):>10,} lines/s")


def main() -> None:
    """Print a line for each run, and whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    known = sysconfig.get_paths()
    library = Path(known["stdlib"])
    standard = [library / PART] if asked.quick else [library, Path(known["purelib"])]
    paths = asked.folders or standard
    print(f"Python {sys.version.split()[0]}, seconds of one core")
    with tempfile.TemporaryDirectory() as folder:
        lines, cold = scan("floodline without cache", "-", paths)
        scan("floodline, filling a cache", folder, paths)
        _, warm = scan("floodline, warm", folder, paths)
        extra = Path(folder) / "extra"
        extra.mkdir()
        (extra / "new.py").write_text("x = {}\n")
        scan("floodline, one new file", folder, [*paths, extra])
    other("ruff", paths, "check", "--isolated", "--no-cache", "--quiet", "--exit-zero")
    other("pylint", [library / PART], "--disable=all", "--enable=method-cache-max-size-none")
    if lines < ENOUGH:
        print(f"targets are for {ENOUGH:,} lines and more: here the start of Python takes the time")
        return
    speed, times = lines / cold, cold / warm
    print(f"cold: {TARGET:,} lines/s {'met' if speed >= TARGET else 'missed'} ({int(speed):,})")
    print(f"warm: {TIMES} times cold {'met' if times >= TIMES else 'missed'} ({times:.0f} times)")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1] / "src"))
    main()
