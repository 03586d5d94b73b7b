"""Prints how precise `floodline scan` is, from labelled findings of public packages.

    python benchmarks/scan_precision [FOLDER]

`packages.txt` has the lists, each committed before its first scan; `labels.json` has findings of
these first scans with a label, the line that proves it and a reason; `probes.py` drives some.
With a FOLDER that has the unpacked packages (one folder each, named as in the list) these are
scanned again, and findings without a label are listed.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from floodline.scan import Scan

HERE = Path(__file__).parent
LEVELS = ("high", "medium")


def load() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((HERE / "labels.json").read_text(encoding="utf-8"))
    return document


def shown(labels: list[dict[str, Any]], level: str) -> str:
    chosen = [label for label in labels if label["confidence"] == level]
    good = sum(label["actionable"] for label in chosen)
    return f"{good:>4} of {len(chosen):>3} = {good / len(chosen):4.0%}" if chosen else f"{'-':>18}"


def report(document: dict[str, Any]) -> None:
    labels = document["labels"]
    print(f"{'run':>8} {'kLoC':>6} {'high':>5} {'medium':>6} {'per 100 kLoC':>13}  actionable: "
          f"{'high':>6} {'medium':>18}")  # fmt: skip
    for name, run in document["runs"].items():
        of_run = [label for label in labels if label["run"] == name]
        found = run["found"]
        density = 100_000 * sum(found.values()) / run["lines"]
        print(
            f"{name:>8} {run['lines'] // 1000:>6} {found['high']:>5} {found['medium']:>6} "
            f"{density:>13.1f} {shown(of_run, 'high')} {shown(of_run, 'medium')}"
        )
    for name, run in document["runs"].items():
        print(f"{name:>8}: {run['rules']}")
    executed = [label for label in labels if "executed" in label]
    agree = sum(label["executed"]["grew"] == label["actionable"] for label in executed)
    by_hand = sum("how" in label["executed"] for label in executed)
    print(
        f"{len(labels)} labels; {len(executed)} driven ({len(executed) - by_hand} by probes.py,"
        f" {by_hand} by hand), {agree} of these agree"
    )
    by_rule = Counter((label["rule"], label["actionable"]) for label in labels)
    for rule in sorted({label["rule"] for label in labels}):
        good, bad = by_rule[rule, True], by_rule[rule, False]
        print(f"{rule:>8} {good:>4} of {good + bad:>3}")


def rescan(folder: Path, document: dict[str, Any]) -> None:
    known = {(x["package"], x["symbol"]): x["actionable"] for x in document["labels"]}
    seen: Counter[tuple[str, bool | None]] = Counter()
    start = Path.cwd()
    for package in sorted(path for path in folder.resolve().iterdir() if path.is_dir()):
        os.chdir(package)
        for finding in Scan([Path()]).report().findings:
            if finding.confidence not in LEVELS or finding.status != "new":
                continue
            label = known.get((package.name.replace("_", "-"), finding.symbol))
            seen[finding.confidence, label] += 1
            if label is None and finding.confidence == "high":
                place = f"{finding.path}:{finding.line}"
                print(f"no label: {package.name} {place} {finding.rule} {finding.symbol}")
        os.chdir(start)
    for level in LEVELS:
        good, bad, none = (seen[level, label] for label in (True, False, None))
        print(f"{level}: {good} actionable, {bad} not, {none} without a label")


def main() -> None:
    """Print the figures; with a folder, compare them with a scan of what is there."""
    document = load()
    if len(sys.argv) > 1:
        rescan(Path(sys.argv[1]), document)
    else:
        report(document)


if __name__ == "__main__":
    main()
