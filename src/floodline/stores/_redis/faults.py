"""Translates errors of redis-py and of the server: the address, what happened, the next step."""

from __future__ import annotations

from typing import Any

from floodline.errors import FloodlineError, StoreCorrupt, StoreUnavailable
from floodline.stores._server.addresses import conceal, mask, need

_SAID = {
    "OOM": "is out of memory and refuses to grow; raise maxmemory, or free some",
    "READONLY": "is a read-only replica; give the address of the primary",
    "LOADING": "is still loading its data; try again",
    "MASTERDOWN": "has lost its primary; try again once it is back",
    "NOREPLICAS": "has fewer replicas than min-replicas-to-write; bring them back",
    "MISCONF": "cannot save to its disk and refuses to write; look at its log",
    "BUSY": "is busy with a script of somebody else",
    "CLUSTERDOWN": "belongs to a cluster that is down",
    "MOVED": "is a node of a cluster, which needs a client of its own; give a server of its own",
    "CROSSSLOT": "is a node of a cluster; give a server of its own",
    "NOAUTH": "wants a password; put user and password into the URL",
    "WRONGPASS": "does not accept the user or the password",
    "NOPERM": "does not allow this user the commands or keys of floodline",
}
_MOVES_ON = ("READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "MOVED")


def translate(error: BaseException, url: str) -> FloodlineError:
    """Return our error for one of the driver's, with the original as its cause."""
    mine = _translated(error, url)
    mine.__cause__ = error
    return mine


def _translated(error: BaseException, url: str) -> FloodlineError:
    errors: Any = need("redis.exceptions", "redis", mask(url))
    text = conceal(str(error), url)
    said = f" ({type(error).__name__}: {text})"
    where = repr(mask(url))
    if isinstance(error, errors.TimeoutError):
        return StoreUnavailable(f"{where} did not answer in time; look at its load{said}")
    if "max number of clients" in text:
        return StoreUnavailable(f"{where} has no connection left; raise its maxclients{said}")
    code = code_of(error)
    if code in _SAID:
        return StoreUnavailable(f"{where} {_SAID[code]}{said}")
    if code == "WRONGTYPE":
        return StoreCorrupt(
            f"{where} has other data under floodline's keys; give another prefix={said}"
        )
    if "Authentication required" in text:
        return StoreUnavailable(f"{where} {_SAID['NOAUTH']}{said}")
    if isinstance(error, (errors.AuthenticationError, errors.AuthorizationError)):
        return StoreUnavailable(f"{where} does not accept the user or the password{said}")
    if isinstance(error, errors.ResponseError):
        return StoreUnavailable(f"{where} refused an operation{said}")
    return StoreUnavailable(
        f"{where} cannot be reached; check that it runs, the address and the network{said}"
    )


def code_of(error: BaseException) -> str:
    """Return the code at the beginning of the server's answer, of which redis-py may drop it."""
    name = type(error).__name__
    by_class = {
        "ReadOnlyError": "READONLY",
        "OutOfMemoryError": "OOM",
        "BusyLoadingError": "LOADING",
        "MasterDownError": "MASTERDOWN",
        "ClusterDownError": "CLUSTERDOWN",
        "MovedError": "MOVED",
        "NoPermissionError": "NOPERM",
        "NoScriptError": "NOSCRIPT",
    }
    if name in by_class:
        return by_class[name]
    words = str(error).removeprefix("-").split(maxsplit=1)
    code = words[0] if words else ""
    if code == "OOM" or "-OOM " in str(error):
        return "OOM"
    return code if code.isupper() else ""


def needs_another_server(error: BaseException) -> bool:
    """Return True if a new connection may reach a server that does better."""
    return code_of(error) in _MOVES_ON
