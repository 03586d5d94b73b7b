"""Checks that `floodline scan --library` finds historical leaks in the source that had them.

    python benchmarks/scan_recall.py CASES ENVIRONMENTS

CASES has one folder per leak with a `case.json` (package, leaky and fixed version, culprit). In
ENVIRONMENTS the packages are installed, in folders named `CASE-leaky-...` and `CASE-fixed-...`.
A leak counts as found if the container that grew is reported at medium or better in the leaky
source. The fixed source should not be reported; not every fix changes the container itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from floodline.scan import Finding, Scan

WANTED = 10


def findings(case: dict[str, Any], role: str, environments: Path) -> list[Finding] | None:
    """Scan the package of a case; `None` if it is not installed."""
    top = case["culprit"]["file"].partition("/")[0]
    homes = sorted(environments.glob(f"{case['id']}-{role}-*/lib/python*/site-packages/{top}"))
    if not homes:
        return None
    return [f for f in Scan([homes[0]], library=True).report().findings if f.confidence != "low"]


def names(finding: Finding, culprit: dict[str, Any]) -> bool:
    """Return True if a finding is about the container that grew."""
    owner = [part for part in culprit["owner"].split(".") if part != "<locals>"]
    if culprit["owner_kind"].startswith("closure cell"):
        owner.append(culprit["owner_kind"].split("'")[1])
    symbol = finding.symbol.replace("{", ".").replace("}", "").split(".")
    return symbol[-1] == owner[-1] and finding.path.endswith(culprit["file"])


def judged(case: dict[str, Any], environments: Path) -> tuple[str, str]:
    """Return what is reported for the leaky and for the fixed source."""
    told = []
    for role in ("leaky", "fixed"):
        found = findings(case, role, environments)
        if found is None:
            told.append("not installed")
            continue
        about = [f for f in found if names(f, case["culprit"])]
        told.append(f"{about[0].rule} {about[0].confidence}" if about else "-")
    return told[0], told[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("environments", type=Path)
    asked = parser.parse_args()
    hits = total = 0
    print(f"{'case':<32} {'leaky':<16} fixed")
    for path in sorted(asked.cases.glob("*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        leaky, fixed = judged(case, asked.environments)
        total += 1
        hits += leaky.startswith("FLD") and fixed == "-"
        print(f"{case['id']:<32} {leaky:<16} {fixed}", flush=True)
    print(f"{hits} of {total} found in the leaky source alone (wanted: {WANTED})")
    return 0 if hits >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
