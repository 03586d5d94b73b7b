"""The session table: every rule about sessions, and no I/O, no thread, no clock.

    ABSENT → OPENING → LIVE(pins, dirty) → PARKING → ABSENT

The caller passes the time and owns the lock; the table answers what to do next, and wakes waiters.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque

from floodline.errors import SessionClosed
from floodline.sessions._table import unbroken
from floodline.sessions._table.due import next_due, soonest
from floodline.sessions._table.entry import (
    GONE,
    HELD,
    LEAVE,
    LIVE,
    OPEN,
    PARKING,
    WAIT,
    Entry,
    Hold,
)
from floodline.sessions._table.policy import NEVER, Policy
from floodline.sessions._table.seats import Seats
from floodline.sessions._table.tombstones import Tombs
from floodline.sessions._table.undo import Undo
from floodline.sessions._table.waiting import Waiting
from floodline.telemetry import Reason


class Table:
    """The sessions that are live, their holders and waiters, and what must leave next."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.max_idle = policy.idle
        self.max_age = NEVER if policy.max_age is None else policy.max_age
        self.max_bytes = policy.max_bytes or NEVER
        self.soonest = policy.soonest
        self.entries: dict[str, Entry] = {}
        self.idle: OrderedDict[str, Entry] = OrderedDict()  # free, least recently used first
        self.unsaved: dict[str, Entry] = {}  # free, but the store refused the last save
        self.undeleted: dict[str, Entry] = {}  # closed and gone, but their rows are still there
        self.by_age: OrderedDict[str, Entry] = OrderedDict()
        self.lingering: OrderedDict[str, float] = OrderedDict()
        self.ownerless: deque[Entry] = deque()
        self.tombs = Tombs()
        self.undo = Undo(self)
        self.seats = Seats(policy, self.undo)
        self.waiting = Waiting(self.undo)
        self.shared: dict[Hold, None] = {}  # the pins, in the order in which they were taken
        self.leased: dict[str, Entry] = {}
        self.live = self.bytes = 0
        self.left_by: Counter[str] = Counter()
        self.closing = False
        self.next_check = NEVER  # nothing is due earlier

    # ---- entering and opening

    def enter(self, hold: Hold, now: float) -> int:
        """Give the session to `hold`, or say what it must do; it may be queued."""
        entry = self.entries.get(hold.id)
        if entry is None:
            self.refuse_closing(hold)
            self.tombs.refuse(hold.id, now)
            return unbroken.start_opening(self, hold)
        if (
            entry.phase != LIVE
            or entry.holder is not None
            or entry.pins
            or entry.leave is not None
            or hold.shared
            or self.closing
            or hold.id not in self.idle
            or now - entry.used_at >= self.max_idle
            or now - entry.opened_at >= self.max_age
        ):
            if unbroken.pin(self, entry, hold, now):
                return HELD
            self.undo.keep(hold, entry)
            return self._enter_slowly(entry, hold, now)
        # almost always; no call from here on, so that nothing can arrive in between
        del self.idle[hold.id]
        entry.holder = hold
        hold.entry = entry
        hold.since = now
        hold.outcome = HELD
        return HELD

    def _enter_slowly(self, entry: Entry, hold: Hold, now: float) -> int:
        if entry.phase != LIVE or entry.leave is Reason.closed:
            self.tombs.refuse(hold.id, now)
            return self._wait_for(entry, hold)
        free = entry.holder is None and not entry.pins
        if self.closing and (free or not hold.shared):
            self.refuse_closing(hold)
        if free:
            reason = self.expired(entry, now)
            if reason is not None:
                self.begin_leave(entry, reason)
                self.waiting.add(entry, hold)
                return LEAVE
        refused = free and self.idle.pop(hold.id, None) is None
        if refused:
            self.unsaved.pop(hold.id, None)
        if refused or entry.leave is Reason.completed:
            entry.leave = None
            self.lingering.pop(entry.id, None)
        if entry.holder is not None and not hold.shared:
            return self._wait_for(entry, hold)
        self._grant(entry, hold, now)
        return HELD

    def expired(self, entry: Entry, now: float) -> Reason | None:
        """Return why a free entry may no longer be used."""
        if self.lingering and self.lingering.get(entry.id, NEVER) <= now:
            return Reason.completed
        if now - entry.used_at >= self.max_idle:
            return Reason.idle
        if now - entry.opened_at >= self.max_age:
            return Reason.age
        return None

    def add(self, id: str) -> Entry:
        entry = Entry(id)
        self.undo.keep(entry)
        self.entries[id] = entry
        return entry

    def promote(self, entry: Entry, hold: Hold) -> None:
        self.undo.keep(hold, entry)
        entry.holder = hold
        hold.entry = entry
        hold.outcome = OPEN

    def _wait_for(self, entry: Entry, hold: Hold) -> int:
        self.refuse_closing(hold)
        self.waiting.refuse_ring(entry, hold)
        self.waiting.add(entry, hold)
        return WAIT

    def refuse_closing(self, hold: Hold) -> None:
        if self.closing:
            why = f"{self.policy.name!r} is shut down"
            raise SessionClosed(f"session {hold.id!r} cannot be used: {why}")

    def seat(self, hold: Hold, now: float) -> Entry | None:
        """Find a seat for an opener; `hold.entry.seated` says if it has one.

        Return an entry that the caller must see out: its seat changes hands as soon as
        nothing of it can be lost. Without a seat the opener is queued, and woken to ask again.
        """
        done, leaver = unbroken.seat(self, hold, now)
        if done or not self.seats.ask(hold, evictable=bool(self.idle)):
            return leaver
        victim = next(iter(self.idle.values()))
        self.seats.promise(hold, victim)
        return self.begin_leave(victim, self.expired(victim, now) or Reason.count)

    def opened(self, hold: Hold, now: float) -> None:
        """Note that the opener has set the state: it holds the session, and others may follow."""
        entry = hold.entry
        assert entry is not None
        if unbroken.opened(self, hold, now):
            return
        self.undo.keep(hold)
        self.undo.keep_all_of(entry)
        entry.phase = LIVE
        entry.runner = entry.holder = None
        entry.opened_at = entry.used_at = now
        self.live += 1
        self.next_check = min(self.next_check, now + self.soonest)
        self.add_bytes(entry.weight)
        if self.max_age != NEVER:
            self.by_age[entry.id] = entry
        self._grant(entry, hold, now)
        if entry.leave is not Reason.closed:
            self.serve(entry, now)

    def open_failed(self, hold: Hold, error: BaseException | None, row_gone: bool = True) -> bool:
        """End a failed open: with an error for all waiters, or else the next one tries.

        False if the session has been closed, and its row must go first.
        """
        entry = hold.entry
        assert entry is not None
        if entry.leave is Reason.closed and not row_gone:
            return False
        self.undo.keep(hold)
        self.undo.keep_all_of(entry)
        hold.entry = None
        self.seats.leave_room(hold)
        entry.holder = entry.runner = None
        if error is not None:
            self.waiting.refuse_all(entry, error)
        self._reopen(entry)
        return True

    def not_found(self, hold: Hold, error: BaseException) -> None:
        """Refuse the waiters that would not create a missing session either."""
        entry = hold.entry
        assert entry is not None
        for waiter in [w for w in entry.waiters or () if not w.create]:
            self.waiting.refuse(entry, waiter, error)
        self.open_failed(hold, None)

    def _reopen(self, entry: Entry) -> None:
        """Forget an entry; the first waiter opens the session again, on its seat."""
        heir = self.waiting.first(entry)
        if heir is not None:
            self.succeed(entry, heir)
            self.undo.wake(heir)
        else:
            self._forget(entry)
            self.seats.give_up(entry)

    def succeed(self, old: Entry, hold: Hold) -> Entry:
        """Replace `old` with a new entry, to be opened by `hold`."""
        self._forget(old)
        new = self.add(old.id)
        new.seated, old.seated = old.seated, False
        self.waiting.move(old, new)
        self.promote(new, hold)
        return new

    def _forget(self, entry: Entry) -> None:
        self.undo.keep(entry)
        entry.phase = GONE
        if self.entries.get(entry.id) is entry:
            del self.entries[entry.id]

    # ---- holding and releasing

    def give_up(self, hold: Hold) -> bool:
        """Take a waiter that timed out from its queue; False if it has been served."""
        if hold.outcome != WAIT or hold.error is not None:
            return False
        if hold.entry is not None and hold in (hold.entry.waiters or ()):
            self.waiting.remove(hold.entry, hold)
        return True

    def release(self, hold: Hold, now: float, stamp: bool = True) -> Entry | None:
        """End a hold; return an entry that the caller must see out."""
        entry = hold.entry
        if (
            entry is None
            or entry.holder is not hold
            or entry.leave is not None
            or entry.waiters
            or entry.pins
            or entry.failed
            or entry.phase != LIVE
            or self.closing
            or self.seats.room
            or not stamp
        ):
            if stamp and entry is not None and unbroken.unpin(self, entry, hold, now):
                return None
            self.undo.keep(hold, entry)
            return self._release_slowly(entry, hold, now, stamp)
        # almost always; no call from here on, as in `enter`
        hold.entry = hold.frame = hold.who = entry.holder = None
        entry.used_at = now
        self.idle[hold.id] = entry
        if self.seats.taken > self.seats.limit or self.bytes > self.max_bytes:
            self.next_check = now
        return None

    def _release_slowly(
        self, entry: Entry | None, hold: Hold, now: float, stamp: bool
    ) -> Entry | None:
        hold.entry = hold.frame = hold.who = None
        if entry is None:
            return None
        if hold.shared:
            entry.pins -= 1
            self.shared.pop(hold, None)
        elif entry.holder is not hold:
            return None  # a fork has emptied the table
        else:
            entry.holder = None
        if entry.phase == GONE:
            return entry if not entry.pins and entry.leave is not None else None
        if stamp:
            entry.used_at = now
        else:  # it may have been due before this hold
            self.next_check = min(self.next_check, entry.used_at + self.max_idle)
        return self._rest(entry, now)

    def _rest(self, entry: Entry, now: float) -> Entry | None:
        """Hand a live entry to the next waiter; if there is none, let it rest or leave."""
        if entry.leave is not Reason.closed:
            self.serve(entry, now)
        if entry.holder is not None or entry.pins:
            return None
        if entry.leave is Reason.completed and self.policy.linger:
            self.linger(entry, now)
        elif entry.leave is Reason.closed or (entry.leave is not None and not entry.failed):
            return self.begin_leave(entry, entry.leave)
        if self.closing:
            return self.begin_leave(entry, Reason.shutdown)
        (self.unsaved if entry.failed else self.idle)[entry.id] = entry
        self.seats.call_next()
        if self.seats.over() or self.bytes > self.max_bytes:
            self.next_check = now
        return None

    def serve(self, entry: Entry, now: float) -> None:
        """Give a live entry to the next waiters."""
        for hold in self.waiting.take_next(entry):
            self._grant(entry, hold, now)

    def _grant(self, entry: Entry, hold: Hold, now: float) -> None:
        self.undo.keep(hold, entry)
        if hold.shared:
            entry.pins += 1
            self.shared[hold] = None
        else:
            entry.holder = hold
        hold.entry = entry
        hold.since = now
        hold.outcome = HELD
        self.undo.wake(hold)

    def weigh(self, entry: Entry, weight: int) -> None:
        """Note what a live entry weighs now."""
        if entry.phase == LIVE:
            self.add_bytes(weight - entry.weight)
        entry.weight = weight

    def add_bytes(self, change: int) -> None:
        """Note that live entries weigh that much more; above the bound others must leave soon."""
        self.bytes += change
        if self.bytes > self.max_bytes:
            self.next_check = -NEVER

    # ---- leaving

    def refused(self) -> bool:
        """Return True if the store refused anything."""
        return bool(self.unsaved or self.undeleted)

    def abandon(self, entry: Entry) -> None:
        """Note that a session's last owner has died; the garbage collector may call this."""
        self.ownerless.append(entry)
        self.next_check = -NEVER

    def next_leaver(self, now: float) -> Entry | None:
        """Start to see out the next one that is due, if any."""
        if (due := next_due(self, now)) is not None:
            return self.begin_leave(*due)
        self.next_check = soonest(self, now)
        return None

    def shed(self, reason: Reason) -> Entry | None:
        """Start to see out the least recently used, whether due or not."""
        return self.begin_leave(next(iter(self.idle.values())), reason) if self.idle else None

    def is_free(self, entry: Entry) -> bool:
        """Return True if an entry is live and not held."""
        return entry.phase == LIVE and entry.holder is None and not entry.pins

    def linger(self, entry: Entry, now: float) -> None:
        self.lingering[entry.id] = now + self.policy.linger
        self.lingering.move_to_end(entry.id)
        self.next_check = min(self.next_check, now + self.policy.linger)

    def begin_leave(self, entry: Entry, reason: Reason) -> Entry:
        """Start to park a free entry, and return it for the caller to see out."""
        self.undo.keep(entry)
        entry.phase, entry.leave, entry.work = PARKING, reason, None
        self.live -= 1
        self.seats.parking += 1
        self.bytes -= entry.weight
        for order in (self.idle, self.unsaved, self.by_age, self.lingering):
            order.pop(entry.id, None)
        if not (entry.dirty or entry.fence or (self.policy.stored and reason is Reason.closed)):
            self.seats.give_up(entry)
        return entry

    def left(self, entry: Entry, reason: Reason, row_gone: bool) -> bool:
        """End the leaving of an entry: its id is absent, or opened again by the first waiter.

        False if the session has been closed, and its row must go first.
        """
        if entry.leave is Reason.closed and not row_gone:
            return False
        if unbroken.left(self, entry, reason):
            return True
        self.undo.keep(entry)
        self.undo.keep_count(reason)
        self.seats.parking -= 1
        self.left_by[reason] += 1
        self.seats.give_up(entry)
        self._reopen(entry)
        self.seats.call_next()
        return True
