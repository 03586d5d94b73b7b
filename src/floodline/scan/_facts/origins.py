"""Where values come from, and which of several origins is widest."""

from __future__ import annotations

OPENNESS = [
    "fresh", "param", "in", "turn", "attr", "call", "loop", "self", "global", "unknown", "enum",
    "type",
]  # fmt: skip
PARTS = 4  # of which a key is made; more say nothing new
DEPENDING = {"param", "in", "turn", "attr", "call", "self", "enum"}
CHAINED = {"param", "in", "turn", "self", "enum"}
_RANKS = {kind: rank for rank, kind in enumerate(OPENNESS)}


def most_open(origins: list[str]) -> str:
    """Of several origins the one with the widest range of values decides.

    A new value decides alone. Of others that depend on who calls or on what is read, several are
    kept, `all:ONE&OTHER`: which of them is open is only seen when the callers are known.
    """
    told = [origin for origin in origins if origin != "const"]  # most are
    if not told:
        return "const"
    if len(told) == 1:
        return told[0]
    widest, rank = "const", len(OPENNESS)
    several: dict[str, None] = {}
    for origin in told:
        for part in parts_of(origin) if origin[:4] == "all:" else (origin,):
            kind = part[: part.find(":")] if ":" in part else part
            found = _RANKS.get(kind, rank)
            if found < rank:
                widest, rank = part, found
            if kind in DEPENDING and len(several) < PARTS:
                several[part] = None
    if rank == _RANKS["fresh"] or len(several) == 1 or not several:
        return widest
    return f"all:{'&'.join(several)}"


def parts_of(origin: str) -> list[str]:
    """Return the origins of which one is made."""
    return origin[4:].split("&") if origin[:4] == "all:" else [origin]


def asked(origin: str, name: str) -> str:
    """Return the origin of an attribute, or of what a call returns, of what has an origin."""
    if origin[:4] == "all:":
        return most_open([asked(part, name) for part in parts_of(origin)])
    if origin.partition(":")[0] in CHAINED:
        return f"{origin}.{name}"
    return ""


def within(origin: str, function: str) -> str:
    """Return an origin of an outer function as an inner one sees it."""
    if "param:" not in origin:
        return origin
    parts = [f"in:{function}|{p}" if p[:6] == "param:" else p for p in parts_of(origin)]
    return most_open(parts)
