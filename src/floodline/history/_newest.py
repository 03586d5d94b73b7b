"""The newest messages: read without parting an atom, or taken back one by one."""

from __future__ import annotations

from typing import Any

from floodline.history._atoms import AS_APPENDED, OURS, Entry
from floodline.history._formats.markers import unmarked
from floodline.history._formats.shapes import Kind, Message, read
from floodline.history._keeper import Keeper
from floodline.history._ledger import Ledger

_KIND, _TURN, _ENTRIES, _OPEN = 0, 2, 3, 4  # of an atom's dump
_MESSAGE, _SEQ, _ORIGIN = 0, 3, 4  # of an entry's dump


def newest_messages(ledger: Ledger, limit: int) -> list[Message]:
    """Return the last whole atoms that have at most `limit` messages together."""
    found: list[Message] = []
    for section in reversed(list(ledger.sections())):
        entries = [section] if isinstance(section, Entry) else section.entries
        if len(found) + len(entries) > limit:
            break
        found[:0] = [unmarked(entry.message) for entry in entries]
    return found


def pop_newest(keeper: Keeper) -> Message | None:
    """Take the newest message out of the list, the outbox or the archive."""
    keeper.apply_summary()
    box = keeper.outbox
    stored = max((e.seq for e in keeper.ledger.entries() if e.origin != OURS), default=-1)
    owed = max((seq for seq, _ in box.owed), default=-1) if box is not None else -1
    if stored < 0 and owed < 0:
        return _pop_archived(keeper, None)
    seq = max(stored, owed)
    message = None
    if owed == seq and box is not None:
        message = box.take_back(seq)
    if stored == seq:
        appended = _take_out(keeper, seq)
        if message is None:
            message = appended or _pop_archived(keeper, seq)
    keeper._count_left("closed", 1)
    if message is not None:
        keeper.forget_id(message)
    return message


def _pop_archived(keeper: Keeper, seq: int | None) -> Message | None:
    """Take the last archived message, or the one with this number."""
    if keeper.outbox is None or not keeper.outbox.can_be_read(keeper.session):
        return None
    before = None if seq is None else seq + 1
    return keeper.outbox.take_archived(before, seq, keeper.session)


def _take_out(keeper: Keeper, seq: int) -> Message | None:
    """Remove the entries of one message; return it, or None if only pieces of it were stored."""
    data = keeper.ledger.dump()
    message: Message | None = None
    for part in ("kept", "rest"):
        for atom in data[part]:
            mine = [entry for entry in atom[_ENTRIES] if entry[_SEQ] == seq]
            if not mine:
                continue
            theirs = [e for e in mine if e[_ORIGIN] != OURS]
            if theirs and theirs[0][_ORIGIN] == AS_APPENDED:
                message = theirs[0][_MESSAGE]
            _reopen(atom, [entry[_MESSAGE] for entry in theirs])
            atom[_ENTRIES] = [entry for entry in atom[_ENTRIES] if entry[_SEQ] != seq]
            if not atom[_ENTRIES] and atom[_KIND] == Kind.user.value:
                data["turn"] -= 1
        data[part] = [atom for atom in data[part] if atom[_ENTRIES]]
    keeper.ledger = Ledger.load(data)
    return message


def _reopen(atom: list[Any], messages: list[Message]) -> None:
    """Open the calls whose results go, and forget the calls that go."""
    for message in messages:
        reading = read(message, "$")
        atom[_OPEN] = [key for key in atom[_OPEN] if key not in reading.calls]
        atom[_OPEN] += reading.results
