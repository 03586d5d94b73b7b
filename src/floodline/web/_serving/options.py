"""What `floodline serve` was asked for, checked before anything is opened."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from floodline._service import Limits, Tenants
from floodline._service._http.guard import Door
from floodline.errors import ConfigError

PORT = 7358


@dataclass(slots=True, frozen=True, kw_only=True)
class Options:
    """How to listen, and for whom."""

    limits: Limits = field(default_factory=Limits)
    tenants: Tenants = field(default_factory=Tenants)
    host: str = "127.0.0.1"
    port: int = PORT
    workers: int = 1
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    trust_proxy: bool = False
    access_log: bool = True

    def __post_init__(self) -> None:
        if not self.is_local and self.tenants.open:
            raise ConfigError(
                f"--host {self.host} can be reached from other machines, so it needs tokens: give "
                "--tokens FILE or FLOODLINE_SERVE_TOKENS, or listen on 127.0.0.1"
            )
        if not self.tenants.open and not self.tenants.names:
            raise ConfigError("the tokens name no tenant; add a TENANT:TOKEN besides admin")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("--tls-cert and --tls-key belong together; give both, or neither")
        if self.workers > 1 and self.limits.store.startswith("memory:"):
            raise ConfigError(
                f"--store {self.limits.store} is in the memory of one process, and --workers "
                f"{self.workers} are several; give another store, or one worker"
            )
        if self.tls_cert is not None and self.tls_key is not None:
            _check_certificate(self.tls_cert, self.tls_key)

    @property
    def is_local(self) -> bool:
        """Return True if only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def door(self) -> Door:
        """Whom the service answers."""
        everything = "*" in self.allow_hosts
        return Door(
            None if everything else (*self.allow_hosts, self.host),
            self.allow_origins,
            self.is_local,
            self.trust_proxy,
        )


def _check_certificate(cert: Path, key: Path) -> None:
    for file in (cert, key):
        if not file.is_file():
            raise ConfigError(f"{file} is not a file; give the PEM files of --tls-cert, --tls-key")
    try:  # an empty password, or OpenSSL would ask for one
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--tls-cert {cert} and --tls-key {key} cannot be used ({error}); give a chain and its "
            "unencrypted key, both in PEM"
        ) from error
