"""Addresses of servers, without their passwords wherever somebody may read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any
from urllib.parse import unquote

from floodline.errors import ConfigError

_SECRETS = re.compile(
    r"([?&][^=&#]*(?:password|passwd|pwd|secret|token)[^=&#]*=)[^&#]*", re.IGNORECASE
)
HIDDEN = "***"


def mask(url: str) -> str:
    """Return the URL with its passwords hidden, as far as the last `@` if it is ambiguous."""
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    rest = _SECRETS.sub(rf"\g<1>{HIDDEN}", rest)
    user, at, tail = rest.rpartition("@")
    if at and ":" in user:
        rest = f"{user.partition(':')[0]}:{HIDDEN}@{tail}"
    return f"{scheme}://{rest}"


def secrets_of(url: str) -> list[str]:
    """Return what `mask` hides, as written and as sent, the longest first."""
    rest = url.partition("://")[2]
    found = {match[0].partition("=")[2] for match in _SECRETS.finditer(rest)}
    user, at, _ = rest.rpartition("@")
    if at:
        found.add(user.partition(":")[2])
    found |= {unquote(secret) for secret in found}
    return sorted(filter(None, found), key=len, reverse=True)


def conceal(text: str, url: str) -> str:
    """Return what a driver says about a server, without what must not be printed."""
    text = text.replace(url, mask(url))
    for secret in secrets_of(url):
        text = text.replace(secret, HIDDEN)
    return text


def check_scheme(url: object, schemes: Sequence[str], example: str) -> None:
    """Raise `ConfigError` unless this is a URL of one of the schemes."""
    if not isinstance(url, str) or not url.startswith(tuple(f"{one}://" for one in schemes)):
        shown = mask(url) if isinstance(url, str) else url
        raise ConfigError(f"{shown!r} is not an address that works here; give {example}")


def need(module: str, extra: str, what: str) -> Any:
    """Import a driver; the error says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{what} needs {module}, which cannot be imported ({error}); "
            f"install it with: pip install 'floodline[{extra}]'"
        ) from error
