"""The table that ranks findings, fitted by `benchmarks/scan_precision/refit.py`."""

from __future__ import annotations

# fmt: off
WEIGHTS: dict[str, dict[str, float]] = {
    "life": {
        "kept": 1.00,
        "library": 0.58,
        "unmade": 0.82,
        "handed": 0.02,
        "unknown": -0.22,
        "mixed": -0.04,
        "entry": 0.43,
        "run": -0.23,
        "anew": -1.62,
        "passing": -2.12,
        "scope": -2.13,
    },
    "path": {
        "event": 0.71,
        "loop": 0.11,
        "open": -0.20,
        "uncalled": 0.00,
        "silent": -1.44,
        "unknown": -1.00,
        "command": -2.66,
        "definition": -2.24,
    },
    "key": {
        "new": 0.89,
        "event": 0.48,
        "adds": 0.50,
        "narrowed": 0.27,
        "caller": -0.03,
        "derived": -0.35,
        "stores": -0.60,
        "checked": -0.63,
        "unknown": -0.89,
    },
    "word": {
        "who": 0.94,
        "id": 0.50,
        "none": 0.00,
        "other": 0.13,
        "kind": -1.27,
    },
    "removal": {
        "none": 0.40,
        "never": 0.01,
        "end": 0.08,
        "lazy": 0.01,
        "event": -0.72,
        "public": -0.25,
        "escapes": -0.33,
        "guessed": -0.91,
        "paired": -2.80,
    },
    "intent": {
        "cap": 1.05,
        "age": 0.72,
        "status": 0.34,
        "part": 0.04,
        "none": 0.00,
    },
    "what": {
        "work": 0.67,
        "made": 0.38,
        "value": 0.31,
        "item": 0.00,
        "member": 0.07,
        "inner": -0.23,
    },
    "doubts": {
        "none": 1.63,
        "some": 0.00,
    },
}
# fmt: on
# levels are cuts of the rank
MEDIUM = 52
HIGH = 96
