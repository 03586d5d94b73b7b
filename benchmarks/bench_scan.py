"""The speed of `floodline scan`, cold and warm, and its memory, against ruff and pylint.

    python benchmarks/bench_scan.py [--quick] [--rounds N] [FOLDER ...]

The default is the standard library of this Python and its site-packages; `--quick` takes only
`asyncio`. Speeds are lines per CPU second (all threads of a tool together), which a busy machine
affects less than wall time; wall time is printed too. All tools take turns; with several rounds the
fastest run of each counts, and the largest memory.

Cold means once without a cache and once filling one. Warm is a second run that finds its cache:
once with nothing changed, once with one new file. Two processes (`--jobs 2`) are compared with one
by their wall time, which needs two idle cores; their memory is that of all processes together. The
shortest they could take is half of what both compute while files are read plus the rest, which a
busy machine changes less. `ast.parse` is what Python itself needs to read
the files: a lower bound for every tool written in it. pylint is slow and only gets `asyncio`.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

TARGET = 70_000
TIMES = 10
MEMORY = 300
RATIO = 0.65
ENOUGH = 500_000
PART = "asyncio"
SCAN = """
import resource, sys
from pathlib import Path
from floodline.scan import Scan
from floodline.scan._sources.cache import Cache
folder, jobs, *paths = sys.argv[1:]
reading = used = 0  # memory and CPU time while there are workers: they end before files are linked
def progress(done, total):
    global reading, used
    if done == total:
        here = resource.getrusage(resource.RUSAGE_SELF)
        reading, used = here.ru_maxrss, here.ru_utime + here.ru_stime
if folder == "-":
    report = Scan(paths, jobs=int(jobs), progress=progress).report()
else:
    with Cache(Path(folder), "bench", day=1) as cache:
        report = Scan(paths, jobs=int(jobs), cache=cache).report()
own, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
peak = max(own.ru_maxrss, reading + (int(jobs) - 1) * workers.ru_maxrss) // 1024
shared = round((used + workers.ru_utime + workers.ru_stime) * 1000)
print(report.lines, peak, shared, report.files, len(report.skipped))
"""
PARSE = """
import ast, gc, resource, sys, warnings
from pathlib import Path
from floodline.scan._sources.files import Skipped, decoded, sources
gc.disable()
warnings.simplefilter("ignore")
lines = 0
for source in sources([Path(path) for path in sys.argv[1:]]):
    if not isinstance(source, Skipped):
        text = decoded(source.path.read_bytes())
        ast.parse(text)
        lines += text.count("\\n")
print(lines, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, 0)
"""
WITHOUT, FILLING = "floodline without cache", "floodline, filling a cache"
TWO = "floodline, two processes"
WARM, ONE_NEW = "floodline, warm", "floodline, one new file"


class Run(NamedTuple):
    """What one run of a tool took."""

    cpu: float
    wall: float
    lines: int
    peak: int = 0  # MB, if the tool says so
    note: str = ""
    shared: float = 0  # CPU seconds of all processes while files are read

    @property
    def speed(self) -> int:
        return int(self.lines / self.cpu)


def run(command: list[str]) -> tuple[list[str], float, float]:
    """Return the words a command prints, its CPU seconds and its wall seconds."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return done.stdout.split(), cpu, wall


def own(code: str, *arguments: str | Path) -> Run:
    """Run code of ours that prints lines, memory, and perhaps files and what was skipped."""
    told, cpu, wall = run([sys.executable, "-c", code, *map(str, arguments)])
    lines, peak, shared, *rest = map(int, told)
    note = f"{rest[0]} files, {rest[1]} skipped" if rest else ""
    return Run(cpu, wall, lines, peak, note, shared / 1000)


def other(tool: str, paths: list[Path], *arguments: str) -> Run:
    """Run another tool; it reads tests and the like too, so its lines are counted apart."""
    lines = 0
    for folder in paths:
        for path in folder.rglob("*.py"):
            if "site-packages" not in path.relative_to(folder).parts and path.is_file():
                lines += path.read_bytes().count(b"\n")
    _, cpu, wall = run([sys.executable, "-m", tool, *arguments, *map(str, paths)])
    return Run(cpu, wall, lines)


def runs(paths: list[Path], library: Path) -> Iterator[tuple[str, Run]]:
    """Run everything once."""
    yield "ast.parse alone", own(PARSE, *paths)
    with tempfile.TemporaryDirectory() as folder:
        yield WITHOUT, own(SCAN, "-", "1", *paths)
        yield TWO, own(SCAN, "-", "2", *paths)
        yield FILLING, own(SCAN, folder, "1", *paths)
        yield WARM, own(SCAN, folder, "1", *paths)
        extra = Path(folder) / "extra"
        extra.mkdir()
        (extra / "new.py").write_text("x = {}\n")
        yield ONE_NEW, own(SCAN, folder, "1", *paths, extra)
    if find_spec("ruff"):
        quiet = ("check", "--isolated", "--no-cache", "--quiet", "--exit-zero")
        yield "ruff", other("ruff", paths, *quiet)
    if find_spec("pylint"):
        one_rule = ("--disable=all", "--enable=method-cache-max-size-none")
        yield "pylint", other("pylint", [library / PART], *one_rule)


def best(rounds: list[Run]) -> Run:
    fastest = min(rounds, key=lambda run: run.cpu)
    return fastest._replace(peak=max(run.peak for run in rounds))


def verdicts(found: dict[str, Run]) -> Iterator[str]:
    """Yield a sentence per target that says whether it is met."""
    cold, filling = found[WITHOUT], found[FILLING]
    if cold.lines < ENOUGH:
        yield f"targets are for {ENOUGH:,} lines and more: here Python's start-up dominates"
        return
    for what, speed in (("cold", cold.speed), ("cold, filling a cache", filling.speed)):
        met = "met" if speed >= TARGET else "missed"
        yield f"{what}: {TARGET:,} lines per CPU second {met} ({speed:,})"
    times = cold.cpu / found[WARM].cpu
    yield f"warm: {TIMES}× cold {'met' if times >= TIMES else 'missed'} ({times:.0f} times)"
    two = found[TWO]
    least = (two.cpu - two.shared / 2) / cold.cpu
    ratio = two.wall / cold.wall
    yield (
        f"two processes: {RATIO} of one {'met' if ratio <= RATIO else 'missed'} "
        f"({ratio:.2f} by wall time, {least:.2f} by CPU time if both cores are idle)"
    )
    for what, peak in (
        ("memory", cold.peak),
        ("memory, filling a cache", filling.peak),
        ("memory of all processes", two.peak),
    ):
        part = peak / (cold.lines / 1_000_000)
        met = "met" if part < MEMORY else "missed"
        yield f"{what}: {MEMORY} MB per million lines {met} ({part:.0f} MB)"


def main() -> None:
    """Print a line per run, and whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    known = sysconfig.get_paths()
    library = Path(known["stdlib"])
    standard = [library / PART] if asked.quick else [library, Path(known["purelib"])]
    paths = asked.folders or standard
    found: dict[str, list[Run]] = {}
    for _ in range(asked.rounds):
        for name, took in runs(paths, library):
            found.setdefault(name, []).append(took)
    fastest = {name: best(rounds) for name, rounds in found.items()}
    print(f"Python {sys.version.split()[0]}, the best of {asked.rounds}; lines per CPU second")
    for name, took in fastest.items():
        memory = f", {took.peak} MB" if took.peak else ""
        note = f", {took.note}" if took.note else ""
        print(
            f"{name:>26}: {took.lines:>9,} lines {took.cpu:7.2f} s CPU {took.wall:7.2f} s wall "
            f"{took.speed:>9,} lines/s{memory}{note}"
        )
    for tool in {"ruff", "pylint"} - fastest.keys():
        print(f"{tool:>26}: not installed; it comes with the `bench` extra")
    print("\n".join(verdicts(fastest)))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1] / "src"))
    main()
