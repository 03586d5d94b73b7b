"""Runs small programs under `floodline run`, and compares the report with what is true of them.

    python benchmarks/livebench/run.py [--seconds N] [CASE...]

A case is a folder with `case.json` and `app.py`. What is not installed for it leaves a case out.
"""

from __future__ import annotations

import argparse
import json
import linecache
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FLOODLINE = (sys.executable, "-m", "floodline")


def report_of(folder: Path, seconds: float, record: Path) -> dict[str, Any]:
    command = [*FLOODLINE, "run", "--record", str(record), str(folder / "app.py")]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    told = [*FLOODLINE, "report", str(record), "--format", "json"]
    found: dict[str, Any] = json.loads(subprocess.run(told, capture_output=True, check=True).stdout)
    return found


def judge(report: dict[str, Any], truth: dict[str, Any]) -> tuple[bool, str]:
    """Return whether the report is right, and what it said."""
    said = f"{report['verdict']}: {[one['owner'] for one in report['suspects'][:3]]}"
    changes = [one["verdict"] for one in report["history"]]
    if truth["verdict"] == "bounded":
        return report["verdict"] == "bounded" and "growing" not in changes, said
    if not truth["owners"]:  # nothing of Python grows: where it is must be said
        right = report["verdict"] == "growing" and report["where"] in truth["where"]
        return right and "bounded" not in changes, f"{said}, in {report['where']}"
    named = [
        one
        for one in report["suspects"][:3]
        if any(owner in f"{one['owner']} {one['path']}" for owner in truth["owners"])
    ]
    places = [place for one in named for place in (one, one.get("caller") or {})]
    texts = [linecache.getline(p.get("file") or "", p.get("line") or 0) for p in places]
    line = any(wanted in text for wanted in truth["lines"] for text in texts)
    right = report["verdict"] == "growing" and bool(named) and "bounded" not in changes
    return right and line, f"{said}, line {'right' if line else 'wrong'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="instead of what the cases say")
    parser.add_argument("cases", nargs="*", help="names of folders; all by default")
    options = parser.parse_args()
    wrong = 0
    for file in sorted(HERE.glob("*/case.json")):
        case = json.loads(file.read_text(encoding="utf-8"))
        if options.cases and case["id"] not in options.cases:
            continue
        if missing := [name for name in case["requirements"] if find_spec(name) is None]:
            print(f"{case['id']:22} left out: {', '.join(missing)} is not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            seconds = options.seconds or case["seconds"]
            report = report_of(file.parent, seconds, Path(folder) / "run.rec")
        right, said = judge(report, case["truth"])
        wrong += not right
        print(f"{case['id']:22} {'right' if right else 'WRONG'}  {said}", flush=True)
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
