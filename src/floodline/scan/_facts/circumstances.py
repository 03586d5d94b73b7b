"""How a call stands: in loops, in arms of choices, behind guards."""

from __future__ import annotations


def standing(marks: frozenset[str]) -> tuple[str, str, str]:
    """Return how a call stands: in which loop, in which arms of choices, behind which guard."""
    repeats = next((mark for mark in ("once", "while", "for") if mark in marks), "")
    if repeats == "while" and any(mark[:8] == "forever:" for mark in marks):
        repeats = "forever"
    elif repeats == "while" and "serves" in marks:
        repeats = "serves"
    elif repeats == "for":
        repeats = next((mark for mark in marks if mark[:5] == "over:"), repeats)
    guard = next((mark for mark in ("finally", "except", "branch") if mark in marks), "")
    arm = ""
    if "branch" in marks:
        arm = "\n".join(sorted(mark for mark in marks if mark[:4] == "arm:"))
    return repeats, arm, guard
