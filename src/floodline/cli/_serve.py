"""`floodline serve`: sessions over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from floodline._service import Limits, Tenants
from floodline._service._limits import OPTIONS
from floodline.cli._store.output import shown
from floodline.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

_ALIASES = {"ttl": ("--session-ttl",)}


def _limits(function: F) -> F:
    """Add a flag for each limit."""
    for option in reversed(OPTIONS):
        default = "never" if option.default is None else option.default
        text = f"{option.means[0].upper()}{option.means[1:]}. [default: {default}]"
        flags = (option.flag, *_ALIASES.get(option.name, ()))
        function = click.option(*flags, option.name, metavar=option.takes.upper(), help=text)(
            function
        )
    return function


@click.command("serve")
@_limits
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=7358,
    show_default=True,
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that serve on the same port.",
)
@click.option(
    "--tokens",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with a TENANT:TOKEN per line; the tenant admin may read lists and figures. "
    "FLOODLINE_SERVE_TOKENS takes the same, separated by commas.",
)
@click.option(
    "--allow-host", multiple=True, help="A host name that clients may use for it; may be repeated."
)
@click.option(
    "--allow-origin", multiple=True, help="A site whose scripts may use it; may be repeated."
)
@click.option("--tls-cert", type=click.Path(path_type=Path), help="Certificate chain (PEM).")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Its private key (PEM).")
@click.option("--trust-proxy", is_flag=True, help="Log the client named by X-Forwarded-For.")
@click.option(
    "--access-log/--no-access-log", default=True, show_default=True, help="Log a line per request."
)
def command(
    host: str,
    port: int,
    workers: int,
    tokens: Path | None,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    tls_cert: Path | None,
    tls_key: Path | None,
    trust_proxy: bool,
    access_log: bool,
    **limits: Any,
) -> int:
    """Serve sessions over HTTP, to clients of OpenAI's Conversations API.

    Items are kept in --store exactly as received; each conversation has a bounded window over
    them. Limits can also be set in the table [tool.floodline.serve] of the settings file, and by
    FLOODLINE_SERVE_… in the environment. Tokens are never given on the command line.
    """
    try:
        from floodline.web._serving.command import run_service
        from floodline.web._serving.options import Options
    except ImportError as error:
        raise ConfigError(f"{error}") from error
    options = Options(
        limits=Limits.read(limits),
        tenants=Tenants.read(tokens),
        host=host,
        port=port,
        workers=workers,
        allow_hosts=allow_host,
        allow_origins=allow_origin,
        tls_cert=tls_cert,
        tls_key=tls_key,
        trust_proxy=trust_proxy,
        access_log=access_log,
    )
    return run_service(options, _say, store=shown(options.limits.store))


def _say(words: str) -> None:
    with suppress(OSError):
        click.echo(f"floodline: {words}", err=True)
