"""One proof, and the words for how sure it is."""

from __future__ import annotations

from typing import NamedTuple

PROVED, UNKNOWN, REFUTED, ASSUMED = "proved", "unknown", "refuted", "assumed"


class Proof(NamedTuple):
    """A claim, how sure it is, and the line that shows it (`path:line`)."""

    claim: str
    state: str
    at: str


def place(path: str, line: int) -> str:
    """Write a place as editors read it."""
    return f"{path}:{line}"
