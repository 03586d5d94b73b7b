"""What the commands of `floodline store` share: opening a store, tables, and a progress bar."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from floodline._units import format_size
from floodline.stores import Codec, open_store, unpack_rows, unseal
from floodline.stores._server.addresses import mask

Line = dict[str, Any]


def open_at(address: str, *, create: bool = False) -> Any:
    """Open a store by URL, or a SQLite file by its path; a file is created only if asked."""
    url = address
    if "://" not in address:
        path = Path(address)
        if not create and not path.is_file():
            raise click.UsageError(f"{address!r} is not a file; give the path or URL of a store")
        url = f"sqlite:///{path}"
    elif address.startswith("sqlite:///") and not create:
        path = Path(address.removeprefix("sqlite:///"))
        if not path.is_file():
            raise click.UsageError(f"{str(path)!r} is not a file; there is no store at {address}")
    return open_store(url)


def shown(address: str) -> str:
    """Return an address without its passwords."""
    return mask(address)


def clean(text: object) -> str:
    """Return text that cannot move the cursor or change the colours of a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def when(seconds: float) -> str:
    """Return a date as people read it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"


def state_of(envelope: bytes) -> Any:
    """Return the state in an envelope as plain data."""
    return Codec().decode(unseal(envelope))


def rows_of(packed: bytes) -> list[Line]:
    """Return the rows of a refused write."""
    return [
        {"log": log, "key": key, "data": data_of(data)} for log, key, data in unpack_rows(packed)
    ]


def data_of(data: bytes) -> Any:
    """Return what a row holds: msgpack or text if it is either, else its bytes in hexadecimal."""
    try:
        return msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, ValueError):
        pass
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.hex()


def write_json(value: Any) -> None:
    """Print a document; what JSON cannot express is written as text."""
    plain = json.loads(msgspec.json.encode(value, enc_hook=repr))
    click.echo(json.dumps(plain, indent=2, ensure_ascii=False))


def write_table(lines: Sequence[Line], *, empty: str) -> None:
    """Print lines in columns under the names of their fields."""
    if not lines:
        click.echo(empty)
        return
    heads = list(lines[0])
    cells = [[_cell(head, line[head]) for head in heads] for line in lines]
    widths = [max(len(head), *(len(row[n]) for row in cells)) for n, head in enumerate(heads)]
    for row in [heads, *cells]:
        padded = [
            cell.rjust(width) if _is_number(head) else cell.ljust(width)
            for head, cell, width in zip(heads, row, widths, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def _is_number(head: str) -> bool:
    return head in ("sessions", "version", "bytes", "rows", "number", "log rows")


def _cell(head: str, value: Any) -> str:
    if head == "bytes":
        return format_size(value)
    return when(value) if head == "at" else clean(value)


@contextmanager
def progress(what: str, total: int) -> Iterator[Any]:
    """Show a bar on the terminal; yield a function that is called for each step."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
