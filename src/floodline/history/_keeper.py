"""The one place where messages enter and leave the stored list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from floodline import telemetry
from floodline._clock import Clock
from floodline.errors import ArchiveFailed, PinsTooLarge
from floodline.history._archive import NewRows, Outbox, Session
from floodline.history._atoms import AS_APPENDED, CHANGED, OURS, Atom, Entry
from floodline.history._bounds import Bounds, Counters
from floodline.history._cut import Plan
from floodline.history._formats.markers import pick, summary_message
from floodline.history._formats.shapes import RESPONSES, Kind, Message, is_linked, read
from floodline.history._formats.shorten import weigh
from floodline.history._intake import Incoming, SeenIds, id_of, receive
from floodline.history._ledger import Ledger
from floodline.history._summaries.summary import Job, Summariser
from floodline.history._tokens import CountTokens, count_with, estimate

HARD = 2  # times the bound: where waiting for a summary or an archive ends
WAITING_BYTES = 64 * 1024**2  # of messages that wait for the save of their session


class Keeper:
    """A ledger with its bounds, its archive and its summariser."""

    __slots__ = (
        "bounds", "clock", "correction", "count", "counters", "defers", "family", "ids", "ledger",
        "left", "name", "outbox", "seq", "session", "summariser",
    )  # fmt: skip  # one name a line would fill the page

    def __init__(self, bounds: Bounds, name: str, clock: Clock) -> None:
        self.bounds, self.name, self.clock = bounds, name, clock
        self.ledger = Ledger()
        self.counters = Counters()
        self.count: CountTokens = estimate
        self.outbox: Outbox | None = None
        self.session: Session | None = None
        self.defers = False  # the session is saved, and the archive is called then
        self.summariser: Summariser | None = None
        self.left: dict[str, int] | None = None
        self.ids: SeenIds | None = None
        self.family: str | None = None
        self.correction = 1.0
        self.seq = 0

    def take_in(self, messages: Iterable[Message], *, pin: bool, repeats: bool = False) -> int:
        """Store messages, all or none, and trim; return how many were neither known nor late."""
        self.apply_summary()
        self._push_back()
        incoming = self._receive(messages, pin, repeats)
        self._check_pins(incoming, pin)
        stored = 0
        for one in incoming:
            stored += self._store(one, pin)
        self.settle()
        return stored

    def _receive(self, messages: Iterable[Message], pin: bool, repeats: bool) -> list[Incoming]:
        """Read and measure everything before anything is stored; known ids are dropped here."""
        incoming: list[Incoming] = []
        first = self.ledger.messages
        known: set[str | int] = set()
        for i, message in enumerate(messages):
            own = None if repeats else id_of(message)
            if own is not None:
                if own in known or (self.ids is not None and self.ids.seen(own)):
                    self.counters.duplicates += 1
                    continue
                known.add(own)
            place = f"$[{first + i}]"
            incoming.append(receive(message, place, self.bounds, self.count, pin=pin))
        return incoming

    def _check_pins(self, incoming: list[Incoming], pin: bool) -> None:
        fixed = [one for one in incoming if pin or one.reading.kind is Kind.system]
        if fixed:
            tokens, size = sum(one.tokens for one in fixed), sum(one.size for one in fixed)
            self.check_fixed(len(fixed), tokens, size)

    def check_fixed(self, messages: int, tokens: int, size: int) -> None:
        """Raise `PinsTooLarge` if what is fixed would exceed a bound with these added."""
        fixed = self.ledger.fixed
        total = (fixed[0] + messages, (fixed[1] + tokens) * self.correction, fixed[2] + size)
        if self.bounds.exceeded(*total):
            limits = self.bounds
            raise PinsTooLarge(
                f"system and pinned messages would be {total[0]} messages, {total[1]:.0f} tokens, "
                f"{total[2]} bytes, and the bounds are {limits.max_messages}, {limits.max_tokens}, "
                f"{limits.max_bytes}; unpin some, or raise the bound"
            )

    def _store(self, one: Incoming, pin: bool) -> bool:
        seq, self.seq = self.seq, self.seq + 1
        self.counters.appended += 1
        reading = one.reading
        self.family = reading.family or self.family
        origin = AS_APPENDED
        if one.original is not None:
            self.counters.shortened += 1
            origin = self._owe(seq, one.original)
        entry = Entry(one.message, one.size, one.tokens, seq, origin)
        stored = True
        if reading.kind is Kind.result:
            stored = self._store_result(entry, one, pin)
        else:
            self._add(entry, one, pin)
        own = id_of(one.message)
        if own is not None:
            self.ids = self.ids or SeenIds()
            self.ids.add(own, self.ledger.messages)
        return stored

    def _add(self, entry: Entry, one: Incoming, pin: bool) -> None:
        ledger = self.ledger
        if ledger.lost is not None and not pin and self._is_of_lost(one):
            if entry.origin == AS_APPENDED:
                self._owe(entry.seq, entry.message)
            self._count_left(ledger.lost, 1)
            self.counters.unread += 1
            return
        if one.reading.kind is Kind.user and (ledger.open or ledger.run is not None):
            closed, reasoning = ledger.close_calls(self._measure)
            self.counters.closed_calls += closed
            for lost in reasoning:
                self._owe(lost.seq, lost.message)
        ledger.add(entry, one.reading, pin=pin)

    def _is_of_lost(self, one: Incoming) -> bool:
        """Return True if this item came with reasoning that was cut: it must go too."""
        reading = one.reading
        if reading.kind is Kind.system:
            return False
        if reading.family in (RESPONSES, None) and reading.kind in (Kind.model, Kind.opaque):
            return is_linked(one.message)
        self.ledger.lost = None  # another response, or the user
        return False

    def _store_result(self, entry: Entry, one: Incoming, pin: bool) -> bool:
        self.ledger.lost = None
        atoms = [self.ledger.find_open(key) for key in one.reading.results]
        first = atoms[0]
        if first is not None and all(atom is first for atom in atoms):
            self.ledger.answer(first, entry)
            if pin:
                self.ledger.set_pin(first, True)
            return True
        return self._store_parted(entry, one, atoms)

    def _store_parted(self, entry: Entry, one: Incoming, atoms: list[Atom | None]) -> bool:
        """Give each call its results; late ones go to the archive, the rest stays."""
        self.counters.late += atoms.count(None)
        if entry.origin == AS_APPENDED:
            self._owe(entry.seq, entry.message)
        family = one.reading.family
        found = list(dict.fromkeys(atom for atom in atoms if atom is not None))
        for atom in found:
            mine = [other is atom for other in atoms]
            piece = pick(entry.message, family, mine, rest=atom is found[-1])
            self.ledger.answer(atom, self._piece(piece, entry))
        if found:
            return True
        rest = pick(entry.message, family, [False] * len(atoms), rest=True)
        if not rest:
            return False
        reading = read(rest, "$")
        self._add(self._piece(rest, entry), one._replace(reading=reading), False)
        return True

    def _piece(self, message: Message, whole: Entry) -> Entry:
        size = weigh(message, "$")
        return Entry(message, size, whole.tokens * size // whole.size + 1, whole.seq, CHANGED)

    def _owe(self, seq: int, message: Message) -> int:
        """Archive an original; without an archive only the shortened message remains."""
        if self.outbox is None:
            return AS_APPENDED
        self.outbox.owe(seq, message)
        return CHANGED

    def forget_id(self, message: Message) -> None:
        """Accept a message that was taken back if it comes again."""
        own = id_of(message)
        if own is not None and self.ids is not None:
            self.ids.forget(own)

    def _measure(self, message: Message) -> tuple[int, int]:
        return weigh(message, "$"), estimate(message)

    def settle(self) -> None:
        """Bring the stored list below its bounds, or wait for a summary up to twice the bounds."""
        reason = self._exceeded()
        if reason is None:
            self.archive([])
            return
        summariser = self.summariser
        if summariser is not None and not summariser.broken:
            if not summariser.running:
                self._start_summary(summariser)
            if summariser.running and self._exceeded(HARD) is None:
                self.archive([])
                return
        self.cut(self.ledger.plan(self._fits), reason)
        summary = self.ledger.summary
        if summary is not None and self._no_room_for(summary):
            self.ledger.set_summary(None)

    def _no_room_for(self, summary: Entry) -> bool:
        """Return True if a summary and what always stays would exceed a bound on their own."""
        stays = [self.ledger.fixed, (1, summary.tokens, summary.size)]
        opener = self.ledger.opener
        if opener is not None and not opener.fixed:
            stays.append(opener.weight())
        messages, tokens, size = (sum(column) for column in zip(*stays, strict=True))
        return not self._fits(messages, tokens, size)

    def _exceeded(self, times: float = 1) -> str | None:
        ledger = self.ledger
        tokens = ledger.tokens * self.correction
        return self.bounds.exceeded(ledger.messages, tokens, ledger.size, times=times)

    def _fits(self, messages: int, tokens: int, size: int) -> bool:
        return self.bounds.exceeded(messages, tokens * self.correction, size) is None

    def _fits_half(self, messages: int, tokens: int, size: int) -> bool:
        return self.bounds.exceeded(messages, tokens * self.correction, size, times=0.5) is None

    def cut(self, plan: Plan, reason: str) -> bool:
        """Archive what the plan lets go, then drop it; it stays if the archive fails."""
        entries = plan.entries()
        if not self.archive([entry for entry in entries if entry.origin == AS_APPENDED]):
            return False
        if entries:
            self._count_left(reason, len(entries))
            if reason != "summary":
                self._note_unread(plan)
        run = self.ledger.run
        if run is not None and run.reasoned and run.key in plan.victims:
            self.ledger.lost = reason
        self.ledger.commit(plan)
        return True

    def archive(self, new: list[Entry]) -> bool:
        """Hand entries to the archive, if there is one; return False if it refused them."""
        box = self.outbox
        if box is None:
            return True
        sent = 0 if box.holds_back(self.defers) else len(new) + len(box.owed)
        accepted = box.deliver(new, defers=self.defers)
        self.counters.archived += sent if accepted else 0
        return accepted

    def delivery(self) -> Callable[[], bool] | None:
        """Return what hands over messages that waited for a save; None if there are none."""
        box = self.outbox
        due = box is not None and not box.waits and box.archive is not None and box.owed
        return self._deliver_now if due else None

    def _deliver_now(self) -> bool:
        assert self.outbox is not None
        sent, accepted = len(self.outbox.owed), self.outbox.deliver_owed()
        self.counters.archived += sent if accepted else 0
        return accepted

    def _count_left(self, reason: str, messages: int) -> None:
        self.left = self.left or {}
        self.left[reason] = self.left.get(reason, 0) + messages

    def _note_unread(self, plan: Plan) -> None:
        """Report a step that fits no bound and leaves before the model has seen it."""
        last = self.ledger.latest
        if last is None or last.key not in plan.victims:
            return
        messages, tokens, size = last.weight()
        self.counters.unread += messages
        fields = {"messages": messages, "tokens": tokens, "bytes": size}
        telemetry.emit("history_step_above_bound", self.name, **fields)

    def _push_back(self) -> None:
        """At twice the bound, refuse everything until the archive has accepted something."""
        box = self.outbox
        if box is not None and box.holds_back(self.defers) and box.owed_bytes > WAITING_BYTES:
            raise ArchiveFailed(
                f"{len(box.owed)} messages with {box.owed_bytes} bytes wait for the save of their "
                "session; nothing was appended: save first (hold.save(), or leave the use)"
            )
        if box is None or not box.failed_in_a_row or not self._overfull(box):
            return
        self._deliver_now()  # what bounds memory may wait for the archive
        self.settle()
        if box.failed_in_a_row and self._overfull(box):
            raise ArchiveFailed(
                f"the archive refused {box.failed_in_a_row} times in a row, and the conversation "
                f"holds {self.ledger.messages} messages, twice its bound; nothing was appended: "
                "fix the archive, or configure(archive=None)"
            )

    def _overfull(self, box: Outbox) -> bool:
        messages, size = self.ledger.messages + len(box.owed), self.ledger.size + box.owed_bytes
        tokens = self.ledger.tokens * self.correction
        return self.bounds.exceeded(messages + 1, tokens, size, times=HARD) is not None

    def bind(self, session: Session) -> None:
        """Note the session, whose row log the archive may be."""
        if self.outbox is not None and self.outbox.waits:
            session.check()
        self.session = session

    def waiting_rows(self) -> list[NewRows]:
        """Return what the next save of the session shall write."""
        return self.outbox.rows() if self.outbox is not None and self.outbox.waits else []

    def forget_rows(self, rows: list[NewRows]) -> None:
        """Forget what was written, and count it."""
        written = sum(len(new) for _, new in rows)
        if self.outbox is not None and written:
            self.outbox.delivered(written)
            self.counters.archived += written

    def _start_summary(self, summariser: Summariser) -> None:
        """Start a summary of the older half, so that the next one is half a window away."""
        plan = self.ledger.plan(self._fits_half)
        if self.ledger.run is not None:  # it may still grow, and the summary would not know
            plan.victims.pop(self.ledger.run.key, None)
        messages = [entry.message for entry in plan.entries()]
        if messages:
            if self.ledger.summary is not None:
                messages.insert(0, self.ledger.summary.message)
            summariser.start(messages, frozenset(plan.victims))

    def apply_summary(self) -> None:
        """Replace what a finished summary covers with it; called inside the hold."""
        if self.summariser is None:
            return
        taken = self.summariser.take()
        if taken is None:
            return
        job, text, why = taken
        entry = None
        if not why:
            try:
                message = summary_message(self.family, text)
                size = weigh(message, "$")
                entry = Entry(message, size, count_with(self.count, message), -1, OURS)
                if self._no_room_for(entry):
                    entry, why = None, "there is no room for it alongside what must stay"
            except Exception as error:  # text that cannot be stored, or a counter that fails
                why = telemetry.describe(error)
        if entry is None:
            self._note_failure(why, self.summariser)
        else:
            self._replace(job, entry)

    def apply_at_save(self) -> None:
        """Apply a finished summary, but not in a second dump that is compared with the first.

        A store compares its first save with the conversation right after it: a summary that
        finishes between the two must wait for the next dump.
        """
        job = self.summariser.job if self.summariser is not None else None
        if job is not None and job.done and job.was_running:
            job.was_running = False
            return
        if job is not None:
            job.was_running = not job.done
        self.apply_summary()

    def _replace(self, job: Job, entry: Entry) -> None:
        self.counters.summaries += 1
        self.cut(self.ledger.plan_only(job.atoms), "summary")
        self.ledger.set_summary(entry)

    def _note_failure(self, why: str, summariser: Summariser) -> None:
        self.counters.summary_failures += 1
        telemetry.emit("summary_failed", self.name, why=why, breaker_open=summariser.broken)

    def dump(self) -> dict[str, Any]:
        """Return what `load` needs, as plain data."""
        return {
            "ledger": self.ledger.dump(),
            "counters": self.counters.as_list(),
            "left": dict(self.left or {}),
            "ids": self.ids.as_list() if self.ids is not None else [],
            "family": self.family,
            "correction": self.correction,
            "seq": self.seq,
        }

    def load(self, data: dict[str, Any]) -> None:
        """Take over what `dump` returned."""
        self.ledger = Ledger.load(data["ledger"])
        self.counters = Counters(*data["counters"])
        self.left = dict(data["left"]) or None
        self.ids = SeenIds(data["ids"]) if data["ids"] else None
        self.family, self.correction = data["family"], data["correction"]
        self.seq = data["seq"]
