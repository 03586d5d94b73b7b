"""Who may ask: bearer tokens, each of which names a tenant.

A file has one `TENANT:TOKEN` per line; `FLOODLINE_SERVE_TOKENS` has them separated by commas. The
tenant `admin` may read lists, figures and events, and has no conversations of its own.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from floodline.errors import ConfigError

ADMIN = "admin"
ALONE = ""  # the tenant of a service without tokens
MAX_TENANTS = 1000
LEAST_TOKEN = 8
TOKENS, ADMIN_TOKEN = "FLOODLINE_SERVE_TOKENS", "FLOODLINE_SERVE_ADMIN_TOKEN"

_TENANT = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(slots=True, frozen=True)
class Tenants:
    """The tokens, by digest; without any, everyone is the only tenant and an administrator."""

    digests: tuple[tuple[bytes, str], ...] = ()
    names: tuple[str, ...] = field(default=(ALONE,))

    @classmethod
    def of(cls, pairs: list[tuple[str, str]]) -> Tenants:
        """Return tenants from names and tokens."""
        if not pairs:
            return cls()
        seen: dict[bytes, str] = {}
        for name, token in pairs:
            if not _TENANT.fullmatch(name):
                raise ConfigError(f"tenant {name[:80]!r} must be 1 to 64 letters, digits or _ . -")
            if len(token) < LEAST_TOKEN or not token.isprintable() or " " in token:
                raise ConfigError(
                    f"the token of tenant {name!r} must have at least {LEAST_TOKEN} characters, "
                    "without spaces"
                )
            if seen.setdefault(_digest(token), name) != name:
                raise ConfigError(f"tenants {seen[_digest(token)]!r} and {name!r} share a token")
        names = tuple(sorted({name for name in seen.values() if name != ADMIN}))
        if len(names) > MAX_TENANTS:
            raise ConfigError(f"{len(names)} tenants; at most {MAX_TENANTS}")
        return cls(tuple(seen.items()), names)

    @classmethod
    def read(cls, file: Path | None, environ: Mapping[str, str] | None = None) -> Tenants:
        """Return the tenants of a file and of the environment."""
        environ = os.environ if environ is None else environ
        pairs: list[tuple[str, str]] = []
        if file is not None:
            try:
                lines = file.read_text(encoding="utf-8").splitlines()
            except (OSError, ValueError) as error:
                raise ConfigError(f"--tokens {file} cannot be read: {error}") from error
            pairs += _pairs(lines, str(file))
            if not pairs:
                raise ConfigError(f"--tokens {file} has no TENANT:TOKEN line")
        pairs += _pairs(environ.get(TOKENS, "").split(","), TOKENS)
        if token := environ.get(ADMIN_TOKEN):
            pairs.append((ADMIN, token))
        return cls.of(pairs)

    @property
    def open(self) -> bool:
        """Return True if there are no tokens."""
        return not self.digests

    def tenant_of(self, authorization: str | None) -> str | None:
        """Return the tenant of a header, or None; how long this takes says nothing."""
        if self.open:
            return ALONE
        scheme, _, token = (authorization or "").partition(" ")
        given = _digest(token.strip())
        found = None
        for known, name in self.digests:  # all of them, whichever matches
            if hmac.compare_digest(known, given):
                found = name
        return found if scheme.lower() == "bearer" else None

    def is_admin(self, tenant: str | None) -> bool:
        """Return True if this tenant may see what is about all of them."""
        return self.open or tenant == ADMIN


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _pairs(lines: list[str], where: str) -> list[tuple[str, str]]:
    pairs = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, colon, token = text.partition(":")
        if not colon:
            raise ConfigError(f"{where}, entry {number}: write TENANT:TOKEN")
        pairs.append((name.strip(), token.strip()))
    return pairs
