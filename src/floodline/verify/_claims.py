"""Reads the file of claims: announced fixes, each with the code that is said to contain it."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

from floodline.errors import ConfigError


class Policy(StrEnum):
    """How room is made for a new item."""

    LRU = "lru"
    OLDEST = "oldest"
    FIFO = "fifo"
    WINDOW = "window"
    BATCH = "batch"
    REJECT = "reject"


POLICIES = tuple(policy.value for policy in Policy)
SPELLINGS = {"oldest-first": "oldest", "rolling": "window", "rolling-window": "window"}
KEYS = ("file", "symbol", "limit", "policy", "name", "make", "feed")
REQUIRED = ("file", "symbol", "limit", "policy")


class Claim(NamedTuple):
    """One announced fix: this symbol holds at most `limit` items, and makes room by `policy`.

    `symbol` may name several containers, with commas between them; all must keep the limit.
    """

    name: str
    file: Path
    symbol: str
    limit: int
    policy: str
    make: str | None = None
    feed: str | None = None

    @property
    def symbols(self) -> list[str]:
        """Return the symbols that the claim names."""
        return [part.strip() for part in self.symbol.split(",")]


def load(path: Path) -> list[Claim]:
    """Read the claims of a TOML file; their files are relative to it. Mistakes raise."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # bad TOML, and bad UTF-8
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    _known(table, ["claim"], f"{path}: ")
    entries = table.get("claim")
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{path} has no claims; add one under [[claim]]")
    return [_claim(entry, f"{path}: claim {n}: ", path) for n, entry in enumerate(entries, 1)]


def _known(table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}"
            raise ConfigError(f"{where}unknown key {key}; {hint}")


def _claim(entry: Any, where: str, path: Path) -> Claim:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}{entry!r} is not a table; write [[claim]]")
    _known(entry, KEYS, where)
    missing = [key for key in REQUIRED if key not in entry]
    if missing:
        raise ConfigError(f"{where}{missing[0]} is missing; a claim needs {', '.join(REQUIRED)}")
    symbol = _symbols(entry["symbol"], where)
    for key in KEYS:
        if key not in ("limit", "symbol") and not _is_text(entry.get(key, "-")):
            raise ConfigError(f"{where}{key}={entry[key]!r} must be a non-empty string")
    limit = entry["limit"]
    if type(limit) is not int or limit < 1:
        raise ConfigError(f"{where}limit={limit!r} must be a whole number of at least 1")
    _code(entry.get("make"), f"{where}make", "eval")
    _code(entry.get("feed"), f"{where}feed", "exec")
    name: str = entry.get("name", symbol)
    return Claim(
        name, path.parent / entry["file"], symbol, limit,
        _policy(entry["policy"], where), entry.get("make"), entry.get("feed"),
    )  # fmt: skip


def _symbols(given: Any, where: str) -> str:
    """Return the symbols as one text: `"A.x"`, or `["A.x", "A.y"]` for several containers."""
    parts = given if isinstance(given, list) else [given]
    if not parts or not all(_is_text(part) for part in parts):
        raise ConfigError(
            f"{where}symbol={given!r} must be a non-empty string, or a list of such strings"
        )
    return ", ".join(part.strip() for text in parts for part in text.split(",") if part.strip())


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _policy(given: str, where: str) -> str:
    plain = "-".join(given.lower().replace("_", " ").replace("-", " ").split())
    policy = SPELLINGS.get(plain, plain)
    if policy not in POLICIES:
        near = get_close_matches(plain, [*POLICIES, *SPELLINGS], 1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(POLICIES)}"
        raise ConfigError(f"{where}unknown policy {given!r}; {hint}")
    return policy


def _code(given: str | None, what: str, mode: Literal["eval", "exec"]) -> None:
    if given is None:
        return
    try:
        ast.parse(given.replace("{i}", "1").strip(), mode=mode)
    except (SyntaxError, ValueError) as error:
        kind = "expression" if mode == "eval" else "expression or statement"
        raise ConfigError(f"{what}={given!r} is not a Python {kind}: {error}") from error
