"""Rolling summaries: beside the conversation, never in its way, never instead of it."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import os
import threading
import weakref

import pytest

from event_loops import events_of
from floodline.errors import ConfigError
from floodline.history import Conversation, check, extractive_summary
from floodline.history._summaries import worker as worker_module
from floodline.history._summaries.summary import refuse_text
from floodline.history._summaries.worker import Workers
from floodline.telemetry import recent
from history_messages import SHAPES, Gemini, OpenAI, Responses
from worker_threads import PATIENCE, until

openai, responses, gemini = OpenAI(), Responses(), Gemini()
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.provider)
HEADING = "[Summary of earlier messages that were cut]\n"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Summary:
    """A summariser that the test lets go on, with what it is to answer."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked: list = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, messages):
        self.asked.append(messages)
        assert self.go.wait(PATIENCE)
        answer = self.answers.pop(0) if self.answers else f"summary {len(self.asked)}"
        if isinstance(answer, BaseException):
            raise answer
        return answer


def finish(conversation):
    """Wait until the summary under way is put aside."""
    job = conversation._keeper.summariser.job
    until(lambda: job is None or job.done)


def say(conversation, shape, numbers):
    for i in numbers:
        conversation.append(shape.user(f"question {i}"))
        conversation.extend(shape.says(f"answer {i}"))


@every_shape
def test_the_older_half_is_replaced_by_a_summary_at_the_next_append(shape):
    summarise = Summary()
    conversation = Conversation([shape.system("x")], max_messages=9, summarise=summarise)
    say(conversation, shape, range(4))
    before = conversation.messages
    conversation.append(shape.user("question 4"))
    finish(conversation)
    assert conversation.messages[:9] == before
    assert conversation.summary is None
    assert conversation.stats().summary_running
    conversation.extend(shape.says("answer 4"))
    assert summarise.asked == [before[1:7]]
    assert f"{HEADING}summary 1" in str(conversation.summary).replace("\\n", "\n")
    assert conversation[1] == conversation.summary
    assert conversation[:2] == [shape.system("x"), conversation.summary]
    assert conversation[2:4] == before[7:]
    assert check(conversation, shape.provider) == []
    assert check(conversation.window(provider=shape.provider), shape.provider) == []
    stats = conversation.stats()
    assert (stats.summaries, stats.left) == (1, {"summary": 6})


def test_a_summary_rolls_the_one_before_is_summarised_too():
    summarise = Summary()
    conversation = Conversation(max_messages=8, summarise=summarise)
    for i in range(40):
        say(conversation, openai, [i])
        finish(conversation)
        assert len(conversation) <= 16
    assert len(summarise.asked) > 3
    assert summarise.asked[1][0]["content"] == f"{HEADING}summary 1"
    assert sum("summary" in str(m) for m in conversation) == 1


def test_a_finished_summary_is_applied_by_a_save_too():
    conversation = Conversation(max_messages=4, summarise=Summary())
    say(conversation, openai, range(3))
    finish(conversation)
    data = json.loads(json.dumps(conversation.__floodline_dump__()))
    again = Conversation.__floodline_load__(data)
    assert again.summary == conversation.summary
    assert again.summary["content"] == f"{HEADING}summary 1"
    assert again == conversation


def test_a_summary_that_ends_between_a_save_and_its_comparison_waits_for_the_next():
    """[T4] a store compares its first save with the state right afterwards."""
    summarise = Summary()
    summarise.go.clear()
    conversation = Conversation(max_messages=4, summarise=summarise)
    say(conversation, openai, range(3))
    saved = conversation.__floodline_dump__()
    summarise.go.set()
    finish(conversation)
    assert conversation.__floodline_dump__() == saved
    assert conversation.__floodline_dump__() != saved
    assert conversation.summary is not None


def test_appends_do_not_wait_and_stay_at_twice_the_bound_then_plain_trimming():
    """[H3]"""
    summarise = Summary()
    summarise.go.clear()
    kept: list = []
    conversation = Conversation(max_messages=6, summarise=summarise, archive=kept.extend)
    seen = []
    for i in range(20):
        conversation.append(openai.user(f"{i}"))
        seen.append(len(conversation))
    assert max(seen) == 12
    assert seen[12] == 6
    summarise.go.set()
    finish(conversation)
    conversation.append(openai.user("20"))
    assert conversation[0]["content"] == f"{HEADING}summary 1"
    texts = [m["content"] for m in [*kept, *conversation[1:]]]
    assert texts == [str(i) for i in range(21)]


def test_a_failed_summary_loses_nothing_and_a_breaker_opens():
    clock = Clock()
    summarise = Summary(*[RuntimeError("down")] * 3)
    kept: list = []
    conversation = Conversation(
        max_messages=4, summarise=summarise, archive=kept.extend, clock=clock, name="alice"
    )
    for i in range(30):
        conversation.append(openai.user(f"{i}"))
        finish(conversation)
    stats = conversation.stats()
    assert (stats.summaries, stats.summary_failures, stats.breaker_open) == (0, 3, True)
    assert len(summarise.asked) == 3
    assert len(conversation) == 4
    assert [m["content"] for m in [*kept, *conversation]] == [str(i) for i in range(30)]
    failures = [e for e in recent() if e.kind == "summary_failed" and e.source == "alice"]
    assert [e.fields["breaker_open"] for e in failures[-3:]] == [False, False, True]
    assert "RuntimeError" in failures[-1].fields["why"]
    clock.now += 601
    assert not conversation.stats().breaker_open
    conversation.append(openai.user("30"))
    finish(conversation)
    conversation.append(openai.user("31"))
    stats = conversation.stats()
    assert (stats.summaries, stats.breaker_open) == (1, False)


def test_a_summary_that_takes_too_long_is_given_up():
    clock = Clock()
    summarise = Summary()
    summarise.go.clear()
    conversation = Conversation(
        max_messages=4, summarise=summarise, clock=clock, summary_timeout="5 s", name="slow"
    )
    for i in range(5):
        conversation.append(openai.user(f"{i}"))
    clock.now = 6.0
    conversation.append(openai.user("5"))
    stats = conversation.stats()
    assert (stats.summary_failures, stats.summaries) == (1, 0)
    assert events_of("summary_failed", "slow")[-1].fields["why"] == "no answer for 6 s"
    summarise.go.set()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("x" * 9000, "8.79 KiB"),
        (None, "NoneType"),
        ({"content": "x"}, "dict"),
        ("Error: model overloaded", "error"),
        ("Traceback (most recent call last):\n...", "error"),
        ('{"error": {"code": 429}}', "error"),
        ("503 Service Unavailable", "error"),
        ("HTTP/1.1 502", "error"),
        ("RateLimitError: slow down", "error"),
        ("Rate limit reached for gpt", "error"),
        ("I'm sorry, but I can't summarise this.", "error"),
        ("\ud800", "cannot be stored"),
    ],
)
def test_what_is_no_summary_is_refused(text, why):
    conversation = Conversation(max_messages=2, summarise=Summary(text))
    for i in range(4):
        conversation.append(openai.user(f"{i}"))
        finish(conversation)
    assert conversation.stats().summary_failures == 1
    failed = [event for event in recent() if event.kind == "summary_failed"]
    assert why in failed[-1].fields["why"]


@pytest.mark.parametrize(
    "text",
    [
        "The user asked how errors are handled: they are logged.",
        "Errors in the build were fixed.",
        "400 rows were read; the user wants the rest.",
        "I asked for the invoice of May.",
    ],
)
def test_a_summary_may_speak_of_errors(text):
    assert refuse_text(text, 1000) == ""


def test_a_counter_that_fails_on_the_summary_refuses_it():
    def count(message):
        if HEADING in message["content"]:
            raise RuntimeError("odd")
        return 1

    conversation = Conversation(max_messages=2, summarise=Summary(), count_tokens=count)
    for i in range(4):
        conversation.append(openai.user(f"{i}"))
        finish(conversation)
    assert conversation.summary is None
    assert conversation.stats().summary_failures == 1


def test_an_async_summariser_is_a_task_of_the_running_loop():
    loops = []

    async def summarise(messages):
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return "short"

    async def main():
        conversation = Conversation(max_messages=4, summarise=functools.partial(summarise))
        say(conversation, openai, range(3))
        await conversation._keeper.summariser.job.task
        conversation.append(openai.user("next"))
        assert loops == [asyncio.get_running_loop()]
        return conversation

    conversation = asyncio.run(main())
    assert conversation.summary["content"] == f"{HEADING}short"


def test_an_async_summariser_without_a_loop_gets_one_of_its_own():
    class Model:
        async def __call__(self, messages):
            return "short"

    conversation = Conversation(max_messages=4, summarise=Model())
    say(conversation, openai, range(3))
    finish(conversation)
    conversation.append(openai.user("next"))
    assert conversation.summary["content"] == f"{HEADING}short"


def test_an_async_summary_that_takes_too_long_is_cancelled():
    clock = Clock()
    cancelled = []

    async def summarise(messages):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def main():
        conversation = Conversation(max_messages=2, summarise=summarise, clock=clock)
        for i in range(3):
            conversation.append(openai.user(f"{i}"))
        await asyncio.sleep(0)
        task = conversation._keeper.summariser.job.task
        clock.now = 61.0
        conversation.append(openai.user("3"))
        conversation.configure(summarise=None)
        await asyncio.wait([task], timeout=PATIENCE)
        return conversation

    conversation = asyncio.run(main())
    assert cancelled[0] is True
    assert conversation.stats().summary_failures == 1


def test_an_async_summary_that_raises_or_whose_loop_is_gone_has_failed():
    async def raises(messages):
        raise RuntimeError("down")

    async def hangs(messages):
        await asyncio.Event().wait()

    async def main(summarise):
        conversation = Conversation(max_messages=2, summarise=summarise)
        for i in range(3):
            conversation.append(openai.user(f"{i}"))
        await asyncio.sleep(0)
        return conversation

    for summarise in (raises, hangs):
        conversation = asyncio.run(main(summarise))
        conversation.append(openai.user("3"))
        assert conversation.stats().summary_failures == 1


def test_giving_up_a_task_of_a_closed_loop_is_harmless():
    async def hangs(messages):
        await asyncio.Event().wait()

    loop = asyncio.new_event_loop()

    async def main():
        conversation = Conversation(max_messages=2, summarise=hangs)
        for i in range(3):
            conversation.append(openai.user(f"{i}"))
        await asyncio.sleep(0)
        return conversation

    conversation = loop.run_until_complete(main())
    task = conversation._keeper.summariser.job.task
    loop.close()
    conversation.clear()
    assert len(conversation) == 0
    task._log_destroy_pending = False
    task.get_coro().close()


def test_clear_and_configure_give_up_the_summary_under_way():
    summarise = Summary()
    conversation = Conversation(max_messages=2, summarise=summarise)
    for change in (conversation.clear, lambda: conversation.configure(summarise=summarise)):
        for i in range(3):
            conversation.append(openai.user(f"{i}"))
        finish(conversation)
        change()
        assert not conversation.stats().summary_running
    assert conversation.summary is None


def test_pins_and_the_last_turn_are_not_summarised_away():
    summarise = Summary()
    conversation = Conversation(max_messages=6, summarise=summarise)
    conversation.append(openai.user("pinned"), pin=True)
    say(conversation, openai, range(2))
    conversation.append(openai.user("the task"))
    conversation.extend(openai.calls("hm", ["a"]))
    finish(conversation)
    conversation.pin(1)
    conversation.extend(openai.calls("hm", ["b"]))
    contents = [m["content"] for m in conversation]
    assert contents[0] == f"{HEADING}summary 1"
    assert contents[1:3] == ["pinned", "question 0"]
    assert "the task" in contents
    assert check(conversation) == []


def test_a_turn_that_was_the_last_when_the_summary_began_keeps_its_user():
    summarise = Summary()
    conversation = Conversation([openai.user("the task")], max_messages=5, summarise=summarise)
    for i in range(3):
        conversation.extend(openai.calls(f"step {i}", [f"c{i}"]))
        conversation.extend(openai.results("1", [f"c{i}"]))
    finish(conversation)
    conversation.append(openai.user("next task"))
    assert conversation[1]["content"] == "the task"
    assert check(conversation) == []
    conversation.configure(summarise=None)
    say(conversation, openai, range(6))
    assert check(conversation) == []
    assert "the task" not in [m["content"] for m in conversation]
    assert len(conversation) <= 5


def test_a_summary_that_comes_a_turn_later_leaves_nothing_behind_for_ever():
    summarise = Summary()
    summarise.go.clear()
    conversation = Conversation([openai.user("the task")], max_messages=5, summarise=summarise)
    for i in range(3):
        conversation.extend(openai.calls(f"step {i}", [f"c{i}"]))
        conversation.extend(openai.results("1", [f"c{i}"]))
    conversation.append(openai.user("next task"))
    summarise.go.set()
    finish(conversation)
    conversation.extend(openai.says("well"))
    assert [m["content"] for m in conversation[1:3]] == ["the task", "step 2"]
    conversation.configure(summarise=None)
    say(conversation, openai, range(6))
    assert "the task" not in [m["content"] for m in conversation]
    assert len(conversation) <= 5


def test_what_was_pinned_and_unpinned_meanwhile_leaves_with_its_summary():
    summarise = Summary()
    summarise.go.clear()
    conversation = Conversation(max_messages=4, summarise=summarise)
    for i in range(5):
        conversation.append(openai.user(f"{i}"))
    conversation.pin(openai.user("0"))
    for i in range(5, 9):
        conversation.append(openai.user(f"{i}"))
    assert [m["content"] for m in conversation] == ["0", "6", "7", "8"]
    conversation.unpin(0)
    summarise.go.set()
    finish(conversation)
    conversation.append(openai.user("9"))
    assert [m["content"] for m in conversation[1:]] == ["6", "7", "8", "9"]
    with pytest.raises(ValueError, match="the summary"):
        conversation.pin(0)


def test_a_summary_may_be_all_that_is_left():
    conversation = Conversation(max_messages=2, summarise=Summary())
    for i in range(3):
        conversation.extend(openai.says(f"{i}"))
    finish(conversation)
    conversation._keeper.apply_summary()
    conversation._keeper.cut(conversation._keeper.ledger.plan(lambda *_: False), "count")
    assert conversation.messages == [conversation.summary]


def test_if_nothing_may_leave_nothing_is_summarised():
    summarise = Summary()
    conversation = Conversation([openai.user("task")], max_messages=2, summarise=summarise)
    conversation.extend(openai.calls("hm", ["a", "b", "c"]))
    conversation.extend(openai.results("1", ["b"]))
    assert summarise.asked == []
    assert len(conversation) == 3


def test_a_summary_takes_at_most_a_quarter_of_the_bounds():
    told = []

    def summarise(messages, max_bytes):
        told.append(max_bytes)
        return "x" * max_bytes

    for limits, most in (
        ({}, 8192),
        ({"max_bytes": 2000}, 500),
        ({"max_tokens": 300, "max_bytes": None}, 300),
    ):
        conversation = Conversation(max_messages=4, summarise=summarise, **limits)
        say(conversation, openai, range(3))
        finish(conversation)
        conversation.append(openai.user("next"))
        assert told[-1] == most
        assert conversation.stats().summaries == 1


def test_a_summary_for_which_there_is_no_room_is_refused_or_goes():
    conversation = Conversation(max_messages=1, summarise=Summary(), name="roomless")
    for i in range(4):
        conversation.append(openai.user(f"{i}"))
        finish(conversation)
    assert conversation.summary is None
    assert "no room" in events_of("summary_failed", "roomless")[-1].fields["why"]
    conversation = Conversation(max_messages=3, summarise=Summary())
    for i in range(6):
        conversation.append(openai.user(f"{i}"))
        finish(conversation)
    assert conversation.summary is not None
    conversation.append(openai.system("a"))
    conversation.configure(summarise=None)
    assert conversation.summary is not None
    conversation.append(openai.system("b"))
    assert conversation.summary is None
    assert [m["content"] for m in conversation] == ["5", "a", "b"]


def test_a_summary_made_for_gemini_is_sent_to_others_in_their_shape():
    conversation = Conversation(max_messages=4, summarise=Summary())
    say(conversation, gemini, range(3))
    finish(conversation)
    conversation.append(gemini.user("next"))
    assert conversation.summary == {"role": "user", "parts": [{"text": f"{HEADING}summary 1"}]}
    first = conversation.window(provider="openai")[0]
    assert first == {"role": "user", "content": f"{HEADING}summary 1"}
    assert "parts" in conversation.window()[0]


def test_while_the_archive_fails_summarised_messages_stay():
    def archive(messages):
        raise OSError("disk full")

    conversation = Conversation(max_messages=4, summarise=Summary(), archive=archive)
    say(conversation, openai, range(3))
    finish(conversation)
    conversation.append(openai.user("next"))
    assert conversation.summary is not None
    assert [m["content"] for m in conversation[1:3]] == ["question 0", "answer 0"]


def test_the_summary_settings_are_checked():
    for wrong in (
        {"max_summary_bytes": 0},
        {"summary_timeout": 0},
        {"summary_failures": 0},
        {"summary_retry": -1},
    ):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            Conversation(**wrong)
    with pytest.raises(ConfigError, match="cannot be called"):
        Conversation(summarise="short")


@every_shape
def test_the_built_in_summariser_needs_no_model(shape):
    conversation = Conversation(
        max_messages=10, summarise=extractive_summary, max_summary_bytes=600
    )
    for i in range(30):
        conversation.append(shape.user(f"Please find invoice number {i}. It is urgent."))
        conversation.extend(shape.calls(f"Looking for invoice {i}.", [f"find_{i % 2}"]))
        conversation.extend(shape.results("row " * 50, [f"find_{i % 2}"]))
        conversation.extend(shape.says(f"The invoice number {i} is of May."))
        finish(conversation)
    stats = conversation.stats()
    assert stats.summaries > 2
    assert stats.summary_failures == 0
    text = str(conversation.summary)
    assert "Please find invoice number" in text
    assert "Tools called:" in text
    assert len(text.encode()) < 900


def test_an_extract_is_never_longer_than_asked_for():
    messages = [openai.user("wörter " * 500), *openai.says("Satz. " * 500), {"odd": 1}]
    for limit in (1, 20, 100, 1000, "4 KiB"):
        text = extractive_summary(messages, max_bytes=limit)
        assert len(text.encode()) <= (4096 if limit == "4 KiB" else limit)
    assert extractive_summary([{"odd": 1}]) == "1 messages without text."


def test_an_extract_keeps_what_the_summary_before_it_kept():
    first = extractive_summary([openai.user("Book a train to Basel.")])
    carried = {"role": "user", "content": HEADING + first}
    text = extractive_summary([carried, openai.user("And a hotel.")])
    assert "Book a train to Basel." in text
    assert "And a hotel." in text


def test_a_builtin_without_a_signature_can_summarise():
    conversation = Conversation(max_messages=2, summarise=str)
    for i in range(3):
        conversation.append(openai.user(f"{i}"))
    finish(conversation)
    conversation.append(openai.user("3"))
    assert conversation.summary is not None
    Conversation(summarise=min)


def test_workers_are_few_and_end_when_there_is_no_work():
    workers = Workers(limit=2, idle=0.05)
    gate, done = threading.Event(), threading.Semaphore(0)

    def work():
        gate.wait(PATIENCE)
        done.release()

    for _ in range(10):
        workers.submit(work)
    assert workers.threads() == 2
    gate.set()
    for _ in range(10):
        assert done.acquire(timeout=PATIENCE)
    until(lambda: workers.threads() == 0)
    workers.submit(work)
    assert done.acquire(timeout=PATIENCE)


def test_a_worker_that_finds_work_when_it_wants_to_leave_stays():
    workers = Workers(limit=1, idle=0.01)
    workers._threads = workers._waiting = 1
    workers._queue.put(lambda: None)
    assert workers._leave() is False
    workers._queue.get()
    workers._waiting = 1
    assert workers._leave() is True


def test_without_threads_at_exit_nothing_is_raised(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(worker_module.threading.Thread, "start", refuse)
    workers = Workers()
    workers.submit(lambda: None)
    assert workers.threads() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_workers_of_its_own():
    summarise = Summary()
    conversation = Conversation(max_messages=2, summarise=summarise)
    for i in range(3):
        conversation.append(openai.user(f"{i}"))
    finish(conversation)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            mine = Conversation(max_messages=2, summarise=Summary())
            for i in range(3):
                mine.append(openai.user(f"{i}"))
            finish(mine)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_a_conversation_that_is_dropped_during_its_summary_is_freed():
    summarise = Summary()
    summarise.go.clear()
    conversation = Conversation(max_messages=2, summarise=summarise)
    for i in range(3):
        conversation.append(openai.user(f"{i}"))
    gone = weakref.ref(conversation)
    del conversation
    gc.collect()
    assert gone() is None
    summarise.go.set()


def test_a_summary_that_was_cancelled_before_it_began_is_not_waited_for():
    from floodline.history._summaries.summary import Job

    async def main():
        job = Job(frozenset(), 0.0)
        job.task = asyncio.create_task(job.run_here(lambda: "never asked"))
        job.task.cancel()
        await asyncio.wait((job.task,))
        await asyncio.wait_for(job.ended(1000), 20)
        return job.done

    assert asyncio.run(main()) is False
