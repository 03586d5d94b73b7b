"""`floodline store`: look after the sessions in a store, and move them to another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import click

from floodline._units import format_size, parse_duration
from floodline.cli._store.output import (
    Line,
    clean,
    data_of,
    open_at,
    progress,
    rows_of,
    shown,
    state_of,
    write_json,
    write_table,
)
from floodline.errors import StoreError, UnreadableRecord
from floodline.stores import Kept, Record, unseal
from floodline.stores._copying import all_ids, all_names, all_rows, copy_sessions, is_begun
from floodline.stores._rows.log import is_refused_rows

_PURGED = 200
_DAMAGED = _LEFT = 1

_form = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="Output format.",
)  # fmt: skip
_name = click.option("--name", help="Only the sessions of this name.")
_names = click.option("--name", "names", multiple=True, help="Only this name; may be repeated.")
_limit = click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most this many."
)
_store = click.argument("store", metavar="STORE")


@click.group("store")
def command() -> None:
    """Look after a store of sessions.

    STORE is a URL (sqlite:///agent.db, redis://…, postgresql://…) or the path of a SQLite file.
    What sessions contain is shown only where you ask for it.
    """


@command.command("ls")
@_store
@_name
@click.option("--after", default="", help="Begin after this id.")
@_limit
@_form
def ls(store: str, name: str | None, after: str, limit: int, form: str) -> None:
    """List the names in a store, or with --name its sessions."""
    with open_at(store) as opened:
        if name is None:
            lines = [{"name": one, "sessions": opened.count(one)} for one in all_names(opened)]
            stats = opened.stats().as_dict()
        else:
            found = opened.ids(name, after=after, limit=limit)
            lines = [_line(opened, name, one) for one in found]
            stats = {}
    if form == "json":
        write_json({"store": shown(store), "stats": stats, "sessions" if name else "names": lines})
        return
    if stats:
        click.echo(
            f"{clean(shown(store))}: {stats['rows']} sessions ({format_size(stats['row_bytes'])}), "
            f"{stats['log_rows']} log rows ({format_size(stats['log_bytes'])}), "
            f"{stats['leases']} in use, {stats['conflicts']} conflicts, "
            f"{stats['quarantined']} in quarantine"
        )
    write_table(lines, empty="no sessions")
    if name is not None and len(lines) == limit:
        click.echo(f"… more with --after {clean(lines[-1]['id'])!r}")


def _line(opened: Any, name: str, id: str) -> Line:
    record = opened.load(name, id)
    if record is None:
        return {"id": id, "version": 0, "bytes": 0, "log rows": 0}
    rows = opened.count_rows(name, id)
    return {"id": id, "version": record.version, "bytes": len(record.envelope), "log rows": rows}


@command.command("show")
@_store
@click.argument("name")
@click.argument("id")
@click.option("--state", is_flag=True, help="Show the state, in clear text.")
@click.option("--log", help="List the rows of this log, newest first.")
@click.option("--data", is_flag=True, help="Show what the rows of --log hold, in clear text.")
@_limit
@_form
def show(
    store: str,
    name: str,
    id: str,
    state: bool,
    log: str | None,
    data: bool,
    limit: int,
    form: str,
) -> int:
    """Show one session: its version, size, checksum and logs."""
    with open_at(store) as opened:
        record = opened.load(name, id)
        if record is None:
            raise click.UsageError(f"there is no session {id!r} of {name!r} in {shown(store)}")
        logs = [
            {"log": one.log, "rows": one.rows, "bytes": one.bytes} for one in opened.logs(name, id)
        ]
        rows: list[Line] = []
        if log is not None:
            for row in opened.rows(name, id, log, limit=limit, newest_first=True):
                line = {"number": row.number, "key": row.key, "bytes": len(row.data), "at": row.at}
                rows.append(line | ({"data": data_of(row.data)} if data else {}))
        problem = _problem(opened, name, id, record)
    told: Line = {"name": name, "id": id, "version": record.version}
    told |= {"bytes": len(record.envelope), "problem": problem, "logs": logs}
    if log is not None:
        told["rows"] = rows
    if state and not problem:
        told["state"] = state_of(record.envelope) if record.envelope else None
    if form == "json":
        write_json(told)
    else:
        _write_session(told)
    return _DAMAGED if problem else 0


def _write_session(told: Line) -> None:
    click.echo(
        f"session {clean(told['id'])!r} of {clean(told['name'])!r}: version {told['version']}, "
        f"{format_size(told['bytes'])}, {clean(told['problem']) or 'readable'}"
    )
    write_table(told["logs"], empty="no logs")
    if "rows" in told:
        click.echo()
        write_table(told["rows"], empty="no rows")
    if "state" in told:
        write_json(told["state"])


def _problem(opened: Any, name: str, id: str, record: Record) -> str:
    """Return why a record cannot be read, or nothing."""
    if is_begun(opened, name, id, record):
        return ""
    try:
        unseal(record.envelope)
    except UnreadableRecord as error:
        return str(error)
    return ""


@command.command("check")
@_store
@_names
@_form
def check(store: str, names: tuple[str, ...], form: str) -> int:
    """Read all sessions and rows, and compare checksums.

    Exit status 1 if any is damaged.
    """
    damaged: list[Line] = []
    seen: Counter[str] = Counter()
    with open_at(store) as opened:
        wanted = list(names) or list(all_names(opened))
        with progress("check", sum(opened.count(name) for name in wanted)) as step:
            for name in wanted:
                for one in all_ids(opened, name):
                    problem = _check(opened, name, one, seen)
                    if problem:
                        damaged.append({"name": name, "id": one, "problem": problem})
                    step()
    if form == "json":
        write_json({"store": shown(store), **seen, "damaged": damaged})
    else:
        if damaged:
            write_table(damaged, empty="")
        click.echo(
            f"{seen['sessions']} sessions and {seen['rows']} rows read, {len(damaged)} damaged"
        )
    return _DAMAGED if damaged else 0


def _check(opened: Any, name: str, id: str, seen: Counter[str]) -> str:
    try:
        record = opened.load(name, id)
        if record is None:
            return ""  # deleted in the meantime
        seen["sessions"] += 1
        for _ in all_rows(opened, name, id):
            seen["rows"] += 1
    except StoreError as error:
        return str(error)
    return _problem(opened, name, id, record)


@command.command("purge")
@_store
@click.argument("name")
@click.option("--unused", required=True, help="Delete what was not used for this long: '90 d'.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_form
def purge(store: str, name: str, unused: str, yes: bool, form: str) -> int:
    """Delete sessions that were not used for a while.

    Their rows go with them. A session in use is not deleted.
    """
    seconds = parse_duration(unused, "--unused")
    with open_at(store) as opened:
        count = opened.count(name)
        question = f"Delete those of the {count} sessions of {name!r} unused for {unused}?"
        if not yes and not click.confirm(question, err=True):
            click.echo("nothing was deleted", err=True)
            return _LEFT
        gone = 0
        with progress("purge", count) as step:
            while ids := opened.purge(name, unused=seconds, limit=_PURGED):
                gone += len(ids)
                for _ in ids:
                    step()
    if form == "json":
        write_json({"store": shown(store), "name": name, "deleted": gone})
    else:
        click.echo(f"{gone} of {count} sessions of {clean(name)!r} were deleted")
    return 0


@command.command("conflicts")
@_store
@_name
@_limit
@click.option("--data", is_flag=True, help="Show what was refused, in clear text.")
@_form
def conflicts(store: str, name: str | None, limit: int, data: bool, form: str) -> None:
    """List the writes that were refused, newest first."""
    _write_kept(store, data, form, "conflicts", lambda opened: opened.conflicts(name, limit=limit))


@command.command("quarantine")
@_store
@_name
@_limit
@click.option("--data", is_flag=True, help="Show the bytes that could not be read.")
@_form
def quarantine(store: str, name: str | None, limit: int, data: bool, form: str) -> None:
    """List the records that could not be read, newest first."""
    _write_kept(
        store, data, form, "quarantine", lambda opened: opened.quarantined(name, limit=limit)
    )


def _write_kept(
    store: str, data: bool, form: str, what: str, ask: Callable[[Any], list[Kept]]
) -> None:
    with open_at(store) as opened:
        found = ask(opened)
    lines = []
    for kept in found:
        line: Line = {"at": kept.at, "name": kept.name, "id": kept.id, "why": kept.why}
        line["bytes"] = len(kept.envelope)
        lines.append(line | ({"data": _content(kept)} if data else {}))
    if form == "json":
        write_json({"store": shown(store), what: lines})
    else:
        write_table(lines, empty=f"no {what}" if what == "conflicts" else "nothing in quarantine")


def _content(kept: Kept) -> Any:
    if is_refused_rows(kept.why):
        return rows_of(kept.envelope)
    try:
        return state_of(kept.envelope)
    except UnreadableRecord:
        return kept.envelope.hex()


@command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@_names
@click.option("--replace", is_flag=True, help="Overwrite sessions that TO has with other bytes.")
@_form
def copy(source: str, target: str, names: tuple[str, ...], replace: bool, form: str) -> int:
    """Copy sessions with their rows to another store.

    Each copy is compared with its session by a checksum. It may be interrupted and run again: what
    arrived is not copied twice. Exit status 1 if a session was left out. Conflicts and the
    quarantine stay where they are; the summary says how many there are.
    """
    outcomes: Counter[str] = Counter()
    left: list[Line] = []
    rows = size = 0
    with open_at(source) as given, open_at(target, create=True) as taker:
        wanted = list(names) or list(all_names(given))
        figures = given.stats()
        in_use, behind = figures.leases, (figures.conflicts, figures.quarantined)
        with progress("copy", sum(given.count(name) for name in wanted)) as step:
            for one in copy_sessions(given, taker, names=wanted, replace=replace):
                outcomes[one.outcome] += 1
                rows, size = rows + one.rows, size + one.bytes
                if one.outcome not in ("copied", "same", "gone"):
                    line = {"name": one.name, "id": one.id, "outcome": one.outcome}
                    left.append(line | {"why": one.why})
                step()
    if form == "json":
        counts = {"copied": outcomes["copied"], "same": outcomes["same"], "in_use": in_use}
        counts |= {"conflicts_left": behind[0], "quarantine_left": behind[1]}
        write_json(counts | {"rows": rows, "bytes": size, "left": left})
    else:
        if left:
            write_table(left, empty="")
        click.echo(
            f"{outcomes['copied']} sessions copied with {rows} rows ({format_size(size)}), "
            f"{outcomes['same']} were there already, {len(left)} left out"
        )
        if any(behind):
            click.echo(
                f"not copied: {behind[0]} conflicts and {behind[1]} in quarantine; see `floodline "
                f"store conflicts` and `quarantine` of {clean(shown(source))}",
                err=True,
            )
        if in_use:
            click.echo(
                f"{in_use} sessions are in use in {clean(shown(source))}; run it again when they "
                "are at rest",
                err=True,
            )
    return _LEFT if left else 0
