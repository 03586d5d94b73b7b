"""What all stores agree on: how much refused bytes they keep, and what they say about a refusal."""

from __future__ import annotations

KEPT_ROWS = 1_000
KEPT_BYTES = 64 * 1024**2


def why_refused(ours: bool, version: int, stored: int) -> str:
    """Say why a write does not fit: the lease comes first, as it explains the version."""
    if not ours:
        return "the lease was lost to another owner, or the session was closed"
    return f"it was based on version {version}, but the store has {stored or 'none'}"


def conflict_message(name: str, id: str, why: str) -> str:
    """Say what was refused and where its bytes are."""
    return f"session {id!r} of {name!r} was not written: {why}; see store.conflicts({name!r})"
