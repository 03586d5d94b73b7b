"""The words of the PlanService criteria."""

from __future__ import annotations

import gc
from contextlib import suppress

from behave import given, then, when
from driver import PlanService

CAUSES = {
    "an exception": lambda: ValueError("the model returned nonsense"),
    "a time-out": lambda: TimeoutError("the tool took too long"),
    "a forgotten call": lambda: None,
}


@given(
    "a plan service that keeps idle sessions for {minutes:d} minutes and at most {most:d} of them"
)
def make_service(context, minutes, most):
    context.plans = PlanService(context.clock, idle=minutes * 60, max_sessions=most)
    context.add_cleanup(context.plans.memories.shutdown)


@given('a session "{session}" that was abandoned by {cause}')
def abandon(context, session, cause):
    with suppress(ValueError, TimeoutError):
        context.plans.run_step(session, "think", CAUSES[cause]())


@given('a session "{session}" with a plan')
@when('a plan is made for "{session}"')
def make_plan(context, session):
    context.plans.create_plan(session, "tidy up")


@given('a session "{session}" whose service cannot be closed')
def make_broken(context, session):
    with context.plans.memories.use(session) as memory:
        memory.breaks_on_close = True


@when("{minutes:d} minutes pass")
def pass_time(context, minutes):
    context.clock.advance(minutes)
    context.plans.memories.sweep()


@when('"{session}" is cleared')
def clear(context, session):
    context.plans.clear_memory(session)


@when('"{session}" runs a step')
def run_step(context, session):
    context.plans.run_step(session, "think")


@when('"{session}" is reviewed')
def review(context, session):
    context.plans.review(session)


@when('"{session}" runs a step that takes {minutes:d} minutes')
def run_long_step(context, session, minutes):
    with context.plans.memories.use(session) as memory:
        memory.notes.append("a long step")
        context.clock.advance(minutes)
        context.plans.memories.sweep()
    context.plans.memories.sweep()


@when('"{session}" is cleared in the middle of a step')
def clear_inside(context, session):
    with context.plans.memories.use(session):
        context.plans.clear_memory(session)
        assert context.plans.closed == [], "what is in use stays open"


@when("the garbage collector runs")
def collect(context):
    gc.collect()


@when("{count:d} sessions make a plan each and are abandoned")
def make_many(context, count):
    for n in range(count):
        context.plans.create_plan(f"session-{n}", "one of many")


@when("the plan service is shut down")
def shut_down(context):
    context.plans.memories.shutdown()


@then('"{session}" is live')
def is_live(context, session):
    assert context.plans.lives(session)


@then('"{session}" is not live')
def is_not_live(context, session):
    assert not context.plans.lives(session)


@then('"{session}" left exactly once, because of {reason}')
def left_once(context, session, reason):
    assert context.plans.reasons(session) == [reason], context.plans.reasons(session)
    assert context.plans.closed.count(session) == 1, context.plans.closed


@then('"{session}" never left')
def never_left(context, session):
    assert context.plans.reasons(session) == []


@then('"{session}" has {count:d} note')
@then('"{session}" has {count:d} notes')
def has_notes(context, session, count):
    assert len(context.plans.notes(session)) == count, context.plans.notes(session)


@then("{count:d} sessions are live")
def live_count(context, count):
    assert len(context.plans.memories) == count, len(context.plans.memories)


@then("never were more than {most:d} sessions live")
def most_live(context, most):
    assert 0 < context.plans.most_live <= most, context.plans.most_live


@then("{count:d} sessions left because of {reason}")
def count_left(context, count, reason):
    left = context.plans.memories.stats().left
    assert left[reason] == count, left


@then("no memory service is left in the process")
def none_left(context):
    assert context.plans.still_in_memory() == []


@then("nothing is kept for sessions that left")
def only_live_kept(context):
    assert sorted(context.plans.still_in_memory()) == sorted(context.plans.memories.ids())


@then("there are as many locks as live sessions")
def as_many_locks(context):
    assert sorted(context.plans.locks) == sorted(context.plans.memories.ids())


@then("{count:d} failure was counted")
def failures(context, count):
    assert context.plans.memories.stats().hook_errors == count
