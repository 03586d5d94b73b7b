"""Values under keys, each changed under the lease of its key, so that no worker loses another's.

A value is the envelope of a session: plain data, with the date at which it expires. The flows run
on a `FlowStore`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import msgspec

from floodline._clock import Clock
from floodline._units import Duration, parse_duration
from floodline.adapters._store_flows import Flow, ask, pause
from floodline.adapters._upkeep import LOOK_EVERY, Upkeep
from floodline.errors import SessionBusy, SessionConflict
from floodline.stores import Codec, Grant, new_owner, seal, unseal

KEYS_IN_MEMORY = 10_000
LEASE = 15.0
PAGE = 500
LOOK_AT = 2 * LOOK_EVERY  # keys: more than were written meanwhile, so that what expired leaves
TRIES = 3

_codec = Codec()


class Value(msgspec.Struct, frozen=True):
    """What is under a key, and until when."""

    data: Any
    expires_at: float | None = None

    def seconds_left(self, now: float) -> float | None:
        """Return how long the value stays, None if there is no end."""
        return None if self.expires_at is None else self.expires_at - now


Decide = Callable[[Value | None], Value | None]


class LeasedValues:
    """Reads and changes values; what has expired is not there.

    `max_keys` deletes the least recently changed above that number, `retention` those unchanged for
    that long; both are looked at every few writes, and so are values that have expired. `what` is
    the adapter's word for `max_keys`.
    """

    def __init__(
        self,
        name: str,
        *,
        max_keys: int | None = None,
        retention: Duration | None = None,
        wait: Duration = "30 s",
        what: str = "max_keys",
        wall: Clock = time.time,
    ) -> None:
        self.name = name
        self.wall = wall
        self._upkeep = Upkeep(name, most=max_keys, retention=retention, what=what)
        self._wait = parse_duration(wait, "wait", zero=True)
        self._cursor = ""

    def get(self, key: str) -> Flow[Value | None]:
        """Return what is under a key."""
        record = yield from ask("load", self.name, key)
        return None if record is None else self._read(record.envelope)

    def put(self, key: str, data: Any, expires_in: float | None = None) -> Flow[None]:
        """Set a value, whatever was there before."""
        value = Value(data, None if expires_in is None else self.wall() + expires_in)
        yield from self.change(key, lambda _old: value)

    def delete(self, key: str) -> Flow[bool]:
        """Delete a key; return True if it was there."""
        return (yield from self.change(key, lambda _old: None)) is not None

    def change(self, key: str, decide: Decide) -> Flow[Value | None]:
        """Replace the value with what `decide` makes of it, and return the old one.

        None deletes the key, and the value itself leaves it as it is. `decide` may be called more
        than once.
        """
        for tries_left in reversed(range(TRIES)):
            try:
                old, wrote = yield from self._try_change(key, decide)
            except SessionConflict:  # this worker stood still for longer than its lease
                if not tries_left:
                    raise
                continue
            if wrote and (yield from self._upkeep.wrote()):
                yield from self.sweep(LOOK_AT)
            return old
        raise AssertionError("unreachable")

    def keys(self, prefix: str = "") -> Flow[list[str]]:
        """Return the keys that begin with `prefix`, also of values that have expired."""
        found: list[str] = []
        after = prefix
        while page := (yield from ask("ids", self.name, after=after, limit=PAGE)):
            found += [key for key in page if key.startswith(prefix)]
            after = page[-1]
            if not after.startswith(prefix):
                break
        return found

    def count(self) -> Flow[int]:
        """Return the number of keys, those that have expired included."""
        count: int = yield from ask("count", self.name)
        return count

    def sweep(self, limit: int) -> Flow[None]:
        """Look at the next `limit` keys, round after round, and delete those that have expired."""
        page = yield from ask("ids", self.name, after=self._cursor, limit=limit)
        self._cursor = page[-1] if len(page) == limit else ""
        for key in page:
            record = yield from ask("load", self.name, key)
            if record is None or self._read(record.envelope) is not None:
                continue
            with suppress(SessionBusy, SessionConflict):  # it is being put again
                yield from self._try_change(key, lambda value: value, wait=0.0)

    def _try_change(
        self, key: str, decide: Decide, *, wait: float | None = None
    ) -> Flow[tuple[Value | None, bool]]:
        grant = yield from acquire(self.name, key, self._wait if wait is None else wait)
        place = (self.name, key)
        old = self._read(grant.envelope)
        try:
            new = decide(old)
            envelope = None if new is None or new is old else _seal(new, grant.version)
        except BaseException:
            yield from ask("release", *place, grant.fence)
            raise
        if new is None and grant.version:
            yield from ask("delete", *place, fence=grant.fence)
        elif envelope is None:
            yield from ask("release", *place, grant.fence)
        else:
            terms = {"fence": grant.fence, "version": grant.version}
            yield from ask("save", *place, envelope, write_id=uuid4().hex, release=True, **terms)
        return old, envelope is not None

    def _read(self, envelope: bytes | None) -> Value | None:
        if not envelope:  # no key, or one that only has rows
            return None
        value = msgspec.convert(_codec.decode(unseal(envelope)), Value)
        left = value.seconds_left(self.wall())
        return None if left is not None and left <= 0 else value


def acquire(name: str, key: str, wait: float) -> Flow[Grant]:
    """Take the lease of a key for one change; `SessionBusy` if others have it for too long."""
    # an owner for each change: those of one process exclude each other, too
    owner = new_owner(name)
    until = time.monotonic() + wait
    delay = 0.002
    while True:
        grant = yield from ask("acquire", name, key, owner, lease=LEASE)
        if isinstance(grant, Grant):
            return grant
        if time.monotonic() >= until:
            raise SessionBusy(
                f"key {key!r} of {name!r} is held by {grant.owner} for another "
                f"{grant.seconds:.0f} s"
            )
        yield from pause(min(delay, grant.seconds))
        delay = min(delay * 2, 0.05)


def _seal(value: Value, version: int) -> bytes:
    plain = {"data": value.data, "expires_at": value.expires_at}
    return seal(_codec.encode(plain), version=version + 1)
