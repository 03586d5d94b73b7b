"""The stored list: atoms in order, running totals, and the one rule of what may leave.

`rest` is a queue that is cut from the front. What must stay although it is older moves from there
to `kept`; what need no longer stay is also in `loose`, and is the next to leave. So no step ever
looks at the whole list, and everything in `kept` comes before everything in `rest`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from floodline.history._atoms import OURS, Atom, Entry
from floodline.history._cut import Front, Plan
from floodline.history._formats.markers import NEVER_ANSWERED, results_for
from floodline.history._formats.shapes import ANSWERS, RESPONSES, Kind, Message, Reading, is_linked

Fits = Callable[[int, int, int], bool]
Measure = Callable[[Message], tuple[int, int]]

# Shared, because an empty deque costs 700 bytes and most conversations are young. It is recognised
# by its maximum length of 0, not by identity, so that a copy of it is recognised too.
_NONE_YET: deque[Atom] = deque(maxlen=0)


class Ledger:
    """Atoms, totals (messages, tokens, bytes; the same of what is fixed) and open calls."""

    __slots__ = (
        "fixed", "kept", "latest", "loose", "lost", "messages", "open", "opener", "rest", "run",
        "size", "summary", "tokens", "turn",
    )  # fmt: skip  # one name a line would fill the page

    def __init__(self) -> None:
        self.rest = _NONE_YET
        self.kept: dict[int, Atom] = {}
        self.loose: dict[int, Atom] = {}
        self.open: dict[str, list[Atom]] = {}
        self.messages = self.tokens = self.size = self.turn = 0
        self.fixed = (0, 0, 0)
        self.summary: Entry | None = None
        self.opener: Atom | None = None
        self.run: Atom | None = None
        self.latest: Atom | None = None
        self.lost: str | None = None  # why the reasoning of the current response was cut

    def add(self, entry: Entry, reading: Reading, *, pin: bool = False) -> Atom:
        """Store a message that is not a result: in the atom that it belongs to, or in its own."""
        run = self.run
        if (
            run is not None
            and reading.family in (RESPONSES, None)
            and reading.kind in (Kind.model, Kind.reasoning, Kind.opaque)
            and run.gathers(reading, entry.message)
        ):
            self._put(run, entry)
            self._await(run, reading)
            self._loosen(run)
            return run
        atom = Atom(reading.kind, reading.family, self.turn, entry.seq)
        if reading.kind is Kind.user:
            self._begin_turn(atom)
        elif reading.kind is not Kind.system:
            self.run = self._next_run(atom, reading, entry.message)
        atom.pinned = pin
        if self.rest.maxlen == 0:
            self.rest = deque()
        self.rest.append(atom)
        self._put(atom, entry)
        self._await(atom, reading)
        if pin:
            self._prop(atom, 1)
        return atom

    def _next_run(self, atom: Atom, reading: Reading, message: Message) -> Atom | None:
        """Return the atom that the next item may belong to, after one that began its own."""
        run = self.run
        if run is not None and run.reasoned and _is_aside(reading.kind, message):
            return run
        responded = reading.family == RESPONSES and reading.kind is not Kind.opaque
        return atom if responded else None

    def answer(self, atom: Atom, entry: Entry) -> None:
        """Store a result with its call."""
        if atom is self.run:
            self.run = None
        self._put(atom, entry)
        self._loosen(atom)

    def find_open(self, key: str) -> Atom | None:
        """Return the oldest atom in flight with this call, which is now answered."""
        atoms = self.open.get(key)
        if not atoms:
            return None
        atom = atoms.pop(0)
        if not atoms:
            del self.open[key]
        atom.open.remove(key)
        return atom

    def close_calls(self, measure: Measure) -> tuple[int, list[Entry]]:
        """Close what the last turn left open; return how many calls, and reasoning to drop."""
        closed, dropped = 0, []
        for atom in {id(a): a for atoms in self.open.values() for a in atoms}.values():
            calls, atom.open = atom.open, []
            closed += len(calls)
            asked = [entry.message for entry in atom.entries]
            for message in results_for(atom.family, asked, calls, NEVER_ANSWERED):
                size, tokens = measure(message)
                self._put(atom, Entry(message, size, tokens, atom.entries[-1].seq, OURS))
            self._loosen(atom)
        self.open.clear()
        if self.run is not None and self.run.dangling:
            dropped = self._drop_reasoning(self.run)
        return closed, dropped

    def _drop_reasoning(self, atom: Atom) -> list[Entry]:
        """Remove an atom that is only reasoning; only system messages follow it."""
        messages, tokens, size = atom.weight()
        self._weigh(atom, (-messages, -tokens, -size))
        if self.kept.pop(atom.key, None) is None:
            after = []
            while (last := self.rest.pop()) is not atom:
                after.append(last)
            self.rest.extend(reversed(after))
        self.run = None
        return atom.entries

    def stays(self, atom: Atom) -> bool:
        """Return True for system messages, pins, and the last turn's user and calls in flight."""
        if atom.fixed:
            return True
        return atom.turn == self.turn and (atom is self.opener or atom.in_flight)

    def plan(self, fits: Fits) -> Plan:
        """Choose the oldest that may leave until `fits(messages, tokens, bytes)`; change nothing.

        Whole turns leave, but the last one goes atom by atom.
        """
        plan = Plan()
        left = [self.messages, self.tokens, self.size]
        waiting = deque(self.loose.values()) if self.loose else _NONE_YET
        front = Front(self.rest, plan.passed)
        while not fits(*left):
            atom = waiting.popleft() if waiting else front.take_first(self._may_leave)
            if atom is None:
                break
            self._take(plan, atom, left)
            if atom.turn == self.turn:
                continue
            while waiting and waiting[0].turn == atom.turn:
                self._take(plan, waiting.popleft(), left)
            while (follower := front.take_turn(atom.turn)) is not None:
                if self._may_leave(follower):
                    self._take(plan, follower, left)
        return plan

    def plan_only(self, keys: frozenset[int]) -> Plan:
        """Choose the atoms with these keys, as far as they are still here and may leave."""
        plan = Plan()
        left = [0, 0, 0]
        for key in keys & self.loose.keys():
            self._take(plan, self.loose[key], left)
        first = self.rest[0].key if self.rest else 0
        count = sum(key >= first for key in keys)  # plain trimming may have come first
        front = Front(self.rest, plan.passed)
        while count and (atom := front.take_first(lambda atom: atom.key in keys)) is not None:
            count -= 1
            if self._may_leave(atom):
                self._take(plan, atom, left)
        return plan

    def _may_leave(self, atom: Atom) -> bool:
        return not self.stays(atom)

    def _take(self, plan: Plan, atom: Atom, left: list[int]) -> None:
        plan.victims[atom.key] = atom
        messages, tokens, size = atom.weight()
        left[0] -= messages
        left[1] -= tokens
        left[2] -= size

    def commit(self, plan: Plan) -> None:
        """Drop the victims; what was passed over is kept from now on."""
        victims = plan.victims
        for atom in plan.passed:
            self.rest.popleft()
            if atom.key not in victims:
                self.kept[atom.key] = atom
                self._loosen(atom)
        for key, atom in victims.items():
            self.kept.pop(key, None)
            self.loose.pop(key, None)
            messages, tokens, size = atom.weight()
            self.messages -= messages
            self.tokens -= tokens
            self.size -= size
            if atom is self.run:
                self.run = None
            if atom is self.latest:
                self.latest = None

    def set_summary(self, entry: Entry | None) -> None:
        """Replace the previous rolling summary."""
        for sign, one in ((-1, self.summary), (1, entry)):
            if one is not None:
                self.messages += sign
                self.tokens += sign * one.tokens
                self.size += sign * one.size
        self.summary = entry

    def set_pin(self, atom: Atom, pinned: bool) -> None:
        """Pin or unpin an atom together with the user's message of its turn."""
        if atom.pinned == pinned:
            return
        was_fixed = atom.fixed
        atom.pinned = pinned
        self._refix(atom, was_fixed)
        self._prop(atom, 1 if pinned else -1)

    def opener_of(self, atom: Atom) -> Atom | None:
        """Return the atom of the user's message that began the turn of another atom."""
        if atom.kind in (Kind.user, Kind.system):
            return None
        if atom.turn == self.turn:
            return self.opener
        openers = (a for a in self.atoms() if a.kind is Kind.user and a.turn == atom.turn)
        return next(openers, None)

    def _prop(self, atom: Atom, change: int) -> None:
        opener = self.opener_of(atom)
        if opener is not None:
            was_fixed = opener.fixed
            opener.props += change
            self._refix(opener, was_fixed)

    def _refix(self, atom: Atom, was_fixed: bool) -> None:
        if atom.fixed != was_fixed:
            sign = 1 if atom.fixed else -1
            self.fixed = tuple(  # type: ignore[assignment]  # three stay three
                f + sign * w for f, w in zip(self.fixed, atom.weight(), strict=True)
            )
        if atom.fixed:
            self.loose.pop(atom.key, None)
        self._loosen(atom)

    def _begin_turn(self, atom: Atom) -> None:
        before, self.opener = self.opener, atom
        self.turn += 1
        atom.turn = self.turn
        self.run = None
        if before is not None:
            self._loosen(before)

    def _await(self, atom: Atom, reading: Reading) -> None:
        for key in reading.calls:
            atom.open.append(key)
            self.open.setdefault(key, []).append(atom)

    def _loosen(self, atom: Atom) -> None:
        if atom.key in self.kept and not self.stays(atom):
            self.loose[atom.key] = atom

    def _put(self, atom: Atom, entry: Entry) -> None:
        atom.entries.append(entry)
        self.latest = atom
        self._weigh(atom, (1, entry.tokens, entry.size))

    def _weigh(self, atom: Atom, change: tuple[int, int, int]) -> None:
        self.messages += change[0]
        self.tokens += change[1]
        self.size += change[2]
        if atom.fixed:
            messages, tokens, size = self.fixed
            self.fixed = (messages + change[0], tokens + change[1], size + change[2])

    def atoms(self) -> Iterator[Atom]:
        """Yield every atom in order."""
        return chain(self.kept.values(), self.rest)

    def sections(self, left_out: Plan | None = None) -> Iterator[Atom | Entry]:
        """Yield atoms in order, with the summary after the leading system messages."""
        gone = left_out.victims if left_out is not None else {}
        summary = self.summary
        for atom in self.atoms():
            if summary is not None and (atom.kind is not Kind.system or atom.key not in self.kept):
                yield summary
                summary = None
            if atom.key not in gone:
                yield atom
        if summary is not None:
            yield summary

    def entries(self) -> Iterator[Entry]:
        """Yield every stored message in order."""
        for section in self.sections():
            if isinstance(section, Entry):
                yield section
            else:
                yield from section.entries

    def dump(self) -> dict[str, Any]:
        """Return plain data for `Ledger.load`."""
        return {
            "kept": [atom.dump() for atom in self.kept.values()],
            "rest": [atom.dump() for atom in self.rest],
            "turn": self.turn,
            "summary": None if self.summary is None else self.summary.dump(),
            **({} if self.lost is None else {"lost": self.lost}),
        }

    @classmethod
    def load(cls, data: dict[str, Any]) -> Ledger:
        """Create a ledger from what `dump` returned; everything else is derived from it."""
        ledger = cls()
        ledger.turn, ledger.lost = data["turn"], data.get("lost")
        rest = [Atom.load(atom) for atom in data["rest"]]
        ledger.kept = {atom.key: atom for atom in map(Atom.load, data["kept"])}
        if rest:
            ledger.rest = deque(rest)
        if data["summary"] is not None:
            ledger.set_summary(Entry(*data["summary"]))
        for atom in ledger.atoms():
            ledger._weigh(atom, atom.weight())
            if atom.kind is Kind.user and atom.turn == ledger.turn:
                ledger.opener = atom
            for key in atom.open:
                ledger.open.setdefault(key, []).append(atom)
        for atom in list(ledger.kept.values()):
            ledger._loosen(atom)
        ledger.run = ledger._find_run()
        return ledger

    def _find_run(self) -> Atom | None:
        last = None
        for atom in self.atoms():
            if atom.kind is Kind.system:
                continue
            if last is not None and last.reasoned and _is_aside(atom.kind, atom.entries[0].message):
                continue
            last = atom
        if (
            last is None
            or last.family != RESPONSES
            or last.kind not in (Kind.model, Kind.reasoning)
        ):
            return None
        answered = any(e.message.get("type") in ANSWERS for e in last.entries)
        return None if answered else last


def _is_aside(kind: Kind, message: Message) -> bool:
    """Return True if this is model text that nothing ties to the response around it."""
    return kind is Kind.model and message.get("role") == "assistant" and not is_linked(message)
