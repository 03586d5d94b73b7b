"""Saving: encode, compare, write under fence and version, and find out how it went."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from floodline.errors import CodecError, SaveFailed, SessionConflict
from floodline.sessions._flows.guarded_table import Core
from floodline.sessions._flows.leases import acquire, give_lease_back, own_write
from floodline.sessions._flows.requests import Flow, StoreCall, UserCall
from floodline.sessions._table.entry import Entry
from floodline.stores import Append, NewRow, seal
from floodline.stores._encoding.codec import code_and_find

NewRows = tuple[str, list[tuple[str, bytes, int | None]]]


def save(core: Core, entry: Entry, *, release: bool) -> Flow[None]:
    """Write the state of a leased entry if it changed, and give the lease back if asked to.

    Raises `SaveFailed`, `SessionConflict` or `CodecError`; the entry then stays dirty.
    """
    entry.dirty = True
    try:
        payload, owners = code_and_find(core.codec.encode, entry.state)
        adopt(core, entry.id, owners)
        if owners and (yield from deliver(core, entry.id, owners)):
            payload, owners = code_and_find(core.codec.encode, entry.state)
        if not entry.checked:
            core.codec.check(entry.state, payload)
            entry.checked = True
        digest = blake2b(payload, digest_size=16).digest()
        if entry.write_id is not None:
            # an unanswered write may have ended the lease
            yield from acquire(core, entry, known=entry.version, until=core.clock())
            yield from own_write(core, entry)
        rows = _rows_of(core, owners)
        appends = list(entry.rows)
        if digest == entry.digest and entry.version and not rows and not appends:
            yield from _keep(core, entry, release)
        else:
            appends += [
                Append(log, [NewRow(*row) for row in new]) for _, logs in rows for log, new in logs
            ]
            waiting = len(entry.rows)
            yield from _write(core, entry, payload, digest, release, appends)
            del entry.rows[:waiting]
            for owner, written in rows:
                owner.__floodline_rows_saved__(written)
    except (SessionConflict, CodecError):
        entry.failed = True
        core.counters.save_errors += 1
        raise
    except Exception as error:
        entry.failed = True
        core.counters.save_errors += 1
        raise SaveFailed(
            f"session {entry.id!r} could not be saved ({type(error).__name__}: {error}); it stays "
            "in memory and will be retried; see the cause, and `unsaved` in stats()"
        ) from error
    entry.dirty = entry.failed = False


def adopt(core: Core, id: str, parts: Sequence[Any]) -> None:
    """Bind parts of a state to their session, and let them wait for its save if it has one."""
    for part in parts:
        if hasattr(type(part), "__floodline_bind__"):
            part.__floodline_bind__(core.row_store, core.policy.name, id)
        if core.policy.stored and hasattr(type(part), "__floodline_defer__"):
            part.__floodline_defer__()


def deliver(core: Core, id: str, owners: Sequence[Any]) -> Flow[bool]:
    """Hand over what waits for an archive outside the store; return True if any of it is gone.

    What the archive refuses stays, and is saved with the state.
    """
    went = False
    for owner in owners:
        delivery = getattr(type(owner), "__floodline_delivery__", None)
        call = delivery(owner) if delivery is not None else None
        if call is not None:
            try:
                went = (yield UserCall(call, blocks=True)) or went
            except Exception as error:  # no thread for it, say
                core.hook_failed("archive", id, error)
    return went


def _keep(core: Core, entry: Entry, release: bool) -> Flow[None]:
    core.counters.unchanged += 1
    if release:
        yield from give_lease_back(core, entry)


def _rows_of(core: Core, owners: list[Any]) -> list[tuple[Any, list[NewRows]]]:
    """Return what parts of the state want written to the row logs of their session."""
    if core.row_store is None:
        return []  # they wait, and are saved with the state
    found = []
    for owner in owners:
        rows: list[NewRows] = owner.__floodline_rows__()
        if rows:
            found.append((owner, rows))
    return found


def _write(
    core: Core,
    entry: Entry,
    payload: bytes,
    digest: bytes,
    release: bool,
    rows: list[Append],
) -> Flow[None]:
    mark = core.codec.mark(entry.state)
    envelope = seal(payload, version=entry.version + 1, codec=mark)
    entry.write_id = write_id = core.new_write_id()  # until we know how it went
    terms = {
        "fence": entry.fence,
        "version": entry.version,
        "write_id": write_id,
        "release": release,
    }
    if rows:  # a store of one's own need not know of them
        terms["rows"] = rows
    try:
        version = yield StoreCall("save", (core.policy.name, entry.id, envelope), terms)
    except SessionConflict:
        entry.write_id = None
        core.counters.conflicts += 1
        raise
    except Exception:
        if (yield from own_write(core, entry)) is None:
            raise
    else:
        entry.version, entry.write_id = version, None
    entry.digest = digest
    core.counters.saved += 1
    weight = len(envelope) if core.hooks.weigh is None else entry.weight
    core.locked(core.written, entry, weight, release)
