"""The words of the worker service; each scenario has an event loop of its own."""

from __future__ import annotations

import asyncio

from behave import given, then, when
from driver import SessionManager

from floodline.errors import SessionNotFound


@given("a session manager that keeps idle conversations for {minutes:d} minutes")
def make_manager(context, minutes):
    runner = asyncio.Runner()
    context.add_cleanup(runner.close)
    context.run = runner.run
    context.worker = SessionManager(context.clock, idle=minutes * 60)
    context.add_cleanup(lambda: context.run(context.worker.chats.shutdown()))


@given('"{session}" has said "{text}"')
@when('"{session}" says "{text}"')
def say(context, session, text):
    context.run(context.worker.say(session, text))


@given('"{session}" waits for an answer to "{text}"')
def begin(context, session, text):
    context.run(context.worker.begin(session, text))


@when("{minutes:d} minutes pass in the worker")
def pass_time(context, minutes):
    context.clock.advance(minutes)
    context.run(context.worker.chats.sweep())
    context.run(context.worker.settle())


@when('the answer for "{session}" arrives')
def answer(context, session):
    context.run(context.worker.answer(session))


@when('"{session}" is retired')
def retire(context, session):
    context.run(context.worker.chats.complete(session))


@when('"{session}" is deleted')
def delete(context, session):
    context.run(context.worker.chats.close(session))


@when("the request is cancelled")
def cancel(context):
    context.run(context.worker.cancel())


@when('{count:d} requests for "{session}" come at once')
def many(context, count, session):
    async def all_at_once():
        await asyncio.gather(*(context.worker.say(session, f"thing {n}") for n in range(count)))

    context.run(all_at_once())


@when('"{session}" says {count:d} things')
def say_much(context, session, count):
    for n in range(count):
        say(context, session, f"thing {n}")


@when("the worker is shut down")
def shut_down(context):
    context.run(context.worker.chats.shutdown())


@then('"{session}" is out of memory')
def out_of_memory(context, session):
    assert session not in context.worker.chats


@then('"{session}" remembers "{text}"')
def remembers(context, session, text):
    texts = context.run(context.worker.texts(session))
    assert text in texts, texts


@then('the answer for "{session}" is refused')
def refused(context, session):
    assert context.worker.refused == [session]


@then('nobody remembers "{session}"')
def forgotten(context, session):
    try:
        texts = context.run(context.worker.texts(session))
    except SessionNotFound:
        return
    raise AssertionError(f"{session} came back with {texts}")


@then('"{session}" was opened once')
def opened_once(context, session):
    assert context.worker.opened[session] == 1, context.worker.opened


@then('"{session}" left the worker because of {reason}')
def left_because(context, session, reason):
    assert context.worker.left == [(session, reason)], context.worker.left


@then('"{session}" has {count:d} turns')
def has_turns(context, session, count):
    texts = context.run(context.worker.texts(session))
    assert len(texts) == min(2 * count, 50), texts
    assert context.worker.chats.stats().saved == count


@then('"{session}" keeps at most {most:d} messages')
def keeps_at_most(context, session, most):
    assert len(context.run(context.worker.texts(session))) <= most


@then("the store has {count:d} conversation")
def stored(context, count):
    assert context.worker.store.count("worker") == count
