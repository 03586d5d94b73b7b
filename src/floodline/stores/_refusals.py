"""What all stores share about refused writes: how many bytes they keep, and what they say."""

from __future__ import annotations

KEPT_ROWS = 1_000
KEPT_BYTES = 64 * 1024**2


def why_refused(ours: bool, version: int | str, stored: int | str) -> str:
    """Return why a write was refused; the lease comes first, as it explains the version."""
    if not ours:
        return "the lease was lost to another owner, or the session was closed"
    return f"it was based on version {version}, but the store has {stored or 'none'}"


LOST = why_refused(False, 0, 0)
STALE = why_refused(True, "%s", "%s")  # for servers, which write the versions into it


def conflict_message(name: str, id: str, why: str) -> str:
    """Return what was refused and where its bytes are."""
    return f"session {id!r} of {name!r} was not written: {why}; see store.conflicts({name!r})"


def not_found_message(name: str, id: str) -> str:
    """Return that there is no session to append rows to."""
    return f"there is no session {id!r} of {name!r} to append rows to; use create=True to begin one"
