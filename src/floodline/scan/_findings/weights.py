"""The table that ranks findings, fitted by `benchmarks/scan_precision/refit.py`."""

from __future__ import annotations

# fmt: off
WEIGHTS: dict[str, dict[str, float]] = {
    "life": {
        "kept": 1.00,
        "library": 0.58,
        "unmade": 0.81,
        "handed": 0.02,
        "unknown": -0.22,
        "mixed": -0.04,
        "entry": 0.42,
        "run": -0.24,
        "anew": -1.62,
        "passing": -2.13,
        "scope": -2.13,
    },
    "path": {
        "event": 0.70,
        "loop": 0.10,
        "open": -0.21,
        "uncalled": 0.00,
        "silent": -1.44,
        "unknown": -1.00,
        "command": -2.67,
        "definition": -2.24,
    },
    "key": {
        "new": 0.85,
        "event": 0.45,
        "adds": 0.51,
        "narrowed": 0.25,
        "caller": -0.05,
        "derived": -0.38,
        "stores": -0.60,
        "checked": -0.65,
        "unknown": -0.92,
    },
    "word": {
        "id": 0.73,
        "none": 0.00,
        "other": 0.16,
        "kind": -1.30,
    },
    "removal": {
        "none": 0.40,
        "never": 0.00,
        "end": 0.08,
        "lazy": 0.01,
        "event": -0.72,
        "public": -0.24,
        "escapes": -0.33,
        "guessed": -0.91,
        "paired": -2.80,
    },
    "intent": {
        "cap": 1.06,
        "age": 0.73,
        "status": 0.34,
        "part": 0.04,
        "none": 0.00,
    },
    "what": {
        "work": 0.63,
        "made": 0.33,
        "value": 0.27,
        "item": 0.00,
        "member": 0.04,
        "inner": -0.25,
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
