"""The history of one conversation: always valid for its provider, never above its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Self, overload

from floodline._clock import Clock, checked, forward, monotonic
from floodline._units import Duration, Size, parse_count
from floodline.errors import ArchiveFailed, ConfigError
from floodline.history._archive import ArchiveLike, NewRows, Outbox, Page, Session, parse_archive
from floodline.history._arguments import (
    POLICY_NAMES,
    check_archive_id,
    checked_callable,
    make_policy,
)
from floodline.history._atoms import Atom, Entry
from floodline.history._bounds import HistoryStats, make_bounds
from floodline.history._copies import attached, duplicate, rebuild
from floodline.history._formats.shapes import Kind, Message, parse_provider
from floodline.history._keeper import Keeper
from floodline.history._newest import newest_messages, pop_newest
from floodline.history._summaries.summary import Summarise, Summariser
from floodline.history._tokens import CountTokens, estimate
from floodline.history._window import compose

_UNSET: Any = object()
_FORMAT = 1
_LEAST_CORRECTION, _MOST_CORRECTION = 0.25, 8.0


class Conversation(Sequence[Message]):
    """A list of message dicts that trims itself at every append, between atoms only.

    Reads like a list. Each bound may be None, but not all of the first three. A message that cannot
    be accepted raises `MalformedMessage` with its place, and nothing of that call is stored. System
    messages and pins above a bound raise `PinsTooLarge`. What is cut goes to `archive` first; if
    that fails it stays, and at twice the bound `append` raises `ArchiveFailed`. Not thread-safe:
    use it inside the hold of its session.
    """

    __slots__ = ("__weakref__", "_archive_id", "_keeper", "_policy", "_window_tokens")

    __hash__ = None  # type: ignore[assignment]  # like a list: equal by content, and it changes

    def __init__(
        self,
        messages: Iterable[Message] = (),
        *,
        max_messages: int | None = 50,
        max_tokens: int | None = None,
        max_bytes: Size | None = "1 MiB",
        max_message_bytes: Size | None = "256 KiB",
        count_tokens: CountTokens = estimate,
        summarise: Summarise | None = None,
        archive: ArchiveLike | None = None,
        archive_id: str | None = None,
        max_summary_bytes: Size = "8 KiB",
        summary_timeout: Duration = "60 s",
        summary_failures: int = 3,
        summary_retry: Duration = "10 min",
        name: str = "conversation",
        clock: Clock | None = None,
    ) -> None:
        bounds = make_bounds(max_messages, max_tokens, max_bytes, max_message_bytes)
        self._policy = make_policy(
            max_summary_bytes, summary_timeout, summary_failures, summary_retry
        )
        check_archive_id(archive_id)
        given = checked(checked_callable(clock or monotonic, "clock"))
        self._keeper = Keeper(bounds, name, forward(given))
        self._archive_id = archive_id
        self._window_tokens = 0
        self.configure(archive=archive, summarise=summarise, count_tokens=count_tokens)
        if messages:
            self.extend(messages)

    def configure(
        self,
        *,
        archive: ArchiveLike | None = _UNSET,
        summarise: Summarise | None = _UNSET,
        count_tokens: CountTokens = _UNSET,
    ) -> None:
        """Attach what is not data, after a load or to change it; what is not given stays as it is.

        `archive=None` continues without one, and forgets what an archive has not accepted yet.
        """
        keeper = self._keeper
        if archive is not _UNSET:
            checked, before = parse_archive(archive), keeper.outbox
            keeper.outbox = None
            if checked is not None:
                keeper.outbox = Outbox(checked, self._archive_id, keeper.name)
                keeper.outbox.take_over(before)
                self._archive_id = keeper.outbox.id
        if summarise is not _UNSET:
            if keeper.summariser is not None:
                keeper.summariser.forget()
            keeper.summariser = None
            if summarise is not None:
                policy = self._policy.within(keeper.bounds.max_bytes, keeper.bounds.max_tokens)
                keeper.summariser = Summariser(
                    checked_callable(summarise, "summarise"), policy, keeper.clock
                )
        if count_tokens is not _UNSET:
            keeper.count = checked_callable(count_tokens, "count_tokens")

    def append(self, message: Message, *, pin: bool = False) -> bool:
        """Store one message and trim; return False if its id is known or its call is closed."""
        return self._keeper.take_in((message,), pin=pin) == 1

    def extend(
        self, messages: Iterable[Message], *, pin: bool = False, repeats: bool = False
    ) -> int:
        """Store messages, all or none, then trim; return how many were neither known nor late.

        `repeats` also stores messages whose id is known, where ids are not unique.
        """
        return self._keeper.take_in(messages, pin=pin, repeats=repeats)

    def pop(self) -> Message | None:
        """Remove the newest message and return it as it was appended; None if there is none.

        What was shortened or cut comes back from the archive, if that can be read; from
        `archive="session"` it is deleted there, too. A call whose result is popped is open again.
        """
        return pop_newest(self._keeper)

    def newest(self, limit: int) -> list[Message]:
        """Return the newest messages, at most `limit`, in order and without parting an atom."""
        return newest_messages(self._keeper.ledger, parse_count(limit, "limit"))

    def pin(self, which: int | Message) -> None:
        """Keep a message, by index or by itself, with its atom and the user's message before it.

        `PinsTooLarge` if what must stay would then exceed a bound.
        """
        ledger = self._keeper.ledger
        atom = self._atom_of(which)
        opener = ledger.opener_of(atom)
        new = [a for a in (atom, opener) if a is not None and not a.fixed]
        weights = [a.weight() for a in new] or [(0, 0, 0)]
        self._keeper.check_fixed(*(sum(column) for column in zip(*weights, strict=True)))
        ledger.set_pin(atom, True)

    def unpin(self, which: int | Message) -> None:
        """Let a pinned message leave again when its turn comes; harmless if it is not pinned."""
        self._keeper.ledger.set_pin(self._atom_of(which), False)
        self._keeper.settle()

    def window(self, max_tokens: int | None = None, provider: str | None = None) -> list[Message]:
        """Return what to send: a list of the stored dicts that the provider's API accepts.

        With `max_tokens` it is cut by the same rules as the stored list, which does not change.
        The provider is inferred if None. For Anthropic and Gemini system messages are left out:
        send `system()` separately.
        """
        keeper = self._keeper
        family = parse_provider(provider) or keeper.family
        plan = None
        if max_tokens is not None:
            limit = parse_count(max_tokens, "max_tokens") / keeper.correction
            plan = keeper.ledger.plan(lambda _messages, tokens, _size: tokens <= limit)
        messages, self._window_tokens = compose(keeper.ledger, plan, family)
        return messages

    def system(self) -> list[Message]:
        """Return the system and developer messages, for providers that take them separately."""
        atoms = (atom for atom in self._keeper.ledger.atoms() if atom.kind is Kind.system)
        return [entry.message for atom in atoms for entry in atom.entries]

    def observe_usage(self, *, prompt_tokens: int) -> None:
        """Correct the token counts with what the provider charged for the last `window()`.

        Counts that were too low are corrected at once, those too high by a quarter at a time;
        messages are not counted again.
        """
        keeper = self._keeper
        counted = self._window_tokens or keeper.ledger.tokens
        if isinstance(prompt_tokens, bool) or not isinstance(prompt_tokens, int):
            raise ConfigError(
                f"prompt_tokens={prompt_tokens!r} must be the number that the provider reported"
            )
        if prompt_tokens < 1 or counted == 0:
            return
        seen = min(max(prompt_tokens / counted, _LEAST_CORRECTION), _MOST_CORRECTION)
        step = 1.0 if seen > keeper.correction else 0.25
        keeper.correction += (seen - keeper.correction) * step
        keeper.settle()

    def archived(
        self, id: str | None = None, *, before: int | None = None, limit: int = 1000
    ) -> Page:
        """Return the last archived messages, oldest first; `before=page.before` pages back.

        Needs an archive that can be read, such as `SQLiteArchive`. `id` is another conversation's
        `archive_id`.
        """
        box = self._keeper.outbox or Outbox(None, self._archive_id, self._keeper.name)
        return box.page(id, before, parse_count(limit, "limit"), self._keeper.session)

    def clear(self) -> None:
        """Remove all messages, pins and the summary; they go to the archive first.

        If the archive fails, raise `ArchiveFailed` and keep everything.
        """
        keeper = self._keeper
        entries = [e for atom in keeper.ledger.atoms() for e in atom.entries]
        new = [e for e in sorted(entries, key=lambda e: e.seq) if not e.origin]
        if not keeper.archive(new):
            raise ArchiveFailed(
                f"the archive refused {len(new)} messages; nothing was cleared: fix the archive, "
                "or configure(archive=None)"
            )
        if keeper.summariser is not None:
            keeper.summariser.forget()
        keeper.left = {**(keeper.left or {})}
        keeper.left["closed"] = keeper.left.get("closed", 0) + keeper.ledger.messages
        keeper.ledger = type(keeper.ledger)()
        keeper.ids = None
        self._window_tokens = 0

    @property
    def messages(self) -> list[Message]:
        """The stored messages as a new list of the same dicts."""
        return [entry.message for entry in self._keeper.ledger.entries()]

    @property
    def summary(self) -> Message | None:
        """The rolling summary, if there is one; it is also one of the messages."""
        entry = self._keeper.ledger.summary
        return None if entry is None else entry.message

    @property
    def tokens(self) -> int:
        """The tokens of the stored messages, corrected by the observed usage."""
        return round(self._keeper.ledger.tokens * self._keeper.correction)

    @property
    def bytes(self) -> int:
        """The bytes of the stored messages, as they are saved."""
        return self._keeper.ledger.size

    @property
    def archive_id(self) -> str | None:
        """The id of this conversation in the archive; None if it never had an archive."""
        return self._archive_id

    def stats(self) -> HistoryStats:
        """Return the current figures."""
        keeper, ledger, bounds = self._keeper, self._keeper.ledger, self._keeper.bounds
        box, summariser, done = keeper.outbox, keeper.summariser, keeper.counters
        counted = {name: getattr(done, name) for name in done.__slots__}
        return HistoryStats(
            kind="history",
            name=keeper.name,
            items=ledger.messages,
            max_items=bounds.max_messages,
            bytes=ledger.size,
            max_bytes=bounds.max_bytes,
            left=dict(keeper.left or {}),
            tokens=self.tokens,
            max_tokens=bounds.max_tokens,
            fixed=ledger.fixed[0],
            in_flight=sum(len(atoms) for atoms in ledger.open.values()),
            archive_waiting=len(box.owed) if box is not None else 0,
            archive_failures=box.failed_in_a_row if box is not None else 0,
            summary_running=summariser is not None and summariser.running,
            breaker_open=summariser is not None and summariser.broken,
            correction=round(keeper.correction, 4),
            **counted,
        )

    def __len__(self) -> int:
        return self._keeper.ledger.messages

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return self.messages[index]
        found = next(islice(self._sections(), self._position(index), None))
        return found[1].message

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conversation):
            return NotImplemented
        return self is other or self._dump() == other._dump()

    def __copy__(self) -> Self:
        return duplicate(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return duplicate(self, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        keeper, own = self._keeper, getattr(self, "__dict__", {})
        extras = (attached(keeper), keeper.clock, self._window_tokens, own)
        return rebuild, (type(self), self._dump(), *extras)

    def __repr__(self) -> str:
        ledger = self._keeper.ledger
        return f"<Conversation {ledger.messages} messages, {self.tokens} tokens, {ledger.size} B>"

    def __floodline_dump__(self) -> dict[str, Any]:
        """Return the conversation as plain data; a finished summary is applied first."""
        self._keeper.apply_at_save()
        return self._dump()

    def _dump(self) -> dict[str, Any]:
        keeper, box = self._keeper, self._keeper.outbox
        return {
            "format": _FORMAT,
            "name": keeper.name,
            "bounds": keeper.bounds.as_list(),
            "summary_policy": self._policy.as_list(),
            "archive_id": self._archive_id,
            "archive_owed": None if box is None else [list(pair) for pair in box.owed],
            **({"archive_with": box.archive} if box is not None and box.waits else {}),
            **keeper.dump(),
        }

    def __floodline_bind__(self, store: Any, name: str, id: str) -> None:
        """Note the session that this conversation is the state of, or a part of."""
        self._keeper.bind(Session(store, name, id))

    def __floodline_defer__(self) -> None:
        """Note that the session is saved, so that what is cut can wait for that."""
        self._keeper.defers = True

    def __floodline_delivery__(self) -> Callable[[], bool] | None:
        """Return what to call before a save, to hand the archive what waits for it."""
        return self._keeper.delivery()

    def __floodline_rows__(self) -> list[NewRows]:
        """Return the messages that wait, as rows to be written with the save of the session."""
        return self._keeper.waiting_rows()

    def __floodline_rows_saved__(self, rows: list[NewRows]) -> None:
        """Forget the rows that were written."""
        self._keeper.forget_rows(rows)

    @classmethod
    def __floodline_load__(cls, data: dict[str, Any]) -> Conversation:
        """Create a conversation from a dump; `configure` then attaches its callables.

        One that had an archive drops nothing until it has one again.
        """
        if data["format"] != _FORMAT:
            raise ValueError(f"format {data['format']!r} is not {_FORMAT}; use a newer floodline")
        names = ("max_messages", "max_tokens", "max_bytes", "max_message_bytes")
        conversation = cls(
            **dict(zip(names, data["bounds"], strict=True)),
            **dict(zip(POLICY_NAMES, data["summary_policy"], strict=True)),
            archive_id=data["archive_id"],
            name=data["name"],
        )
        keeper = conversation._keeper
        keeper.load(data)
        if data["archive_owed"] is not None:
            keeper.outbox = Outbox(data.get("archive_with"), data["archive_id"], keeper.name)
            for seq, message in data["archive_owed"]:
                keeper.outbox.owe(seq, message)
        return conversation

    def _sections(self) -> Iterator[tuple[Atom | None, Entry]]:
        for section in self._keeper.ledger.sections():
            if isinstance(section, Entry):
                yield None, section
            else:
                for entry in section.entries:
                    yield section, entry

    def _position(self, index: int) -> int:
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"message {index} of {length}")
        return index % length

    def _atom_of(self, which: int | Message) -> Atom:
        position = self._position(which) if isinstance(which, int) else None
        same = None
        for i, (atom, entry) in enumerate(self._sections()):
            if atom is not None and (i == position or entry.message is which):
                return atom
            if same is None and position is None and entry.message == which:
                same = atom
        if same is None:
            raise ValueError(
                f"{which!r} is not stored, or is the summary; pin a message of the list"
            )
        return same
