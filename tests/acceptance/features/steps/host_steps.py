"""The words of the plugin-host criteria."""

from __future__ import annotations

from behave import given, then, when
from driver import PluginHost

from floodline.errors import SessionClosed, SessionNotFound


@given(
    "a plugin host that keeps idle sessions for {minutes:d} minutes and at most {most:d} of them"
)
def make_host(context, minutes, most):
    context.bounds = {"idle": minutes * 60, "max_sessions": most}
    _make(context)


@given("the host remembers closed sessions for {minutes:d} minutes")
def remember_closed(context, minutes):
    _make(context, tombstone=minutes * 60)


@given("the host has a store")
def with_store(context):
    _make(context, stored=True)


def _make(context, **more):
    context.host = PluginHost(context.clock, **context.bounds, **more)
    context.add_cleanup(context.host.sessions.shutdown)


@given('"{session}" has worked')
@when('"{session}" works')
def work(context, session):
    context.tasks = context.host.work(session)


@when('the event for "{session}" fires')
def fire(context, session):
    context.host.deleted_event(session)


@when("{minutes:d} minutes pass in the host")
def pass_time(context, minutes):
    context.clock.advance(minutes)
    context.host.sessions.sweep()


@when('late work for "{session}" arrives')
def late_work(context, session):
    try:
        context.host.late_work(session)
    except SessionNotFound as error:
        context.error = error


@when('"{session}" works for {minutes:d} minutes while others come and go')
def work_long(context, session, minutes):
    with context.host.sessions.use(session) as state:
        context.host._work(session, state)
        for minute in range(minutes):
            context.clock.advance(1)
            context.host.work(f"other-{minute}")
            context.host.sessions.sweep()


@when('"{session}" works every {step:d} minutes for {hours:d} hours')
def work_often(context, session, step, hours):
    for _ in range(hours * 60 // step):
        pass_time(context, step)
        work(context, session)


@when("{count:d} sessions work and no event fires")
def work_many(context, count):
    for n in range(count):
        context.host.work(f"session-{n}")


@when("the host ends")
def end_host(context):
    context.host.sessions.shutdown()


@then('no map has an entry for "{session}"')
def no_entry(context, session):
    assert context.host.entries(session) == 0


@then('all maps have an entry for "{session}"')
def all_entries(context, session):
    assert context.host.entries(session) == PluginHost.MAPS


@then('"{session}" was finalized once')
def finalized_once(context, session):
    finalized(context, session, 1)


@then('"{session}" was finalized {times:d} times')
def finalized(context, session, times):
    assert context.host.finalized[session] == times, context.host.finalized


@then("the late work is refused")
def late_refused(context):
    assert isinstance(context.error, SessionNotFound)


@then('work for "{session}" is refused')
def work_refused(context, session):
    try:
        context.host.work(session)
    except SessionClosed:
        return
    raise AssertionError(f"{session} was taken, though it had just been closed")


@then('"{session}" has done {count:d} tasks')
def tasks_done(context, session, count):
    assert context.tasks == count, context.tasks


@then("the maps never had more than {most:d} sessions in them")
def never_more(context, most):
    assert 0 < context.host.most_entries <= most * PluginHost.MAPS


@then("each session that left was finalized once")
def each_once(context):
    assert set(context.host.finalized.values()) == {1}
    live = set(context.host.sessions.ids())
    assert not live & context.host.finalized.keys()


@then("the maps are empty")
def maps_empty(context):
    assert context.host.all_entries() == 0
