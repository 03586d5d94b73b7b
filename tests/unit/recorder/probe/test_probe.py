"""What the probe reads and tells, and that nothing that goes wrong in it reaches the program."""

from __future__ import annotations

import os
import sys
from itertools import pairwise

import pytest

from floodline import BoundedMap, MemoryBudget, Sessions, telemetry
from floodline._clock import sweeper
from floodline.recorder._probe import probe as probe_module
from floodline.recorder._probe import readings
from floodline.recorder._probe.probe import (
    FIRST_TICKS,
    TICK,
    Probe,
    command_line,
    make_engine,
)
from floodline.recorder._probe.readings import Events, Holders, Readings, in_words, limit_of
from floodline.recorder._probe.relief import Relief
from recorder_fakes import Clock, answer


class Engine:
    """A leak engine that counts its steps, and breaks when it is told to."""

    def __init__(self):
        self.steps = 0
        self.breaks = self.mute = self.weighed = False
        self.hurried = 0

    def hurry(self):
        self.hurried += 1

    def step(self):
        self.steps += 1
        if self.breaks:
            raise ZeroDivisionError("broken")
        return 0.25

    def answer(self):
        if self.mute:
            raise LookupError("mute")
        return self

    def as_record(self):
        return answer("bounded", walks=self.steps)


class Line:
    """Keeps what is sent, and returns the wishes that a test has put there."""

    def __init__(self):
        self.sent, self.wishes, self.closed = [], [], 0

    def send(self, message):
        self.sent.append(message)
        return True

    def receive(self):
        wishes, self.wishes = self.wishes, []
        return wishes

    def close(self):
        self.closed += 1


class Nap:
    """Lets the clock pass, and ends the thread after so many naps."""

    def __init__(self, clock, most):
        self.clock, self.left = clock, most

    def __call__(self, seconds):
        self.clock.now += seconds
        self.left -= 1
        return self.left <= 0


@pytest.fixture(autouse=True)
def only_our_holders(monkeypatch):
    monkeypatch.setattr(telemetry, "_holders", {})


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def line():
    return Line()


@pytest.fixture
def probe(clock, engine, line):
    probe = Probe("127.0.0.1:1:token", engine=lambda: engine, link=line, clock=clock)
    yield probe
    probe._unsubscribe()


def ticks(line):
    return [message for message in line.sent if message["kind"] == "tick"]


def test_it_ticks_quickly_at_first_and_then_each_second(probe, clock, line):
    moments = []
    send = line.send
    line.send = lambda message: (moments.append(clock.now), send(message))
    probe.run(Nap(clock, 60))
    gaps = [round(b - a, 3) for a, b in pairwise(moments)]
    assert gaps[: len(FIRST_TICKS)] == list(FIRST_TICKS)
    assert gaps[-1] == TICK


def test_a_tick_tells_the_figures_of_this_process(probe, line):
    probe.tick()
    told = line.sent[0]
    assert told["rss"] > 1 << 20
    assert len(told["gc"]) == 3
    assert told["threads"] >= 1
    assert told["fds"] >= 3
    assert told["tasks"] is not None or sys.version_info >= (3, 14)
    assert told["answer"]["verdict"] == "bounded"
    assert told["cost"] >= 0


def test_one_that_is_asked_what_is_in_memory_now_ends_when_it_has_said_so(clock, engine, line):
    probe = Probe(
        "127.0.0.1:1:t", seconds=20.0, now=True, engine=lambda: engine, link=line, clock=clock
    )
    probe.run(Nap(clock, 20))  # a quarter of a second each
    assert (engine.hurried, line.closed) == (0, 0)
    probe.run(Nap(clock, 40))
    assert engine.hurried > 0
    engine.weighed = True
    probe.run(Nap(clock, 40))
    assert line.closed == 1
    assert [message["kind"] for message in line.sent][-2:] == ["tick", "bye"]


def test_its_engine_may_use_more_of_the_processor(monkeypatch, line, clock):
    asked = []
    monkeypatch.setattr(
        probe_module, "make_engine", lambda *budget: asked.append(budget) or Engine()
    )
    for now in (False, True):
        Probe("127.0.0.1:1:t", now=now, link=line, clock=clock)._unsubscribe()
    assert asked == [(), (probe_module.IN_A_HURRY,)]


def test_it_can_be_ended_and_goes_on_where_it_was(probe, clock, engine):
    probe.run(Nap(clock, 3))
    before = engine.steps
    probe.run(Nap(clock, 3))
    assert engine.steps == before + 3
    assert probe._ticks >= 2


def test_an_engine_that_breaks_is_told_once_and_the_figures_go_on(probe, clock, engine, line):
    probe.run(Nap(clock, 3))
    engine.breaks = True
    probe.run(Nap(clock, 30))
    events = [event for message in ticks(line) for event in message["events"]]
    assert [event["kind"] for event in events] == ["probe_error"]
    assert "ZeroDivisionError" in events[0]["text"]
    assert ticks(line)[-1]["answer"]["verdict"] == "bounded"  # what it said last
    assert ticks(line)[-1]["rss"] > 0


def test_an_answer_that_breaks_is_told_too(probe, engine, line):
    engine.mute = True
    probe.tick()
    assert line.sent[0]["answer"] is None
    assert "LookupError" in line.sent[0]["events"][0]["text"]


def test_without_an_engine_the_figures_are_told(clock, line):
    def none():
        raise ImportError("no engine here")

    probe = Probe("127.0.0.1:1:token", engine=none, link=line, clock=clock)
    probe.run(Nap(clock, 2))
    assert "no engine here" in line.sent[0]["events"][0]["text"]
    assert line.sent[0]["rss"] > 0
    probe._unsubscribe()


def test_after_its_time_it_says_goodbye(clock, engine, line):
    probe = Probe("h:1:t", seconds=2.0, engine=lambda: engine, link=line, clock=clock)
    probe.run(Nap(clock, 1000))
    assert [message["kind"] for message in line.sent[-2:]] == ["tick", "bye"]
    assert line.closed == 1


def test_a_recorder_that_came_for_a_while_and_has_gone_is_not_waited_for(clock, engine, line):
    def send(message):
        line.sent.append(message)
        return len(line.sent) < 4

    line.send = send
    Probe("h:1:t", seconds=600.0, engine=lambda: engine, link=line, clock=clock).run(
        Nap(clock, 1000)
    )
    assert [message["kind"] for message in line.sent] == ["tick"] * 7 + ["bye"]


def test_a_recorder_of_a_whole_run_may_come_back(clock, engine, line):
    line.send = line.sent.append
    probe = Probe("h:1:t", engine=lambda: engine, link=line, clock=clock)
    probe.run(Nap(clock, 100))
    assert len(ticks(line)) > 20
    probe._unsubscribe()


def test_the_hello_names_the_process_and_has_the_token():
    probe = Probe("127.0.0.1:1:a:b", engine=Engine)
    hello = probe._link._hello()
    assert hello["token"] == "a:b"
    assert (hello["pid"], hello["parent"]) == (os.getpid(), os.getppid())
    assert hello["python"].startswith(f"3.{sys.version_info.minor}")
    probe.interrupt()
    probe.abandon()
    probe._unsubscribe()


def test_events_of_the_program_are_told_with_the_next_tick(probe, line):
    telemetry.emit("stuck_hold", "chats", id="alice", seconds=301.234, stack="secret")
    probe.tick()
    told = line.sent[0]["events"][-1]
    assert (told["kind"], told["text"]) == ("stuck_hold", "chats: seconds=301")
    probe.tick()
    assert line.sent[1]["events"] == []


def test_a_wish_to_shed_reaches_those_who_take_pressure(probe, line):
    wanted = []
    probe._relief.want = wanted.append
    line.wishes = [{"do": "shed", "bytes": 7}, {"do": "dance"}]
    probe.tick()
    assert wanted == [7]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["/srv/app.py", "--port", "1"], "app.py --port 1"),
        (["/lib/uvicorn/__main__.py", "app:app"], "-m uvicorn app:app"),
        (["-c"], "-c"),
        ([], ""),
        (["x" * 500], "x" * 200),
    ],
)
def test_a_process_is_named_as_it_was_started(arguments, told):
    assert command_line(arguments) == told


def test_the_engine_is_that_of_the_package():
    assert make_engine().answer().as_record()["verdict"] == "undecided"
    assert command_line()


# ---- readings


def test_what_costs_more_is_read_seldom():
    reading = Readings()
    assert reading.read(0)["fds"] > 0
    reading._files = -5
    assert reading.read(1)["fds"] == -5
    assert reading.read(5)["fds"] > 0


def test_sessions_and_containers_are_told_by_name():
    with Sessions(dict, name="chats-of-the-probe") as sessions:
        cache = BoundedMap(5, name="cache-of-the-probe")
        for n in range(7):
            cache[n] = n
        with sessions.use("alice"):
            told = Holders().read(0)
    chats = next(one for one in told["sessions"] if one["name"] == "chats-of-the-probe")
    assert (chats["live"], chats["opened"]) == (1, 1)
    known = next(one for one in told["containers"] if one["name"] == "cache-of-the-probe")
    assert known["evicted"] == {"count": 2}
    assert (known["items"], known["max_items"], known["kind"]) == (5, 5, "map")
    assert "alice" not in str(told)


def test_at_an_exit_in_the_middle_of_a_step_only_a_goodbye_is_said(probe, line):
    probe.leave()
    assert [message["kind"] for message in line.sent] == ["bye"]


def test_sessions_that_are_closed_at_the_exit_are_in_the_last_words(probe, line):
    sessions, other = Sessions(dict, name="chats"), BoundedMap(5, name="kept")
    with sessions.use("a"):
        pass
    probe.tick()
    sessions.shutdown()
    probe.close()
    last = ticks(line)[-1]
    assert [(one["name"], one["opened"]) for one in last["sessions"] if one["name"] == "chats"] == [
        ("chats", 1)
    ]
    assert [one["name"] for one in last["containers"]].count(other.name) == 1


class Odd:
    """A holder that is not ours."""

    name = "odd"

    def stats(self):
        raise OSError("my figures are none of your business")


def test_a_holder_that_raises_is_left_out():
    odd = Odd()
    telemetry.register(odd)
    told = Holders().read(0)
    assert all(one["name"] != "odd" for one in told["containers"])
    telemetry.unregister(odd)


def test_of_very_many_holders_the_largest_are_told_and_not_at_each_tick(monkeypatch):
    monkeypatch.setattr(readings, "MAX_HOLDERS", 3)
    maps = [BoundedMap(100, name=f"many-{n}") for n in range(10)]
    for n, one in enumerate(maps):
        one.update(dict.fromkeys(range(n * 10)))
    holders = Holders()
    told = holders.read(0)["containers"]
    assert [one["name"] for one in told] == ["many-9", "many-8", "many-7"]
    monkeypatch.setattr(readings, "MANY_HOLDERS", 1)
    maps[0].update(dict.fromkeys(range(99)))
    assert holders.read(1)["containers"] == told
    assert holders.read(5)["containers"] != told


def test_the_limit_is_asked_seldom(monkeypatch):
    asked = []
    monkeypatch.setattr(readings.memory, "cgroup", lambda: asked.append(1))
    limit = readings._Limit()
    assert (limit.read(), limit.read()) == (None, None)
    assert len(asked) == 1
    resident, _ = limit_of()
    assert resident > 1 << 20


def test_a_limit_that_binds_is_told(monkeypatch):
    found = readings.memory.Cgroup("/app", 512, 100, 2)
    monkeypatch.setattr(readings.memory, "cgroup", lambda: found)
    assert readings._Limit().read() == 512


def test_words_of_an_event_hold_nothing_of_the_program():
    fields = {
        "error": "KeyError: 'my password'",
        "id": "alice@example.com",
        "count": 3,
        "path": "a.b",
    }
    assert in_words("chats", fields) == "chats: KeyError, count=3, path=a.b"
    assert in_words("chats", {"label": "session alice"}) == "chats"


def test_waiting_events_are_bounded():
    events = Events()
    for n in range(1000):
        events.note("x", str(n))
    taken = events.take()
    assert len(taken) == readings.MAX_EVENTS
    assert taken[-1]["text"] == "999"
    assert events.take() == []


# ---- relief


def test_without_a_budget_nobody_sheds(monkeypatch):
    assert Relief().want(5) is False
    monkeypatch.delitem(sys.modules, "floodline.memory._budget.budget")
    assert Relief().want(5) is False


def test_what_takes_pressure_sheds_and_more_each_time(monkeypatch):
    wanted = []
    monkeypatch.setattr(sweeper, "want", lambda tick, delay: wanted.append(tick))
    budget = MemoryBudget("1 TiB", every=None, name="of-the-line")
    cache = BoundedMap(10_000, pressure=budget, name="shedding")
    cache.update(dict.fromkeys(range(1000)))
    relief = Relief()
    assert relief.want(1) is True
    assert wanted == [relief._tick]
    relief._tick()
    relief._tick()
    assert len(cache) == 1000 - 64 - 128
    cache.clear()
    relief._tick()
    assert relief._ask == 64


def test_a_budget_that_only_alerts_sheds_nothing():
    budget = MemoryBudget("1 TiB", every=None, action="alert", name="alerting")
    cache = BoundedMap(10, pressure=budget, name="kept")
    cache["a"] = 1
    assert Relief().want(1) is False
    assert len(cache) == 1
