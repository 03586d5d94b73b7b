"""Summaries that come early, late or never, archives that fail, saves and loads in between."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floodline.errors import ArchiveFailed, PinsTooLarge
from floodline.history import Conversation, check
from floodline.history._atoms import OURS
from floodline.stores import Codec
from history_messages import SHAPES, Message, OpenAI

STEPS = ("user", "says", "calls", "calls", "answer", "answer", "system", "pin", "unpin")
EVENTS = ("run", "fail", "break", "mend", "save", "clock", "usage")
ANSWERS = ("a fine summary", "", "Error: overloaded", "x" * 10_000)


class World:
    """What is outside a conversation: its archive, its summariser, the time."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, Message]] = []
        self.broken = False
        self.now = 0.0
        self.waiting: list[Any] = []
        self.answers: list[str | None] = []

    def put(self, conversation: str, messages: list[tuple[int, Message]]) -> None:
        if self.broken:
            raise OSError("disk full")
        self.rows += messages

    def page(self, conversation: str, **_: Any) -> list[tuple[int, Message]]:
        return self.rows

    def clock(self) -> float:
        return self.now

    def submit(self, work: Any) -> None:
        self.waiting.append(work)

    def summarise(self, messages: list[Message]) -> str:
        assert messages
        answer = self.answers.pop() if self.answers else "a summary"
        if answer is None:
            raise RuntimeError("down")
        return answer

    def settle(self, answer: str | None) -> None:
        if self.waiting:
            self.answers.append(answer)
            self.waiting.pop(0)()


def step(shape: OpenAI, what: str, n: int, opened: list[str], draw: Any) -> list[Message]:
    if what == "says":
        return shape.says(f"number {n}")
    if what == "system":
        return [shape.system(f"number {n}")]
    if what == "calls":
        new = [f"c{n}_{i}" for i in range(draw(st.integers(1, 3)))]
        opened += new
        return shape.calls(f"number {n}", new, reasoning=draw(st.booleans()))
    if what == "answer" and opened:
        return shape.results(f"number {n} " + "x" * draw(st.integers(0, 300)), [opened.pop(0)])
    opened.clear()
    return [shape.user(f"number {n}")]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.provider)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    data=st.data(),
    most=st.integers(3, 12),
    steps=st.lists(st.sampled_from(STEPS + EVENTS), max_size=60),
)
def test_whatever_happens_the_list_is_valid_twice_its_bound_at_most_and_complete(
    shape: OpenAI, data: st.DataObject, most: int, steps: list[str]
) -> None:
    world = World()
    with patch("floodline.history._summaries.summary.workers", world):
        conversation = Conversation(
            max_messages=most,
            max_message_bytes=250,
            archive=world,
            summarise=world.summarise,
            clock=world.clock,
        )
        accepted: list[Message] = []
        opened: list[str] = []
        for n, what in enumerate(["user", *steps]):
            if what in EVENTS:
                conversation = happen(what, conversation, world, data.draw)
            elif what in ("pin", "unpin"):
                pin(what, conversation, data.draw(st.integers(0, 20)))
            else:
                for message in step(shape, what, n, opened, data.draw):
                    try:
                        conversation.append(message)
                    except (ArchiveFailed, PinsTooLarge):
                        opened.clear()
                        break
                    accepted.append(message)
                    look(conversation, shape.provider, most, world)
            complete(conversation, world, accepted)


def happen(what: str, conversation: Conversation, world: World, draw: Any) -> Conversation:
    if what == "run":
        world.settle(draw(st.sampled_from(ANSWERS)))
    elif what == "fail":
        world.settle(None)
    elif what in ("break", "mend"):
        world.broken = what == "break"
    elif what == "clock":
        world.now += draw(st.sampled_from([30, 61, 700]))
    elif what == "usage":
        conversation.observe_usage(prompt_tokens=draw(st.integers(1, 5000)))
    else:
        codec = Codec(Conversation)
        payload = codec.encode(conversation)
        codec.check(conversation, payload)
        again: Conversation = codec.decode(payload)
        assert again == conversation
        again.configure(archive=world, summarise=world.summarise)
        again._keeper.clock = world.clock
        return again
    return conversation


def pin(what: str, conversation: Conversation, index: int) -> None:
    try:
        if index < len(conversation) and conversation[index] != conversation.summary:
            getattr(conversation, what)(index)
    except PinsTooLarge:
        pass


def look(conversation: Conversation, provider: str, most: int, world: World) -> None:
    assert check(conversation, provider) == []
    assert check(conversation.window(provider=provider), provider, in_flight=False) == []
    ledger = conversation._keeper.ledger
    entries = list(ledger.entries())
    assert ledger.messages == len(entries)
    assert ledger.size == sum(entry.size for entry in entries)
    if not world.broken:
        free = [atom for atom in ledger.atoms() if not ledger.stays(atom)]
        assert len(conversation) <= 2 * most or not free


def complete(conversation: Conversation, world: World, accepted: list[Message]) -> None:
    keeper = conversation._keeper
    stored = [(e.seq, e.message) for e in keeper.ledger.entries() if e.origin != OURS]
    found: dict[int, list[Message]] = {}
    for seq, message in [*world.rows, *keeper.outbox.owed, *stored]:
        found.setdefault(seq, []).append(message)
    assert sorted(found) == list(range(len(accepted)))
    for seq, message in enumerate(accepted):
        assert found[seq].count(message) == 1
