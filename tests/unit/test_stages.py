from __future__ import annotations

import asyncio
import gc
import runpy
import threading
from pathlib import Path

import pytest

from floodline import Conversation, GCController, MemoryTracker, Sessions
from floodline.errors import ConfigError, StageTooLarge
from floodline.history import check
from floodline.stages import AutoSummarizingConversationStage, MemoryBoundedStage
from memory_fakes import MIB, FakeMemory

PATIENCE = 100.0  # a safety net, not a measure
EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline.py"


@pytest.fixture
def memory():
    return FakeMemory(10 * MIB)


class Ring:
    """Frees made-up memory when the collector finds it."""

    def __init__(self, memory, size):
        self.memory, self.size, self.me = memory, size, self

    def __del__(self):
        self.memory.grow(-self.size)


# ---- bounded stages


def test_a_plain_stage_returns_its_value_and_its_metrics(memory):
    def load(context, *, size):
        memory.grow(size)
        return context + 1

    stage = MemoryBoundedStage(load, probe=memory)
    result = stage(5, size=3 * MIB)
    assert (result.value, result.stage) == (6, load.__qualname__)
    assert (result.growth, result.peak, result.peak_growth) == (3 * MIB, 13 * MIB, 3 * MIB)
    assert result.seconds >= 0
    assert result.collected is None


def test_an_async_stage_is_awaited(memory):
    async def load(context):
        memory.grow(MIB)
        await asyncio.sleep(0)
        return context + 1

    result = asyncio.run(MemoryBoundedStage(load, name="load", probe=memory)(5))
    assert (result.value, result.stage, result.growth) == (6, "load", MIB)


def test_an_object_with_an_async_call_is_an_async_stage(memory):
    class Load:
        async def __call__(self, context):
            return context

    stage = MemoryBoundedStage(Load(), probe=memory)
    assert stage.name.endswith("Load")
    assert asyncio.run(stage(5)).value == 5


def test_a_stage_that_grew_by_the_threshold_is_followed_by_a_collection(memory):
    def load(_):
        memory.grow(5 * MIB)
        Ring(memory, 4 * MIB)

    stage = MemoryBoundedStage(load, threshold="4 MiB", probe=memory)
    gc.disable()
    try:
        result = stage(None)
    finally:
        gc.enable()
    assert result.collected.reclaimed == 4 * MIB
    assert (result.growth, result.peak_growth) == (MIB, 5 * MIB)


def test_without_a_threshold_nothing_is_collected(memory):
    stage = MemoryBoundedStage(lambda _: memory.grow(500 * MIB), threshold=None, probe=memory)
    assert stage(None).collected is None


def test_a_plain_stage_above_the_hard_limit_fails_after_its_end(memory):
    ended = []

    def load(_):
        memory.grow(3 * MIB)
        ended.append(True)

    stage = MemoryBoundedStage(load, name="load", hard_limit="2 MiB", probe=memory)
    with pytest.raises(StageTooLarge, match="stage 'load' grew by 3 MiB, above hard_limit=2 MiB"):
        stage(None)
    assert ended == [True]
    assert issubclass(StageTooLarge, MemoryError)


def test_an_async_stage_above_the_hard_limit_is_cancelled_and_cleans_up(memory):
    cleaned = []

    async def load(_):
        try:
            memory.grow(3 * MIB)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    stage = MemoryBoundedStage(
        load, threshold=MIB, hard_limit="2 MiB", every=0.001, probe=memory, name="load"
    )
    with pytest.raises(StageTooLarge):
        asyncio.run(stage(None))
    assert cleaned == [True]
    assert stage.tracker.stages["load"].failed == 1
    assert stage._collector.stats().collections == 1


def test_an_async_stage_that_ends_above_the_hard_limit_fails(memory):
    async def load(_):
        memory.grow(3 * MIB)

    with pytest.raises(StageTooLarge):
        asyncio.run(MemoryBoundedStage(load, hard_limit="2 MiB", probe=memory)(None))


def test_the_error_of_a_stage_goes_on(memory):
    def plain(_):
        raise KeyError("k")

    async def coroutine(_):
        raise KeyError("k")

    stage = MemoryBoundedStage(plain, name="s", probe=memory)
    with pytest.raises(KeyError):
        stage(None)
    assert stage.tracker.stages["s"].failed == 1
    stage = MemoryBoundedStage(coroutine, name="s", probe=memory)
    with pytest.raises(KeyError):
        asyncio.run(stage(None))
    assert stage.tracker.stages["s"].failed == 1


def test_a_stage_that_is_cancelled_from_outside_is_cancelled(memory):
    inside = []

    async def load(_):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            inside.append("cancelled")
            raise

    async def main():
        task = asyncio.create_task(MemoryBoundedStage(load, probe=memory)(None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert inside == ["cancelled"]


def test_a_stage_that_cancels_itself_is_cancelled(memory):
    async def load(_):
        raise asyncio.CancelledError

    async def main():
        with pytest.raises(asyncio.CancelledError):
            await MemoryBoundedStage(load, probe=memory, hard_limit=MIB)(None)

    asyncio.run(main())


def test_a_tracker_and_a_collector_can_be_shared(memory):
    tracker, collector = MemoryTracker(probe=memory), GCController(probe=memory)
    options = {"tracker": tracker, "collector": collector, "threshold": MIB}
    for name in ("a", "b"):
        MemoryBoundedStage(lambda _: memory.grow(2 * MIB), name=name, **options)(None)
    assert list(tracker.stages) == ["a", "b"]
    assert collector.stats().collections == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stage": 5}, "stage=5 cannot be called"),
        ({"stage": print, "threshold": "much"}, "threshold='much'"),
        ({"stage": print, "hard_limit": 0}, "hard_limit=0"),
        ({"stage": print, "every": 0}, "every=0"),
    ],
)
def test_what_cannot_work_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        MemoryBoundedStage(**options)


# ---- conversations


def take(stage, **context):
    return asyncio.run(stage(context))


def test_a_turn_appends_question_and_reply():
    seen = []

    def respond(window):
        seen.append(list(window))
        return "fine"

    stage = AutoSummarizingConversationStage(respond)
    context = take(stage, messages="how are you?", other=1)
    assert seen == [[{"role": "user", "content": "how are you?"}]]
    assert context["reply"] == "fine"
    assert context["other"] == 1
    assert "messages" not in context
    assert list(context["conversation"]) == [
        {"role": "user", "content": "how are you?"},
        {"role": "assistant", "content": "fine"},
    ]


def test_without_respond_the_window_is_the_answer():
    stage = AutoSummarizingConversationStage()
    take(stage, messages={"role": "user", "content": "a"})
    context = take(stage, messages=[{"role": "assistant", "content": "b"}])
    assert [message["content"] for message in context["window"]] == ["a", "b"]
    assert "reply" not in context


def test_respond_may_be_async_and_may_answer_nothing_or_messages():
    replies = iter([None, {"role": "assistant", "content": "late"}])

    async def respond(_window):
        return next(replies)

    stage = AutoSummarizingConversationStage(respond)
    assert take(stage, messages="a")["reply"] is None
    take(stage, messages="b")
    assert [message["content"] for message in stage.conversation] == ["a", "b", "late"]


def test_thousands_of_turns_stay_bounded_valid_and_summarised():
    stage = AutoSummarizingConversationStage(
        lambda window: f"reply to {window[-1]['content']}", max_messages=20
    )

    async def main():
        for n in range(2000):
            context = await stage({"messages": f"question {n}"})
            assert len(stage.conversation) <= 40  # twice the bound while a summary is made
            assert not check(context["window"])

    asyncio.run(main())
    assert stage.conversation.summary is not None
    assert stage.conversation[-1]["content"] == "reply to question 1999"


def test_the_conversation_of_a_session_is_used_and_gets_the_summariser():
    called = threading.Event()

    def summarise(messages):
        called.set()
        return "a summary"

    stage = AutoSummarizingConversationStage(lambda _: "ok", summarise=summarise)
    sessions = Sessions(lambda: Conversation(max_messages=6))

    async def main():
        for n in range(30):
            with sessions.use("alice") as conversation:
                context = await stage({"conversation": conversation, "messages": f"q{n}"})
                assert context["conversation"] is conversation
            await asyncio.sleep(0)

    asyncio.run(main())
    assert called.wait(PATIENCE)  # it runs in a thread of its own
    assert len(stage.conversation) == 0
    sessions.shutdown()


def test_the_window_can_be_smaller_than_what_is_kept():
    stage = AutoSummarizingConversationStage(lambda _: "ok", window_tokens=30)
    for n in range(10):
        context = take(stage, messages=f"question number {n}")
    assert len(context["window"]) < len(stage.conversation)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"respond": 5}, "respond=5 cannot be called"),
        ({"summarise": 5}, "summarise=5 cannot be called"),
        ({"conversation": Conversation(), "max_messages": 5}, "max_messages and conversation="),
    ],
)
def test_a_conversation_stage_that_cannot_work_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        AutoSummarizingConversationStage(**options)


def test_a_conversation_can_be_given():
    conversation = Conversation(max_messages=4)
    assert AutoSummarizingConversationStage(conversation=conversation).conversation is conversation


def test_something_else_than_a_conversation_is_refused():
    with pytest.raises(ConfigError, match=r"conversation=\[\] in the context must be"):
        take(AutoSummarizingConversationStage(), conversation=[], messages="a")


# ---- the example


def test_the_example_pipeline_follows_each_stage(capsys):
    example = runpy.run_path(str(EXAMPLE))
    tracker = asyncio.run(example["main"](5))
    assert {name: stage.count for name, stage in tracker.stages.items()} == dict.fromkeys(
        ("load", "rank", "ask", "talk"), 5
    )
    assert "the last reply: I have read" in capsys.readouterr().out


def test_the_example_pipeline_runs_without_a_tracker():
    example = runpy.run_path(str(EXAMPLE))
    stages = [("add", lambda context: {**context, "b": 2}), ("nothing", lambda context: None)]
    assert asyncio.run(example["Pipeline"](stages).run({"a": 1})) == {"a": 1, "b": 2}


def test_turns_that_come_fast_are_summarised_all_the_same():
    def summarise(messages):
        return f"{sum('question' in str(message) for message in messages)} questions"

    talk = AutoSummarizingConversationStage(
        lambda _window: "fine", summarise=summarise, max_messages=6
    )

    async def chat():
        for turn in range(50):
            context = await talk({"messages": f"question {turn}"})
        return context

    context = asyncio.run(chat())
    left = context["conversation"].stats().left
    assert "count" not in left
    assert left["summary"] >= 90
    assert "questions" in str(context["window"][0])


def test_a_summary_whose_loop_was_closed_is_not_waited_for():
    async def summarise(_messages):
        await asyncio.Event().wait()

    talk = AutoSummarizingConversationStage(summarise=summarise, max_messages=4)

    async def turns(count):
        for turn in range(count):
            await talk({"messages": f"question {turn}"})

    asyncio.run(turns(5))
    asyncio.run(asyncio.wait_for(turns(1), PATIENCE))
    assert talk.conversation.stats().summaries == 0


def test_a_summary_that_takes_too_long_does_not_keep_a_turn():
    go = threading.Event()

    def summarise(_messages):
        go.wait(PATIENCE)
        return "late"

    talk = AutoSummarizingConversationStage(
        summarise=summarise, max_messages=4, summary_timeout=0.01
    )

    async def chat():
        for turn in range(8):
            await talk({"messages": f"question {turn}"})

    asyncio.run(chat())
    go.set()
    assert talk.conversation.stats().summary_failures >= 1


def test_a_plain_stage_is_watched_with_a_given_tracker_too(memory):
    seen = threading.Event()

    def probe():
        if memory.size > 100 * MIB:
            seen.set()
        return memory.size

    def load(_context):
        memory.grow(200 * MIB)
        for _ in range(2):  # what is seen twice was also kept once
            assert seen.wait(PATIENCE)
            seen.clear()
        memory.grow(-200 * MIB)

    tracker = MemoryTracker(probe=probe)
    stage = MemoryBoundedStage(load, name="load", every=0.001, hard_limit="64 MiB", tracker=tracker)
    with pytest.raises(StageTooLarge):
        stage({})
    assert tracker.stages["load"].peak == 210 * MIB


def test_a_plain_function_around_an_async_stage_is_followed_to_its_end(memory):
    async def load(size):
        with tracker.stage("inner"):
            memory.grow(size)
            await asyncio.sleep(0)
        if size > 50 * MIB:
            await asyncio.Event().wait()
        return size

    tracker = MemoryTracker(probe=memory)
    stage = MemoryBoundedStage(
        lambda size: load(size), name="load", every=0.001, hard_limit="64 MiB", tracker=tracker
    )
    result = asyncio.run(stage(8 * MIB))
    assert (result.value, result.growth) == (8 * MIB, 8 * MIB)
    assert (tracker.stages["load"].count, tracker.stages["load"].own) == (1, 0)
    with pytest.raises(StageTooLarge):
        asyncio.run(stage(100 * MIB))
    assert (tracker.stages["load"].count, tracker.stages["load"].failed) == (2, 1)
    assert tracker.stats().open == 0
