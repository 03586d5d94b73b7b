"""Finds pairs in one function: an entry is added, something may fail, the entry is removed."""

from __future__ import annotations

from collections import defaultdict

from floodline.scan._facts.model import Change, Pair, Risk
from floodline.scan._facts.references import Reference

SAFE = {"finally", "except"}
WORST = ("return", "raise", "await", "yield", "call")


def pairs_of(changes: list[Change], risks: list[tuple[str, int, Risk]]) -> list[Pair]:
    """Find what one function adds and removes, with something in between that may fail."""
    by_place: dict[tuple[str, Reference, int], list[Change]] = defaultdict(list)
    for change in changes:
        if change.function and change.verb in ("grow", "shrink"):
            by_place[change.function, change.ref, change.depth].append(change)
    risky: dict[str, list[tuple[int, Risk]]] | None = None
    found = []
    for (function, _, _), group in by_place.items():
        verbs = {change.verb for change in group}
        if len(verbs) < 2 or any(c.verb == "shrink" and c.marks & SAFE for c in group):
            continue
        if risky is None:
            risky = defaultdict(list)
            for name, line, kind in risks:
                risky[name].append((line, kind))
        pair = _first_pair(group, risky[function])
        if pair:
            found.append(pair)
    return found


def _first_pair(group: list[Change], risks: list[tuple[int, Risk]]) -> Pair | None:
    for added in group:
        if added.verb != "grow" or not added.key_text or added.marks & SAFE:
            continue
        for removed in group:
            same = removed.verb == "shrink" and removed.key_text == added.key_text
            if not same or removed.at.line <= added.at.end_line:
                continue
            earlier = [
                c.at.line for c in group if c.verb == "shrink" and c.at.line < removed.at.line
            ]
            first = min((line for line in earlier if line > added.at.line), default=removed.at.line)
            between = [r for r in risks if added.at.end_line < r[0] < first]
            if between and not removed.marks - added.marks:
                line, kind = min(between, key=lambda r: WORST.index(r[1]))
                return Pair(
                    added.ref, added.depth, added.at, line, kind, removed.at.line,
                    added.function, added.key, added.op,
                )  # fmt: skip
    return None
