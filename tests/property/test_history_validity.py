"""Whatever is said, in whatever order: the stored list is valid, bounded, and nothing is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floodline.errors import PinsTooLarge
from floodline.history import Conversation, check
from floodline.history._atoms import OURS
from history_messages import HOSTED, SHAPES, Message, OpenAI, Responses

STEPS = ("user", "system", "says", "calls", "answer", "answer", "late", "again", "greet", "pin")
bounds = st.fixed_dictionaries(
    {
        "max_messages": st.one_of(st.none(), st.integers(1, 14)),
        "max_tokens": st.one_of(st.none(), st.integers(20, 900)),
        "max_bytes": st.integers(400, 4000),
        "max_message_bytes": st.one_of(st.none(), st.integers(300, 600)),
    }
)


class Shelf:
    """An archive that numbers what it is given."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, Message]] = []

    def put(self, conversation: str, messages: list[tuple[int, Message]]) -> None:
        self.rows += messages

    def page(self, conversation: str, **_: Any) -> list[tuple[int, Message]]:
        return sorted(self.rows, key=lambda row: row[0])


class Talk:
    """A random conversation as some program would lead it, results out of order included."""

    def __init__(self, shape: OpenAI, draw: Any) -> None:
        self.shape, self.draw = shape, draw
        self.open: list[str] = []
        self.old: list[str] = ["never-called"]
        self.count = 0
        self.said: list[Message] = []

    def step(self, what: str) -> list[Message]:
        self.count += 1
        text = f"number {self.count} " + "ä" * self.draw(st.sampled_from([0, 0, 20, 150, 900]))
        shape = self.shape
        if what == "system":
            return [shape.system(text[:20])]
        if what == "calls":
            new = [f"c{self.count}_{i}" for i in range(self.draw(st.integers(1, 4)))]
            self.open += new
            said = shape.calls(text, new, reasoning=self.draw(st.booleans()))
            return self._among_hosted(said) if isinstance(shape, Responses) else said
        if what == "answer" and self.open:
            chosen = self.draw(st.lists(st.sampled_from(self.open), min_size=1, unique=True))
            self.open = [key for key in self.open if key not in chosen]
            self.old += chosen
            return self._results(text, chosen)
        if what == "late":
            mixed = self.draw(st.sampled_from([[], self.open[:1]]))
            self.open = self.open[len(mixed) :]
            return self._results(text, [self.draw(st.sampled_from(self.old)), *mixed])
        if what == "greet":
            return [*shape.says(text), {"type": "of_next_year", "text": text}]
        if what == "says":
            thought = shape.provider == "responses" and self.draw(st.booleans())
            return [*(shape.calls(text, [], reasoning=True) if thought else ()), *shape.says(text)]
        self.old += self.open
        self.open = []
        return [shape.user(text)]

    def _among_hosted(self, said: list[Message]) -> list[Message]:
        """A response with what the provider ran itself, and what it asks for, between its items."""
        items: list[Message] = []
        for item in said:
            hosted = self.draw(st.lists(st.sampled_from(HOSTED), max_size=3))
            items += [*map(Responses().hosted, hosted), item]
        if self.draw(st.booleans()):
            self.open.append(f"mcpr_{self.count}")
            items.append(Responses().asks(self.open[-1]))
        return items

    def _results(self, text: str, ids: list[str]) -> list[Message]:
        nested = self.draw(st.booleans())
        if self.draw(st.booleans()) and not any(key.startswith("mcpr_") for key in ids):
            return self.shape.results(text, ids, nested=nested)
        parts = [self._answer(f"{text} {key}", key, nested=nested) for key in ids]
        return [message for part in parts for message in part]

    def _answer(self, text: str, key: str, *, nested: bool) -> list[Message]:
        if key.startswith("mcpr_"):
            return [Responses().approves(key)]
        return self.shape.results(text, [key], nested=nested)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.provider)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data(), limits=bounds, steps=st.lists(st.sampled_from(STEPS), max_size=40))
def test_at_every_step_the_list_is_valid_bounded_and_complete(
    shape: OpenAI, data: st.DataObject, limits: dict[str, Any], steps: list[str]
) -> None:
    shelf = Shelf()
    conversation = Conversation(archive=shelf, **limits)
    talk = Talk(shape, data.draw)
    accepted: list[Message] = []
    for what in ["user", *steps]:
        if what == "pin":
            _pin(conversation, data.draw(st.integers(0, 30)))
            continue
        messages = [accepted[-1]] if what == "again" and "id" in accepted[-1] else talk.step(what)
        for message in messages:
            message.setdefault("id", f"m{len(accepted)}")
            known = message in accepted
            try:
                conversation.append(message)
            except PinsTooLarge:
                assert message.get("role") == "system"
                continue
            if not known:
                accepted.append(message)
            _look(conversation, shape.provider, data.draw(st.integers(1, 900)), accepted)
            _nothing_is_lost(conversation, shelf, accepted)
    _comes_back_equal(conversation)


def _pin(conversation: Conversation, index: int) -> None:
    try:
        if index < len(conversation):
            conversation.pin(index)
        elif len(conversation):
            conversation.unpin(index % len(conversation))
    except PinsTooLarge:
        pass


def _look(conversation: Conversation, provider: str, tokens: int, original: list[Message]) -> None:
    assert check(conversation, provider, original=original) == []
    for window in (conversation.window(None, provider), conversation.window(tokens, provider)):
        assert check(window, provider, in_flight=False, original=original) == []
    first = next((m for m in conversation if m.get("role") != "system"), None)
    assert first is not None
    assert first.get("role") == "user"
    _bounds_hold(conversation)
    _totals_are_right(conversation)


def _bounds_hold(conversation: Conversation) -> None:
    """Above a bound stands only what must stay: pins, the last user's message, calls in flight."""
    keeper = conversation._keeper
    if keeper._exceeded() is not None:
        assert all(keeper.ledger.stays(atom) for atom in keeper.ledger.atoms())


def _totals_are_right(conversation: Conversation) -> None:
    ledger = conversation._keeper.ledger
    entries = list(ledger.entries())
    assert ledger.messages == len(entries) == len(conversation.messages)
    assert ledger.size == sum(entry.size for entry in entries)
    assert ledger.tokens == sum(entry.tokens for entry in entries)
    fixed = [atom.weight() for atom in ledger.atoms() if atom.fixed] or [(0, 0, 0)]
    assert ledger.fixed == tuple(sum(column) for column in zip(*fixed, strict=True))


def _nothing_is_lost(conversation: Conversation, shelf: Shelf, accepted: list[Message]) -> None:
    entries = list(conversation._keeper.ledger.entries())
    stored = [(e.seq, e.message) for e in entries if e.origin != OURS]
    together: dict[int, list[Message]] = {}
    for seq, message in [*shelf.rows, *stored]:
        together.setdefault(seq, []).append(message)
    assert sorted(together) == list(range(len(accepted)))
    for seq, message in enumerate(accepted):
        originals = [found for found in together[seq] if found == message]
        assert len(originals) == 1, (seq, message, together[seq])


def _comes_back_equal(conversation: Conversation) -> None:
    data = json.loads(json.dumps(conversation.__floodline_dump__()))
    again = Conversation.__floodline_load__(data)
    assert again == conversation
    assert again.messages == conversation.messages
    assert again.__floodline_dump__() == conversation.__floodline_dump__()
    _totals_are_right(again)
    assert again.window() == conversation.window()
