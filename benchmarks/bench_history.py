"""Conversation against langchain-core's `trim_messages`: `python benchmarks/bench_history.py`.

If autogen-core is installed, the windows of its contexts are checked too.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages, convert_to_openai_messages
from langchain_core.messages.utils import count_tokens_approximately, trim_messages

from floodline.history import Conversation, check
from measure import Row, at_least_faster, at_most, best, show

SIZES = (1_000, 10_000, 100_000)
WINDOW = 8_000
BATCH = 500
Message = dict[str, Any]


def talk(turns: int, *, seed: int = 7) -> Iterator[list[Message]]:
    """Yield turns of an agent: a question, some parallel calls with results, an answer."""
    dice = random.Random(seed)
    for n in range(turns):
        turn: list[Message] = [{"role": "user", "content": f"question {n}: " + "why " * 20}]
        for step in range(dice.randint(0, 3)):
            ids = [f"call_{n}_{step}_{i}" for i in range(dice.randint(1, 4))]
            calls = [
                {"id": key, "type": "function", "function": {"name": "look", "arguments": "{}"}}
                for key in ids
            ]
            turn.append({"role": "assistant", "content": "", "tool_calls": calls})
            dice.shuffle(ids)
            turn += [
                {"role": "tool", "tool_call_id": key, "content": "row " * dice.randint(5, 60)}
                for key in ids
            ]
        turn.append({"role": "assistant", "content": f"answer {n}: " + "because " * 30})
        yield turn


def messages(count: int, *, seed: int = 7) -> list[Message]:
    """Return the first `count` messages or a few more, because turns are not cut."""
    found: list[Message] = []
    for turn in talk(count, seed=seed):
        if len(found) >= count:
            break
        found += turn
    return found


def bounded() -> Conversation:
    return Conversation(max_messages=None, max_bytes=None, max_tokens=WINDOW)


def roomy() -> Conversation:
    return Conversation(max_messages=10**7, max_bytes="100 GiB")


def append_cost() -> list[Row]:
    """Time one append after 1,000 and 100,000 messages, with constant trimming and with none."""
    rows = []
    for name, make in (("window of 8,000 tokens", bounded), ("nothing trimmed", roomy)):
        works = []
        for size in SIZES:
            conversation = make()
            for turn in talk(size // 4):
                conversation.extend(turn)
                if conversation.stats().appended >= size:
                    break
            works.append(_appends(conversation))
        small, middle, large = best(works, number=BATCH, repeats=40)
        rows.append(at_most(f"append, {name}: 10k / 1k messages", middle, small, 1.5))
        rows.append(at_most(f"append, {name}: 100k / 1k messages", large, small, 1.5))
    return rows


def _appends(conversation: Conversation) -> Callable[[], None]:
    numbers = iter(range(10**9))

    def work() -> None:
        for _ in range(BATCH // 2):
            n = next(numbers)
            conversation.append({"role": "user", "content": f"question {n}: " + "why " * 20})
            conversation.append({"role": "assistant", "content": f"answer {n}"})

    return work


def window_cost() -> list[Row]:
    """Time one more turn and its window of 8,000 tokens, after so many messages."""
    rows = []
    for size, target in zip(SIZES, (10, 100, 1_000), strict=True):
        said = messages(size)
        conversation = bounded()
        for message in said:
            conversation.append(message)
        peer = convert_to_messages(said)
        ours, theirs = _our_turns(conversation), _peer_turn(peer)
        (our_time,) = best([ours], number=20, repeats=7)
        (peer_time,) = best([theirs], repeats=3)
        rows.append(
            at_least_faster(f"turn + window, {size:,} messages", our_time, peer_time, target)
        )
    return rows


def _our_turns(conversation: Conversation) -> Callable[[], None]:
    turns = talk(10**6, seed=8)

    def work() -> None:
        for _ in range(20):
            for message in next(turns):
                conversation.append(message)
            conversation.window()

    return work


def _peer_turn(said: list[BaseMessage]) -> Callable[[], None]:
    turns = talk(10**6, seed=8)

    def work() -> None:
        said.extend(convert_to_messages(next(turns)))
        _langchain(said, WINDOW, start_on="human", include_system=True)

    return work


def _langchain(said: list[BaseMessage], limit: int, **options: Any) -> list[BaseMessage]:
    return trim_messages(
        said, max_tokens=limit, token_counter=count_tokens_approximately, **options
    )


def validity(windows: int = 100) -> bool:
    """Print how many windows of each an API would reject, at random sizes and positions."""
    makers: dict[str, Callable[[list[Message], int], list[Message]]] = {
        "floodline Conversation.window": _window,
        "langchain-core trim_messages, defaults": _langchain_window(),
        "langchain-core trim_messages, start_on=human": _langchain_window(
            start_on="human", include_system=True
        ),
        "the last n messages": lambda before, limit: before[-max(1, limit // 60) :],
        **_autogen(),
    }
    shapes = {"many turns": messages(500, seed=3), "one task, 200 steps": one_task(200)}
    print(f"\nwindows that are empty or that an API would reject, out of {windows} each")
    print(f"{'':48}{''.join(f'{name:>22}' for name in shapes)}")
    ok = True
    for name, make in makers.items():
        counts = [_rejected(make, said, windows) for said in shapes.values()]
        ok = ok and (make is not _window or not any(counts))
        print(f"{name:48}{''.join(f'{count:22}' for count in counts)}")
    return ok


def one_task(steps: int) -> list[Message]:
    """Return the most common shape of an agent: one question, then nothing but calls."""
    said: list[Message] = [{"role": "user", "content": "find the bug"}]
    for n in range(steps):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        said.append({"role": "assistant", "content": "", "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": f"c{n}", "content": "row " * 40})
    return said


def _rejected(
    make: Callable[[list[Message], int], list[Message]], said: list[Message], windows: int
) -> int:
    dice = random.Random(3)
    complete = [i for i, m in enumerate(said[:-1]) if said[i + 1]["role"] != "tool"]
    complete = [i for i in complete if "tool_calls" not in said[i]]
    places = [(dice.choice(complete[20:]) + 1, dice.randint(200, 4000)) for _ in range(windows)]
    found = (make(said[:end], limit) for end, limit in places)
    return sum(not window or bool(check(window, "openai")) for window in found)


def _window(before: list[Message], limit: int) -> list[Message]:
    return Conversation(before, max_messages=None, max_tokens=10**6).window(limit)


def _langchain_window(**options: Any) -> Callable[[list[Message], int], list[Message]]:
    def make(before: list[Message], limit: int) -> list[Message]:
        window = _langchain(convert_to_messages(before), limit, **options)
        found = convert_to_openai_messages(window)
        assert isinstance(found, list)
        return found

    return make


def _autogen() -> dict[str, Callable[[list[Message], int], list[Message]]]:
    try:
        from autogen_core import FunctionCall, models
        from autogen_core.model_context import (
            BufferedChatCompletionContext,
            TokenLimitedChatCompletionContext,
        )
    except ImportError:
        return {}

    class Client(models.ChatCompletionClient):
        """Counts like the others; nothing else is needed."""

        def count_tokens(self, messages: Any, **_: Any) -> int:
            return sum(len(str(m.content)) // 4 + 4 for m in messages)

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(name)

    Client.__abstractmethods__ = frozenset()

    def to_peer(message: Message) -> Any:
        if message["role"] == "user":
            return models.UserMessage(content=message["content"], source="user")
        if "tool_calls" in message:
            calls = [FunctionCall(c["id"], "{}", "look") for c in message["tool_calls"]]
            return models.AssistantMessage(content=calls, source="agent")
        return models.AssistantMessage(content=message["content"], source="agent")

    def to_results(found: list[Message]) -> Any:
        results = [
            models.FunctionExecutionResult(
                content=message["content"], name="look", call_id=message["tool_call_id"]
            )
            for message in found
        ]
        return models.FunctionExecutionResultMessage(content=results)

    def window(make: Callable[[int], Any]) -> Callable[[list[Message], int], list[Message]]:
        async def run(before: list[Message], limit: int) -> list[Message]:
            context = make(limit)
            originals = {}
            for is_result, group in itertools.groupby(before, lambda m: m["role"] == "tool"):
                found = list(group)
                for some in [found] if is_result else [[message] for message in found]:
                    peer = to_results(some) if is_result else to_peer(some[0])
                    originals[peer.model_dump_json()] = some
                    await context.add_message(peer)
            window = await context.get_messages()
            return [message for m in window for message in originals[m.model_dump_json()]]

        return lambda before, limit: asyncio.run(run(before, limit))

    client = Client()
    return {
        "autogen-core TokenLimitedChatCompletionContext": window(
            lambda limit: TokenLimitedChatCompletionContext(client, token_limit=limit)
        ),
        "autogen-core BufferedChatCompletionContext": window(
            lambda limit: BufferedChatCompletionContext(max(1, limit // 60))
        ),
    }


def memory() -> bool:
    """Print the memory of 1,000 turns with the default bounds."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    empty = [Conversation() for _ in range(100)]
    young = (tracemalloc.get_traced_memory()[0] - before) / len(empty)
    before = tracemalloc.get_traced_memory()[0]
    conversation = Conversation()
    for turn in talk(1_000):
        for message in turn:
            text = message["content"] * 20
            conversation.append({**message, "content": text})
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    print(f"\nmemory: {held / 1e6:.2f} MB after 1,000 turns, {young:.0f} B when empty (< 5 MB)")
    return held < 5e6


def main() -> int:
    ok = show("append", append_cost())
    ok &= show("keep a window of 8,000 tokens, per turn", window_cost())
    ok &= validity()
    ok &= memory()
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
