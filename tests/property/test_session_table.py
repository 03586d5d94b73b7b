"""The session table alone: random callers, no thread, no clock but ours; nobody is forgotten."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from floodline.errors import (
    HoldDeadlock,
    ReentrantUse,
    SessionClosed,
    SessionError,
    SessionNotFound,
    SessionsFull,
)
from floodline.sessions._table import queries, wishes
from floodline.sessions._table.entry import (
    BURIED,
    GONE,
    HELD,
    LEAVE,
    LIVE,
    OPEN,
    OPENING,
    PARKING,
    WAIT,
    Entry,
    Hold,
)
from floodline.sessions._table.policy import NEVER, Policy
from floodline.sessions._table.table import Table
from floodline.sessions._table.unsaved import delete_failed, park_failed, take_refused
from floodline.telemetry import Reason
from interrupts import Interrupt, Interrupter

IDS = ["a", "b", "c"]
CALLERS = ["Ann", "Bob", "Cem"]
picks = st.integers(0, 1000)


class Caller(Hold):
    """A hold that counts how often it was woken, and remembers when it came."""

    __slots__ = ("arrival", "asked_seat", "finished", "opening", "wakes")

    def __init__(self, id: str, who: str, shared: bool, create: bool, arrival: int) -> None:
        super().__init__(id, shared, create)
        self.who = who
        self.arrival = arrival
        self.wakes = 0
        self.opening = self.asked_seat = self.finished = False

    def wake(self) -> None:
        self.wakes += 1


class TableMachine(RuleBasedStateMachine):
    """Drives a table as the drivers do, in any order, and keeps its own books."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.went_back = False
        self.calls: list[Caller] = []
        self.claims: list[Hold] = []
        self.retries: list[Hold] = []
        self.leaving: list[tuple[Entry, Reason]] = []
        self.rested: dict[int, int] = {}  # id(entry) → when it came to rest
        self.residences: dict[int, tuple[Entry, int]] = {}  # entry → how often it was buried
        self.count = 0

    @initialize(
        when_full=st.sampled_from(["wait", "wait", "reject", "grow"]),
        max_sessions=st.sampled_from([1, 2, 2, None]),
        max_age=st.sampled_from([None, 7.0]),
        linger=st.sampled_from([0.0, 2.0]),
        tombstone=st.sampled_from([None, 3.0]),
        max_bytes=st.sampled_from([None, 50]),
        stored=st.booleans(),
    )
    def make(self, **values: Any) -> None:
        self.policy = Policy(idle=10.0, **values)
        self.table = Table(self.policy)

    # ---- the books

    def stamp(self) -> int:
        self.count += 1
        return self.count

    def held(self) -> list[Caller]:
        return [c for c in self.calls if not c.opening and c.outcome == HELD]

    def openers(self) -> list[Caller]:
        return [c for c in self.calls if c.opening]

    def waiters(self) -> list[Caller]:
        return [c for c in self.calls if not c.opening and c.outcome == WAIT]

    def settle(self) -> None:
        """Look at all whom the table may have served, as their drivers would when woken."""
        for call in list(self.calls):
            if call.error is not None:
                assert call.entry is None
                self.calls.remove(call)
            elif call.outcome == OPEN and not call.opening:
                self.check_turn(call)
                call.opening = True
            elif call.outcome == HELD and not call.opening and not call.finished:
                call.finished = True
                self.check_turn(call)
                assert call.entry is not None
                assert call.entry.leave is not Reason.closed

    def check_turn(self, call: Caller) -> None:
        """Whoever is served alone came before all who still wait to have it alone."""
        if not call.shared:
            later = [w for w in self.waiters() if w.id == call.id and not w.shared]
            assert all(w.arrival > call.arrival for w in later)

    def see_out(self, entry: Entry | None) -> None:
        if entry is None:
            return
        if entry.phase == GONE:
            self.bury(entry)
        else:
            assert entry.phase == PARKING
            assert all(entry is not other for other, _ in self.leaving)
            assert entry.leave is not None
            self.leaving.append((entry, entry.leave))

    def bury(self, entry: Entry) -> None:
        key = id(entry)
        _, times = self.residences[key]
        assert times == 0, "a session left twice"
        self.residences[key] = (entry, 1)

    def note_rest(self) -> None:
        for entry in self.table.idle.values():
            self.rested.setdefault(id(entry), self.stamp())
        resting = {id(entry) for entry in self.table.idle.values()}
        for key in set(self.rested) - resting:
            del self.rested[key]

    def pick(self, among: list[Any], number: int) -> Any:
        return among[number % len(among)] if among else None

    # ---- entering

    @rule(
        who=st.sampled_from(CALLERS),
        id=st.sampled_from(IDS),
        shared=st.sampled_from([False, False, True]),
        create=st.sampled_from([True, True, False]),
    )
    def enter(self, who: str, id: str, shared: bool, create: bool) -> None:
        if any(c.who == who and (c.opening or c.outcome == WAIT) for c in self.calls):
            return  # this caller is asleep
        call = Caller(id, who, shared, create, self.stamp())
        present = self.table.entries.get(id)
        try:
            step = self.table.enter(call, self.now)
        except ReentrantUse:
            assert present is not None
            assert who in (present.holder and present.holder.who, present.runner)
            return
        except HoldDeadlock:
            assert any(c.who == who for c in self.held())
            return
        except SessionClosed:
            assert self.policy.tombstone is not None
            assert present is None or present.phase != LIVE or present.leave is Reason.closed
            return
        self.calls.append(call)
        if step == LEAVE:
            self.see_out(call.entry)
        elif step == OPEN:
            call.opening = True
        assert step in (call.outcome, LEAVE)
        self.settle()

    @rule(who=st.sampled_from(CALLERS), id=st.sampled_from(IDS))
    def come_in(self, who: str, id: str) -> None:
        """Ask, and open at once if there is room."""
        self.enter(who, id, False, True)
        for call in [c for c in self.openers() if c.who == who and c.outcome == OPEN]:
            self.ask_seat(call)
            if call in self.calls and call.entry is not None and call.entry.seated:
                self.finish_open(call, 10)

    @precondition(lambda self: self.openers())
    @rule(number=picks)
    def seat(self, number: int) -> None:
        call = self.pick(self.openers(), number)
        if call.outcome != OPEN or call.entry.seated:
            return
        self.ask_seat(call)

    def ask_seat(self, call: Caller) -> None:
        try:
            self.see_out(self.table.seat(call, self.now))
        except SessionsFull:
            assert self.policy.when_full == "reject"
            self.fail(call, None)
        self.settle()

    @precondition(lambda self: self.openers())
    @rule(number=picks, weight=st.integers(0, 30))
    def open(self, number: int, weight: int) -> None:
        call = self.pick(self.openers(), number)
        if call.entry.seated:
            self.finish_open(call, weight)

    def finish_open(self, call: Caller, weight: int) -> None:
        call.entry.state = object()
        call.entry.weight = weight
        call.entry.fence = self.count if self.policy.stored and not call.shared else 0
        self.table.opened(call, self.now)
        self.residences[id(call.entry)] = (call.entry, 0)
        call.opening = False
        call.finished = True
        self.settle()

    @precondition(lambda self: self.openers())
    @rule(
        number=picks,
        kind=st.sampled_from(["error", "impatience", "not found"]),
        refused=st.booleans(),
    )
    def fail_to_open(self, number: int, kind: str, refused: bool) -> None:
        call = self.pick(self.openers(), number)
        if kind == "not found" and not call.create:
            others = [w for w in self.waiters() if w.id == call.id and not w.create]
            self.table.not_found(call, SessionNotFound("no such session"))
            self.calls.remove(call)
            assert all(w.error is not None for w in others)
            self.settle()
        else:
            others = [w for w in self.waiters() if w.id == call.id]
            error = OSError("no") if kind == "error" else None
            self.fail(call, error, refused and self.policy.stored)
            told = error is not None and call.id not in self.table.undeleted
            assert not told or all(w.error is error for w in others)

    def fail(self, call: Caller, error: Exception | None, refused: bool = False) -> None:
        entry = call.entry
        assert entry is not None
        if refused and not self.table.open_failed(call, error, False):
            delete_failed(self.table, entry)
            self.residences[id(entry)] = (entry, 1)
        elif not refused:
            self.table.open_failed(call, error)
        self.calls.remove(call)
        self.settle()

    # ---- holding

    @precondition(lambda self: self.held())
    @rule(number=picks, change=st.sampled_from(["none", "saved", "dirty", "failed"]))
    def release(self, number: int, change: str) -> None:
        self.let_go(self.pick(self.held(), number), change)

    def let_go(self, call: Caller, change: str) -> None:
        entry = call.entry
        assert entry is not None
        if self.policy.stored and not call.shared:
            entry.failed = change == "failed"
            entry.dirty = change in ("failed", "dirty")
            entry.fence = entry.fence if entry.dirty else 0
        self.calls.remove(call)
        self.rested.pop(id(entry), None)
        self.see_out(self.table.release(call, self.now))
        self.settle()

    @precondition(lambda self: self.held())
    @rule(number=picks, weight=st.integers(0, 60))
    def weigh(self, number: int, weight: int) -> None:
        self.table.weigh(self.pick(self.held(), number).entry, weight)

    @precondition(lambda self: self.waiters())
    @rule(number=picks)
    def lose_patience(self, number: int) -> None:
        call = self.pick(self.waiters(), number)
        assert self.table.give_up(call)
        self.calls.remove(call)

    @precondition(lambda self: any(not c.shared for c in self.held()))
    @rule(number=picks, reason=st.sampled_from([Reason.stale, Reason.discarded]))
    def detach(self, number: int, reason: Reason) -> None:
        call = self.pick([c for c in self.held() if not c.shared], number)
        entry = call.entry
        if not self.policy.stored or entry.leave is Reason.closed:
            return
        pins = entry.pins
        old = wishes.detach(self.table, call, reason)
        assert old is (None if pins else entry)
        self.see_out(old)
        call.opening = True
        call.finished = False
        if reason is Reason.discarded:
            self.fail(call, None)
        self.settle()

    # ---- leaving

    @rule(id=st.sampled_from(IDS), reason=st.sampled_from([Reason.parked, Reason.completed]))
    def park(self, id: str, reason: Reason) -> None:
        self.see_out(wishes.park(self.table, id, reason, self.now))
        self.settle()

    @rule(id=st.sampled_from(IDS))
    def close(self, id: str) -> None:
        waited = [w for w in self.waiters() if w.id == id]
        claim = Hold(id) if self.policy.stored else None
        self.see_out(wishes.close(self.table, id, self.now, claim))
        if claim is not None and claim.entry is not None:
            self.claims.append(claim)
        assert all(isinstance(w.error, SessionClosed) for w in waited)  # [S11]
        self.settle()
        if self.policy.tombstone is not None:  # [S12]
            late = Caller(id, "late", False, True, 0)
            try:
                self.table.enter(late, self.now)
            except SessionClosed:
                return
            raise AssertionError("a tombstone let somebody in")

    @precondition(lambda self: self.claims)
    @rule(number=picks)
    def end_claim(self, number: int) -> None:
        claim = self.pick(self.claims, number)
        self.claims.remove(claim)
        self.table.open_failed(claim, None)
        self.settle()

    @rule(id=st.sampled_from(IDS))
    def owner_dies(self, id: str) -> None:
        entry = self.table.entries.get(id)
        if entry is not None and entry.phase == LIVE:
            self.table.abandon(entry)

    @rule()
    def sweep_one(self) -> None:
        self.see_out(self.table.next_leaver(self.now))
        self.settle()

    @rule()
    def shed(self) -> None:
        self.see_out(self.table.shed(Reason.pressure))
        self.settle()

    @precondition(lambda self: self.leaving)
    @rule(number=picks)
    def save_leaver(self, number: int) -> None:
        entry, _ = self.pick(self.leaving, number)
        self.put_away(entry)

    def put_away(self, entry: Entry) -> None:
        entry.dirty = entry.failed = False
        entry.fence = 0
        self.table.seats.give_up(entry)
        self.settle()

    @precondition(lambda self: self.leaving)
    @rule(number=picks, refused=st.booleans())
    def finish_leaving(self, number: int, refused: bool) -> None:
        entry, reason = self.pick(self.leaving, number)
        self.finish(entry, reason, refused)

    def finish(self, entry: Entry, reason: Reason, refused: bool = False) -> None:
        self.put_away(entry)
        row_gone = reason is Reason.closed or not self.policy.stored
        if entry.state is not BURIED:
            self.bury(entry)
        if not self.table.left(entry, reason, row_gone):
            assert entry.leave is Reason.closed
            assert not row_gone
            if refused:
                delete_failed(self.table, entry)
            else:
                assert self.table.left(entry, reason, True)
        self.leaving.remove((entry, reason))
        self.settle()

    @precondition(lambda self: self.leaving)
    @rule(number=picks)
    def fail_to_park(self, number: int) -> None:
        entry, reason = self.pick(self.leaving, number)
        refusable = entry.seated and (entry.dirty or reason is Reason.closed)
        if self.policy.stored and (refusable or entry.state is BURIED):
            self.leaving.remove((entry, reason))
            park_failed(self.table, entry, self.now)
            self.settle()

    @precondition(lambda self: self.table.refused())
    @rule(number=picks)
    def retry(self, number: int) -> None:
        self.take_refused(self.pick([*self.table.unsaved, *self.table.undeleted], number))

    def take_refused(self, id: str) -> None:
        hold = Hold(id)
        self.see_out(take_refused(self.table, hold))
        if hold.entry is not None:
            self.retries.append(hold)
        self.settle()

    @precondition(lambda self: self.retries)
    @rule(number=picks, ok=st.booleans())
    def end_retry(self, number: int, ok: bool) -> None:
        hold = self.pick(self.retries, number)
        self.finish_retry(hold, ok)

    def finish_retry(self, hold: Hold, ok: bool) -> None:
        self.retries.remove(hold)
        entry = hold.entry
        assert entry is not None
        entry.failed = entry.dirty = not ok
        self.see_out(self.table.release(hold, self.now, False))
        self.settle()

    # ---- time

    @rule(seconds=st.sampled_from([0.5, 1.0, 2.5, 11.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(seconds=st.sampled_from([1.0, 30.0]))
    def jump_back(self, seconds: float) -> None:
        self.now -= seconds
        self.went_back = True

    @rule(id=st.sampled_from(IDS))
    def touch(self, id: str) -> None:
        if queries.touch(self.table, id, self.now):
            entry = self.table.entries[id]
            if id in self.table.idle:
                self.rested[key_of(entry)] = self.stamp()
        else:
            assert queries.find_live(self.table, id, self.now) is None

    # ---- what must always hold

    @invariant()
    def entries_are_in_one_place_each(self) -> None:
        table = getattr(self, "table", None)
        if table is None:
            return
        self.note_rest()
        entries = list(table.entries.values())
        assert all(key == entry.id for key, entry in table.entries.items())
        assert all(entry.phase != GONE for entry in entries)
        free = [e for e in entries if table.is_free(e)]
        assert {e.id for e in free if not e.failed} == set(table.idle)
        assert {e.id for e in free if e.failed} == set(table.unsaved)
        order = [self.rested[id(e)] for e in table.idle.values()]
        assert order == sorted(order)
        for e in entries:
            if e.phase == OPENING:
                assert e.holder is not None
            if e.phase == PARKING:
                assert e.holder is None
                assert e.pins == 0
        assert set(table.lingering) <= {e.id for e in free if e.leave is Reason.completed}
        assert all(e.phase == LIVE for e in table.by_age.values())

    @invariant()
    def figures_are_right(self) -> None:
        table = getattr(self, "table", None)
        if table is None:
            return
        entries, seats = list(table.entries.values()), table.seats
        assert seats.taken == sum(e.seated for e in entries)
        assert seats.taken <= seats.limit or self.policy.when_full == "grow"
        parking = [e for e in entries if e.phase == PARKING]
        assert seats.parking == len(parking) == len(self.leaving) + len(table.undeleted)
        live = [e for e in entries if e.phase == LIVE]
        assert table.live == len(live)
        assert table.bytes == sum(e.weight for e in live)
        assert len(table.waiting) == sum(len(e.waiters or ()) for e in entries)
        if not self.went_back:
            assert (
                queries.count_live(table, self.now)
                == len([e for e in live if not (table.is_free(e) and table.expired(e, self.now))])
                or self.policy.stored
            )  # an unsaved one may have expired

    @invariant()
    def nobody_is_forgotten(self) -> None:
        table = getattr(self, "table", None)
        if table is None:
            return
        for entry in table.entries.values():
            waiters = list(entry.waiters or ())
            arrivals = [w.arrival for w in waiters]
            assert arrivals == sorted(arrivals)
            if waiters and entry.phase == LIVE and entry.leave is not Reason.closed:
                assert entry.holder is not None
                assert not any(w.shared for w in waiters)
        room = table.seats.room
        for call in self.openers():
            promised = call.victim is not None and call.victim.seat_for is call
            assert call.outcome == OPEN or call in room or promised or call.entry.seated
            if promised:
                assert call.victim.seated
                assert call.victim.phase == PARKING
        if room and room[0].outcome == WAIT:
            promised = room[0].victim is not None and room[0].victim.seat_for is room[0]
            full = table.seats.taken >= table.seats.limit and not table.idle
            assert table.seats.crowded() or promised or full

    @invariant()
    def what_is_due_is_looked_for(self) -> None:
        table = getattr(self, "table", None)
        if table is None or self.went_back:
            return
        due = any(e.used_at + 10.0 <= self.now for e in list(table.idle.values())[:1])
        due = due or any(at <= self.now for at in table.lingering.values())
        due = due or (bool(table.idle) and (table.seats.over() or table.bytes > table.max_bytes))
        assert not due or table.next_check <= self.now

    # ---- the end

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        table = self.table
        for _ in range(500):
            for call in self.held():
                self.let_go(call, "saved")
            for entry, reason in list(self.leaving):
                self.finish(entry, reason)
            for claim in list(self.claims):
                self.claims.remove(claim)
                table.open_failed(claim, None)
                self.settle()
            for hold in list(self.retries):
                self.finish_retry(hold, True)
            for key in (*table.unsaved, *table.undeleted):
                self.take_refused(key)
            for call in self.openers():
                if call in self.calls and call.entry.seated:
                    self.finish_open(call, 1)
                elif call in self.calls and call.outcome == OPEN:
                    self.ask_seat(call)
            if not self.calls:
                self.see_out(table.shed(Reason.shutdown))
            if not (self.calls or table.entries):
                break
        assert self.calls == []
        assert table.entries == {}
        assert len(table.waiting) == 0
        assert not table.seats.room
        assert (table.seats.taken, table.seats.parking, table.live, table.bytes) == (0, 0, 0, 0)
        assert not table.refused()
        for order in (table.idle, table.by_age, table.lingering):
            assert not order
        assert all(times == 1 for _, times in self.residences.values())
        assert sum(table.left_by.values()) == len(self.residences)
        table.next_leaver(self.now)
        assert table.next_check == NEVER


class InterruptedTable(TableMachine):
    """The same, with exceptions from signal handlers and other threads."""

    @rule(
        kind=st.sampled_from(
            ["enter", "read", "release", "open", "fail", "detach", "give_up", "weigh", "touch"]
        )
        | st.sampled_from(
            ["leave", "unsaved", "undeleted", "retry", "close", "park", "sweep", "shed"]
        ),
        id=st.sampled_from(IDS),
        number=picks,
        first=st.integers(1, 4),
        again=st.integers(1, 40),
    )
    def an_exception_arrives_here(
        self, kind: str, id: str, number: int, first: int, again: int
    ) -> None:
        """In the middle of an operation, and while that is taken back: all of it, or nothing.

        It happens to copies, so the table goes on as if it had not.
        """
        before, whole = Copy(self), Copy(self)
        with Interrupter(in_table) as places:  # replaces the tracer of coverage
            whole.operate(kind, id, number)
        for place in range(first, places.count + 1, 4):
            broken = Copy(self)
            with Interrupter(in_table, place):
                broken.operate(kind, id, number)
            with suppress(Interrupt), Interrupter(in_table, again):
                broken.table.undo.roll_back()
            broken.table.undo.roll_back()
            assert not broken.table.undo.pending
            self.compare(broken, before, whole, is_sweep=kind == "sweep")
            broken.operate(kind, id, number)

    def compare(self, broken: Copy, before: Copy, whole: Copy, *, is_sweep: bool) -> None:
        image = broken.image()
        if image == whole.image():
            assert all(
                mine >= yours for mine, yours in zip(broken.wakes(), whole.wakes(), strict=True)
            )
        elif not is_sweep:  # which also marks those in use, one after the other
            assert image == before.image()
        latest = max(one.table.next_check for one in (before, whole))
        assert broken.table.next_check <= latest
        if not self.went_back:
            assert broken.order() == sorted(broken.order())


class Copy:
    """A copy of the table, of its callers and of one more, for an operation that may break off."""

    def __init__(self, machine: TableMachine) -> None:
        late = [Caller(one, "late", shared, True, 0) for one in IDS for shared in (False, True)]
        claims = [Hold(one) for one in IDS]
        parts = (machine.table, machine.calls, machine.leaving, machine.held(), machine.openers())
        known = (late, claims, machine.waiters(), list(machine.residences.values()))
        shared = {id(one): one for one in (BURIED, machine.policy)}
        (self.table, self.calls, self.leaving, self.held, self.openers), rest = copy.deepcopy(
            (parts, known), shared
        )
        self.late, self.claims, self.waiters, _ = rest
        self.table.undo.deferring = True
        self.now = machine.now
        self.pick = machine.pick
        self.names: dict[object, object] = {}
        entries = [*self.table.entries.values(), *(entry for entry, _ in self.leaving)]
        for thing in (*entries, *self.calls, *self.late, *self.claims, *self.table.shared):
            self.names.setdefault(thing, f"{type(thing).__name__} {len(self.names)}")

    def operate(self, kind: str, id: str, number: int) -> None:
        """Do one operation as a driver does: as a section, which may be taken back."""
        undo, operation = self.table.undo, self.operation(kind, id, number)
        try:
            operation()
            undo.commit()
        except (Interrupt, SessionError):
            with suppress(Interrupt):
                undo.roll_back()

    def operation(self, kind: str, id: str, number: int) -> Callable[[], object]:
        table, now, pick = self.table, self.now, self.pick
        late = next(one for one in self.late if one.id == id and one.shared == (kind == "read"))
        claim = next(one for one in self.claims if one.id == id)
        held, opener, waiter = (pick(w, number) for w in (self.held, self.openers, self.waiters))
        leaver, reason = pick(self.leaving, number) or (None, None)
        found: dict[str, Callable[[], object] | None] = {
            "enter": lambda: table.enter(late, now),
            "read": lambda: table.enter(late, now),
            "release": held and (lambda: table.release(held, now)),
            "open": opener and (lambda: self.seat_or_open(opener)),
            "fail": opener and (lambda: table.open_failed(opener, OSError("no"))),
            "detach": held
            and not held.shared
            and (lambda: wishes.detach(table, held, Reason.stale)),
            "give_up": waiter and (lambda: table.give_up(waiter)),
            "weigh": held and (lambda: table.weigh(held.entry, number)),
            "leave": leaver and (lambda: table.left(leaver, reason, True)),
            "unsaved": leaver and leaver.seated and (lambda: park_failed(table, leaver, now)),
            "undeleted": leaver and (lambda: delete_failed(table, leaver)),
            "retry": lambda: take_refused(table, claim),
            "close": lambda: wishes.close(table, id, now, claim),
            "park": lambda: wishes.park(table, id, Reason.parked, now),
            "sweep": lambda: table.next_leaver(now),
            "shed": lambda: table.shed(Reason.pressure),
            "touch": lambda: queries.touch(table, id, now),
        }
        return found[kind] or bool

    def seat_or_open(self, opener: Caller) -> None:
        assert opener.entry is not None
        if opener.entry.seated:
            self.table.opened(opener, self.now)
        else:
            self.table.seat(opener, self.now)

    def wakes(self) -> list[int]:
        return [call.wakes for call in (*self.calls, *self.late)]

    def order(self) -> list[float]:
        return [entry.used_at for entry in self.table.idle.values()]

    def image(self) -> object:
        """Return all that an operation can change, comparable between copies.

        But for the order of those unused at the same time, and for when to look for work.
        """
        table, seats = self.table, self.table.seats
        dicts = ("entries", "idle", "unsaved", "undeleted", "by_age", "lingering", "leased")
        return (
            (table.live, table.bytes, +table.left_by, self.of(table.ownerless)),
            (seats.taken, seats.parking, seats.grown, self.of(seats.room)),
            [{k: self.of(v) for k, v in getattr(table, name).items()} for name in dicts],
            {k: self.of(v) for k, v in table.waiting.entries.items()},
            [self.of(hold) for hold in table.shared],
            [self.buried_until(one) for one in IDS],
            {self.of(e): self.slots(e) for e in table.entries.values()},
            {name: self.slots(thing) for thing, name in self.names.items()},
        )

    def buried_until(self, id: str) -> float | None:
        until = self.table.tombs.until(id)
        return None if until is not None and until <= self.now else until  # over: as good as none

    def slots(self, thing: Any) -> object:
        kind = Entry if isinstance(thing, Entry) else Hold
        return [(name, self.of(getattr(thing, name))) for name in kind.__slots__]

    def of(self, value: Any) -> object:
        if isinstance(value, (Entry, Hold)):
            return self.names.get(value, f"new {type(value).__name__} {value.id}")
        if isinstance(value, (list, tuple)) or hasattr(value, "popleft"):
            return [self.of(one) for one in value] or None  # an empty queue is none
        if value is None or value is BURIED or isinstance(value, (str, int, float, bytes)):
            return value
        return type(value)


def in_table(frame: FrameType) -> bool:
    return "/sessions/_table/" in frame.f_code.co_filename


def key_of(entry: Entry) -> int:
    return id(entry)


TestTable = TableMachine.TestCase
TestTable.settings = settings(max_examples=250, stateful_step_count=50, deadline=None)
TestInterrupted = InterruptedTable.TestCase
TestInterrupted.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
