"""Translates errors of psycopg and of the server: the address, what happened, the next step."""

from __future__ import annotations

from typing import Any

from floodline.errors import FloodlineError, StoreCorrupt, StoreUnavailable, TooLarge
from floodline.stores._server.addresses import conceal, mask

_SAID = {
    "25006": "only reads: it is a standby, or was told so; give the address of the primary, or "
    "target_session_attrs=read-write with all addresses",
    "28": "does not accept the user or the password",
    "3D000": "has no such database; create it",
    "42501": "does not allow this user what floodline needs; let somebody who may create the "
    "schema, and grant its use",
    "53100": "has no disk space left; free some, nothing was lost",
    "53200": "is out of memory; look at its load",
    "53300": "has no connection left; raise max_connections, or put a pool in front of it",
    "53": "is short of resources; look at its load",
    "55P03": "is locked by somebody else; look at pg_locks",
    "57014": "cancelled the statement; look at its load and at statement_timeout",
    "57P01": "was shut down by its administrator; try again",
    "57P02": "crashed; try again once it is back",
    "57P03": "is starting up; try again",
    "40": "had to give way to others; try again",
}
_CORRUPT = {"XX001", "XX002", "42P01", "42883", "42703", "3F000"}
_TOO_LARGE = {"54000", "22001"}
_MOVES_ON = ("25006", "57P", "08")


def translate(error: BaseException, url: str) -> FloodlineError:
    """Return our error for one of psycopg's, with the original as its cause."""
    mine = _translated(error, url)
    mine.__cause__ = error
    return mine


def _translated(error: BaseException, url: str) -> FloodlineError:
    state: str = getattr(error, "sqlstate", None) or _state_in(str(error))
    where = repr(mask(url))
    text = " ".join(conceal(str(error), url).split())
    said = f" ({type(error).__name__}{f' {state}' if state else ''}: {text})"
    for known in (state, state[:2]):
        if known in _SAID:
            return StoreUnavailable(f"{where} {_SAID[known]}{said}")
    if state in _CORRUPT:
        return StoreCorrupt(
            f"{where} lacks what a store has, or is damaged; give another schema=, or restore a "
            f"backup{said}"
        )
    if state in _TOO_LARGE:
        return TooLarge(f"{where} cannot hold a value of that size; keep sessions smaller{said}")
    if state:
        return StoreUnavailable(f"{where} refused an operation{said}")
    return StoreUnavailable(
        f"{where} cannot be reached; check that it runs, the address and the network{said}"
    )


def _state_in(text: str) -> str:
    """Return the code of an error while connecting, for which libpq has words only."""
    if 'database "' in text and "does not exist" in text:
        return "3D000"
    words = {
        "too many clients": "53300",
        "too many connections": "53300",
        "remaining connection slots": "53300",
        "is starting up": "57P03",
        "is shutting down": "57P01",
        "password authentication failed": "28P01",
        "does not exist": "28000",  # the role
        "session is read-only": "25006",
    }
    return next((state for said, state in words.items() if said in text), "")


def needs_another_server(error: Any) -> bool:
    """Return True if a new connection may reach a server that does better."""
    return (getattr(error, "sqlstate", None) or "").startswith(_MOVES_ON)
