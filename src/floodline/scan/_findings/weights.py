"""The table that ranks findings, fitted by `benchmarks/scan_precision/refit.py`."""

from __future__ import annotations

# fmt: off
WEIGHTS: dict[str, dict[str, float]] = {
    "life": {
        "kept": 1.00,
        "library": 0.52,
        "unmade": 0.91,
        "handed": 0.07,
        "unknown": -0.20,
        "mixed": -0.05,
        "entry": 0.41,
        "run": -0.29,
        "anew": -1.62,
        "passing": -2.12,
        "scope": -2.12,
    },
    "path": {
        "event": 0.14,
        "loop": -0.13,
        "open": -0.34,
        "uncalled": 0.00,
        "silent": -1.65,
        "unknown": -1.10,
        "command": -3.34,
        "definition": -2.45,
    },
    "key": {
        "new": 0.94,
        "event": 0.13,
        "adds": 0.42,
        "narrowed": 0.21,
        "caller": 0.10,
        "derived": -0.37,
        "stores": -0.53,
        "checked": -0.74,
        "unknown": -0.80,
    },
    "word": {
        "who": 0.79,
        "id": 0.33,
        "none": -0.07,
        "other": 0.00,
        "kind": -1.35,
    },
    "removal": {
        "none": 0.40,
        "never": 0.17,
        "end": 0.18,
        "lazy": -0.03,
        "event": -0.78,
        "public": -0.31,
        "escapes": -0.40,
        "guessed": -0.92,
        "paired": -2.79,
    },
    "intent": {
        "cap": 1.01,
        "age": 0.49,
        "status": 0.28,
        "part": 0.17,
        "none": 0.00,
    },
    "what": {
        "work": 0.36,
        "made": 0.05,
        "value": 0.00,
        "item": -0.34,
        "member": -0.23,
        "inner": -0.46,
    },
    "doubts": {
        "none": 0.65,
        "some": 0.00,
    },
}
# fmt: on
# levels are cuts of the rank
MEDIUM = 36
HIGH = 92
