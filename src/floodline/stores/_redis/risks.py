"""Settings of a server that would lose rows which it has acknowledged."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from floodline import telemetry
from floodline.errors import ConfigError
from floodline.stores._server.addresses import mask


def check_risks(
    facts: Mapping[str, str], ask: Callable[..., list[Any]], url: str, accept_eviction: bool
) -> None:
    """Refuse a server that evicts our rows; warn of one that forgets them when it restarts."""
    policy = facts.get("maxmemory_policy", "noeviction").strip()
    if policy.startswith("allkeys") and not accept_eviction:
        why = (
            f"{mask(url)!r} evicts any key once it is full (maxmemory-policy {policy}), and would "
            "lose sessions without a word; use `CONFIG SET maxmemory-policy noeviction` and the "
            "same line in its configuration"
        )
        if facts.get("maxmemory", "0").strip() != "0":
            raise ConfigError(f"{why}, or give RedisStore(accept_eviction=True)")
        _warn(url, f"{why}; now it has no maxmemory")
    loading = facts.get("loading", "0").strip() != "0"  # one that is says that it has no log
    if facts.get("aof_enabled", "1").strip() == "0" and not loading and _never_saves(ask):
        _warn(
            url,
            f'{mask(url)!r} writes nothing to its disk (appendonly no, save ""), and loses every '
            "session when it restarts; use `CONFIG SET appendonly yes`",
        )


def _never_saves(ask: Callable[..., list[Any]]) -> bool:
    with suppress(Exception):  # a user who may not ask is not told
        return bool(ask(("CONFIG", "GET", "save"))[0][1] == b"")
    return False


def _warn(url: str, why: str) -> None:
    telemetry.emit("store_at_risk", mask(url), why=why)
    warnings.warn(why, RuntimeWarning, stacklevel=2)
