"""Fits the table that ranks findings to the labels, and prints how well it ranks.

    python benchmarks/scan_precision/refit.py [--write]

Every label that has `features` is one row, in `labels.json` and in `applications_*_findings.json`
(where a finding that was drawn twice counts once). The model is logistic; its weights stay
near a prior (`PRIOR`, what one would guess without any label), so that a value that is rare in the
labels keeps the guess. How many of the labelled findings are actionable depends on what was
scanned, so the offset that says so is fitted too, and left out of the table.

AUC is how often an actionable finding ranks above another one, each scored by a table that was
fitted without its package. `--write` writes `src/floodline/scan/_findings/weights.py`.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "src" / "floodline" / "scan" / "_findings" / "weights.py"
TRUST = 8.0  # of the prior: the inverse of its variance
OFFSET = -2.5  # to begin with: most findings are not actionable
MEDIUM, HIGH = 36, 92
PRIOR: dict[str, dict[str, float]] = {
    "life": {"kept": 1.0, "library": 0.2, "unmade": 0.0, "handed": -0.2, "unknown": -0.7,
             "mixed": -0.4, "entry": 0.0, "run": -0.6, "anew": -2.0, "passing": -2.5,
             "scope": -2.5},
    "path": {"event": 1.2, "loop": 0.4, "open": 0.1, "uncalled": 0.0, "silent": -1.2,
             "unknown": -0.8, "command": -3.0, "definition": -2.0},
    "key": {"new": 0.9, "event": 0.7, "adds": 0.6, "narrowed": 0.3, "caller": 0.0, "derived": -0.6,
            "stores": -0.6, "checked": -0.6, "unknown": -0.8},
    "word": {"who": 0.9, "id": 0.4, "none": 0.0, "other": 0.0, "kind": -1.2},
    "removal": {"none": 0.4, "never": 0.2, "end": 0.1, "lazy": 0.0, "event": -1.0, "public": -0.3,
                "escapes": -0.3, "guessed": -0.9, "paired": -2.8},
    "intent": {"cap": 1.2, "age": 0.9, "status": 0.5, "part": 0.3, "none": 0.0},
    "what": {"work": 0.4, "made": 0.2, "value": 0.0, "item": 0.0, "member": 0.0, "inner": -0.5},
    "doubts": {"none": 1.2, "some": 0.0},
}  # fmt: skip
NAMES = [(column, value) for column, values in PRIOR.items() for value in values]
INDEX = {name: number for number, name in enumerate(NAMES)}
GUESS = [PRIOR[column][value] for column, value in NAMES]
Row = tuple[list[int], int, str]  # which weights count, whether it is actionable, its package


def rows() -> list[Row]:
    """Return the labels that have features."""
    found = [
        row(label["features"], label["actionable"], label["package"])
        for label in read(HERE / "labels.json")["labels"]
        if "features" in label
    ]
    drawn: dict[tuple[str, ...], Row] = {}
    for path in sorted(HERE.glob("applications*_findings.json")):
        document = read(path)
        for label in (*document["findings"], *document.get("high", ())):
            if "features" in label:
                place = tuple(label[key] for key in ("repository", "symbol", "rule"))
                actionable = label["label"] == "actionable"
                drawn[place] = row(label["features"], actionable, label["repository"])
    return found + list(drawn.values())


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def row(features: dict[str, str], actionable: bool, package: str) -> Row:
    return [INDEX[item] for item in features.items()] + [len(NAMES)], int(actionable), package


def score(weights: list[float], active: list[int]) -> float:
    return sum(weights[number] for number in active)


def step(data: list[Row], weights: list[float]) -> list[float]:
    """Return the weights after one step of Newton's method."""
    size = len(weights)
    trust = [TRUST] * len(GUESS) + [1e-3]
    slope = [trust[i] * (weights[i] - ([*GUESS, 0.0])[i]) for i in range(size)]
    bend = [[trust[i] if i == j else 0.0 for j in range(size)] for i in range(size)]
    for active, good, _ in data:
        chance = 1 / (1 + math.exp(-score(weights, active)))
        for i in active:
            slope[i] += chance - good
            for j in active:
                bend[i][j] += chance * (1 - chance)
    return [w - d for w, d in zip(weights, solved(bend, slope), strict=True)]


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a positive definite system by elimination; the arguments are used up."""
    size = len(right)
    for k in range(size):
        pivot = matrix[k]
        for i in range(k + 1, size):
            factor = matrix[i][k] / pivot[k]
            if factor:
                row = matrix[i]
                for j in range(k, size):
                    row[j] -= factor * pivot[j]
                right[i] -= factor * right[k]
    result = [0.0] * size
    for k in reversed(range(size)):
        rest = sum(matrix[k][j] * result[j] for j in range(k + 1, size))
        result[k] = (right[k] - rest) / matrix[k][k]
    return result


def fitted(data: list[Row], start: list[float] | None = None, steps: int = 12) -> list[float]:
    """Return the weights; the last one is the offset of the sample."""
    weights = start or [*GUESS, OFFSET]
    for _ in range(steps):
        weights = step(data, weights)
    return weights


def anchored(data: list[Row], weights: list[float]) -> list[float]:
    """Return the same table, shifted so that the commonest value of a column keeps its prior.

    Only differences within a column mean something: a shift would move the cuts of the levels.
    """
    counts = Counter(number for active, _, _ in data for number in active)
    result = list(weights)
    for column, values in PRIOR.items():
        numbers = [INDEX[column, value] for value in values]
        first = max(numbers, key=lambda number: counts[number])
        for number in numbers:
            result[number] += GUESS[first] - weights[first]
    return result


def left_out(data: list[Row], known: list[float]) -> list[tuple[float, int]]:
    """Return the score of every row by a table that was fitted without its package."""
    found = []
    by_package = defaultdict(list)
    for row in data:
        by_package[row[2]].append(row)
    for package, own in by_package.items():
        others = [row for row in data if row[2] != package]
        weights = fitted(others, known, steps=1)  # from the full table it is one step
        found += [(score(weights, active), good) for active, good, _ in own]
    return found


def auc(scored: list[tuple[float, int]]) -> float:
    """Return how often an actionable finding ranks above one that is not; a tie is a half."""
    good = [value for value, label in scored if label]
    bad = [value for value, label in scored if not label]
    above = sum((g > b) + (g == b) / 2 for g in good for b in bad)
    return above / (len(good) * len(bad))


def table(weights: list[float]) -> str:
    """Return the module that the scan reads."""
    lines = [
        '"""The table that ranks findings, fitted by `benchmarks/scan_precision/refit.py`."""',
        "", "from __future__ import annotations", "",
        "# fmt: off", "WEIGHTS: dict[str, dict[str, float]] = {",
    ]  # fmt: skip
    for column, values in PRIOR.items():
        lines.append(f'    "{column}": {{')
        lines += [f'        "{v}": {weights[INDEX[column, v]]:.2f},' for v in values]
        lines.append("    },")
    lines += [
        "}",
        "# fmt: on",
        "# levels are cuts of the rank",
        f"MEDIUM = {MEDIUM}",
        f"HIGH = {HIGH}",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Fit, print, and write the table if asked to."""
    data = rows()
    weights = fitted(data)
    good = sum(label for _, label, _ in data)
    print(f"{len(data)} labels with features, {good} actionable")
    print(f"AUC, leave one package out: {auc(left_out(data, weights)):.3f}")
    print(
        f"AUC of the prior alone:     {auc([(score([*GUESS, 0.0], a), g) for a, g, _ in data]):.3f}"
    )
    if "--write" in sys.argv[1:]:
        TABLE.write_text(table(anchored(data, weights)), encoding="utf-8")


if __name__ == "__main__":
    main()
