"""The words of the five systems, for what drives `examples/*/bounded.py`."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile

from behave import given, then, when
from driver import EXAMPLES, SessionManager, example

from floodline.memory import rss
from floodline.verify import load as load_claims
from floodline.verify import verify

CACHES = {
    "analytics cache": "AnalyticsCache",
    "status cache": "StatusCache",
    "cookie cache": "CookieCache",
    "metrics history": "MetricsHistory",
}


def _runner(context):
    runner = asyncio.Runner()
    context.add_cleanup(runner.close)
    context.run = runner.run


# the caches of a swarm


@given("the message batch of the swarm")
def make_batch(context):
    context.sent = []
    context.batch = example("swarm_caches").MessageBatch(context.sent.append)


@given("the {cache} of the swarm")
def make_cache(context, cache):
    context.cache = getattr(example("swarm_caches"), CACHES[cache])()
    context.most = 0


@when("{many:d} new entries are put into it")
def put_many(context, many):
    for n in range(many):
        context.last = f"entry-{n}"
        context.cache.put(context.last, "value")
        context.most = max(context.most, len(context.cache))


@when('entry "{name}" is put, and read again after every {step:d} of {many:d} new ones')
def put_and_read(context, name, step, many):
    context.cache.put(name, "value")
    for n in range(many):
        context.cache.put(f"entry-{n}", "value")
        if n % step == 0:
            context.cache.get(name)


@when("{count:d} messages are added")
def add_messages(context, count):
    for n in range(count):
        context.batch.add(f"message {n}")


@when("the batch is flushed")
def flush(context):
    context.batch.flush()


@when("{count:d} figures are added")
def add_figures(context, count):
    context.cache.add(range(count))
    context.last = count - 1


@when("the announced fixes are verified")
def verify_announced(context):
    _verify(context, "announced.toml")


@when("the fixes on floodline are verified")
def verify_fixed(context):
    _verify(context, "fixed.toml")


def _verify(context, file):
    claims = load_claims(EXAMPLES / "swarm_caches" / file)
    context.verdicts = [str(verify(claim).verdict) for claim in claims]


@then("it never held more than {limit:d}")
def never_more(context, limit):
    assert context.most == limit, context.most


@then("its last entry is still there")
def last_is_there(context):
    assert context.cache.get(context.last) == "value"


@then('entry "{name}" is there')
def is_there(context, name):
    assert context.cache.get(name) == "value"


@then('entry "{name}" is gone')
def is_gone(context, name):
    assert context.cache.get(name) is None


@then("{count:d} messages were sent, in batches of {size:d}")
def sent_in_batches(context, count, size):
    assert [len(batch) for batch in context.sent] == [size] * (count // size)


@then("{count:d} messages wait")
def messages_wait(context, count):
    assert len(context.batch) == count


@then("{count:d} messages were sent, and none is missing")
def all_sent(context, count):
    sent = [message for batch in context.sent for message in batch]
    assert sent == [f"message {n}" for n in range(count)]


@then("it holds the newest {count:d}")
def holds_newest(context, count):
    assert (len(context.cache), context.cache.latest()) == (count, context.last)


@then("{refuted:d} are refuted and {proved:d} is proved")
@then("{refuted:d} are refuted and {proved:d} are proved")
def verdicts_are(context, refuted, proved):
    assert context.verdicts.count("refuted") == refuted, context.verdicts
    assert context.verdicts.count("proved") == proved, context.verdicts


# the pipeline


@given("a pipeline on floodline that has taken {count:d} turns")
def make_pipeline(context, count):
    _runner(context)
    context.pipeline = example("stage_pipeline").Pipeline()
    take_turns(context, count)
    context.before = rss()


@when("it takes {count:d} turns")
def take_turns(context, count):
    async def take():
        for n in range(count):
            context.reply = await context.pipeline.turn(f"turn {n}: how high is the water?")

    context.run(take())


@when("it takes {count:d} turn")
def take_one(context, count):
    take_turns(context, count)


@when("it takes 1 turn whose context refers to itself")
def take_cycle(context):
    take_turns(context, 1)
    output = context.pipeline.last_output()
    output["self"] = output
    assert output["page"]["book"]["pages"][0] is output["page"]


@when("{count:d} events come at once")
def flood(context, count):
    for n in range(count):
        context.pipeline.emit(f"event {n}")
    context.last = count - 1


@when("a turn fails")
def fail(context):
    try:
        context.run(context.pipeline.turn("a flood"))
    except ValueError:
        return
    raise AssertionError("the turn did not fail")


@then("memory grew by less than {most:d} MB")
def grew_less(context, most):
    assert rss() - context.before < most << 20


@then("it keeps at most {most:d} messages, outputs and events")
def keeps_at_most(context, most):
    assert 0 < context.pipeline.kept() <= most


@then("the output of that turn is there")
def output_there(context):
    assert context.pipeline.last_output()["reply"] == context.reply


@then("measuring it ends")
def measuring_ends(context):
    assert "load" in str(context.pipeline.tracker.report())
    gc.collect()


@then("the newest {count:d} events are there")
def newest_events(context, count):
    first = context.last - count + 1
    assert context.pipeline.latest(count) == [f"event {first + n}" for n in range(count)]


@then("no others are kept")
def no_others(context):
    assert len(context.pipeline.latest(10_000)) == 1000


@then("the tracker has at most {most:d} samples")
def few_samples(context, most):
    assert 0 < len(context.pipeline.tracker.samples) <= most


@then('the tracker knows the stages "{one}" and "{other}"')
def knows_stages(context, one, other):
    assert {one, other} <= set(context.pipeline.tracker.stages)


@then("the conversation has at most {most:d} messages")
def short_conversation(context, most):
    assert 0 < len(context.pipeline._talk.conversation) <= most


@then("the conversation has a summary")
def has_summary(context):
    assert context.pipeline._talk.conversation.summary


# the plugin host


@given("the example host with an event bus that loses {lost:d} of {total:d} events")
def example_host(context, lost, total):
    system = example("plugin_host")
    context.bus = system.EventBus(lost=lost / total)
    context.example_host = system.PluginHost(context.bus)


@when("{count:d} sessions work in each of {rounds:d} rounds")
def work_in_rounds(context, count, rounds):
    context.entries = []
    for round_ in range(rounds):
        for n in range(count):
            context.example_host.work(f"session-{round_}-{n}", "look at the gauge")
            context.bus.emit("session.deleted", f"session-{round_}-{n}")
        context.entries.append(context.example_host.entries())


@then("after round {settled:d} the host never held more entries than after it")
def flat(context, settled):
    assert max(context.entries[settled:]) <= 20 * 35, context.entries
    assert max(context.entries[settled:]) == max(context.entries[settled : settled + 5])


# the worker


@given("a session manager that waits {minutes:d} minutes after the last work")
def lingering_manager(context, minutes):
    context.run(context.worker.chats.shutdown())
    context.worker = SessionManager(context.clock, idle="30 min", linger=minutes * 60)
    worker = context.worker
    context.add_cleanup(lambda: context.run(worker.chats.shutdown()))


@then('"{session}" is in memory')
def in_memory(context, session):
    assert session in context.worker.chats


def _example_worker(context):
    if hasattr(context, "example_worker"):
        return
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    context.add_cleanup(folder.cleanup)
    os.environ["WORKER_STORE"] = f"sqlite:///{folder.name}/worker.db"
    context.example_worker = example("session_worker").SessionWorker()
    context.add_cleanup(lambda: context.run(context.example_worker.shutdown()))
    context.streams = {}


@given('the example worker with a stream for "{session}" that has begun')
def begin_stream(context, session):
    _example_worker(context)

    async def begin():
        stream = context.example_worker.stream(session, "how high is the water?")
        assert await anext(stream) == "You"
        return stream

    context.streams[session] = context.run(begin())


@given('the example worker with work waiting for "{session}"')
def enqueue(context, session):
    _example_worker(context)
    context.run(context.example_worker.enqueue(session, "how high?"))


@when("{count:d} other sessions ask something")
def others_ask(context, count):
    async def ask():
        for n in range(count):
            await context.example_worker.ask(f"other-{n}", "how high?")

    context.run(ask())


@when('the client of "{session}" goes away')
def client_goes(context, session):
    del context.streams[session]
    gc.collect()


@then('the stream for "{session}" continues')
def stream_continues(context, session):
    async def read():
        return [word async for word in context.streams.pop(session)]

    assert context.run(read()) == ["said", "5", "words."]


@then('"{session}" has left the example worker')
def has_left(context, session):
    assert session not in context.example_worker._sessions


@then('the work of "{session}" is done when asked for')
def work_is_done(context, session):
    assert context.run(context.example_worker.work(session)) == ["You said 2 words."]
