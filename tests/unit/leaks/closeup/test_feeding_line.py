from __future__ import annotations

import gc
import sys
import threading

import pytest

from floodline.leaks._closeup import feeding_line as feed
from floodline.leaks._closeup.feeding_line import Feeder, Watch
from soak_programs import line_of, module

SOURCE = """
import weakref, collections

ROWS, BUSY, KEEP = [], {}, weakref.WeakKeyDictionary()
TABLE = collections.defaultdict(list)

class Key: pass

KEYS = []

def make(i):
    return [i]

def add(i):
    ROWS.append(
        make(i))

def touch(i):
    BUSY[i] = make(i)      # comes and goes
    del BUSY[i]
    return BUSY.setdefault(i, [])

def remember():
    key = Key()
    KEYS.append(key)
    KEEP[key] = 1          # grows inside weakref

def hand_out():
    private = []
    def give():
        take(private)      # handed to others
    return give

def take(rows):
    rows.append([1])

def fail():
    try:
        ROWS.append(1)
        raise ValueError
    except ValueError:
        pass

def later():
    yield 1
    ROWS.append(2)         # in a generator
    yield 2

GIVE = hand_out()
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    return module("fed", SOURCE, tmp_path, monkeypatch)


def fed_at(container, work, owner="fed.X", private=None):
    watch = Watch([lambda: len(container)], owner, private=private)
    with Feeder([watch]):
        work()
    place = watch.place()
    return place and place.line


def test_the_line_of_a_growth_is_exact(made, untraced):
    assert fed_at(made.ROWS, lambda: made.add(1)) in (
        line_of(SOURCE, "ROWS.append("),
        line_of(SOURCE, "        make(i))"),
    )
    assert fed_at(made.ROWS, made.fail) == line_of(SOURCE, "        ROWS.append(1)")


def test_what_comes_and_goes_is_not_the_line(made, untraced):
    assert fed_at(made.BUSY, lambda: made.touch(1)) == line_of(SOURCE, "BUSY.setdefault")


def test_lines_of_the_library_are_passed_on_to_their_caller(made, untraced):
    assert fed_at(made.KEEP.data, made.remember) == line_of(SOURCE, "grows inside weakref")


def test_a_private_container_is_fed_where_it_is_handed_out(made, untraced):
    private = made.GIVE.__closure__[0].cell_contents
    label = "fed.hand_out.<locals>.give"
    assert fed_at(private, made.GIVE, private=label) == line_of(SOURCE, "handed to others")
    assert fed_at(private, made.GIVE) == line_of(SOURCE, "rows.append([1])")


def test_generators_are_seen(made, untraced):
    running = made.later()
    next(running)
    assert fed_at(made.ROWS, lambda: next(running)) == line_of(SOURCE, "in a generator")


def test_new_threads_are_seen(made, untraced):
    def work():
        thread = threading.Thread(target=made.add, args=(1,))
        thread.start()
        thread.join()

    assert fed_at(made.ROWS, work) in (
        line_of(SOURCE, "ROWS.append("),
        line_of(SOURCE, "        make(i))"),
    )


def test_nothing_that_stays_has_no_line(made, untraced):
    assert fed_at(made.ROWS, lambda: made.BUSY.clear()) is None


def test_a_feeder_steps_back_for_another_tracer(made):
    watch = Watch([lambda: 0], "fed.X")
    if sys.version_info >= (3, 12):
        tools = sys.monitoring
        taken = [n for n in range(6) if tools.get_tool(n) is None]
        for number in taken:
            tools.use_tool_id(number, "others")
        with Feeder([watch]) as feeder:
            assert not feeder.active
        for number in taken:
            tools.free_tool_id(number)
    else:
        kept = sys.gettrace()
        sys.settrace(lambda *_: None)
        with Feeder([watch]) as feeder:
            assert not feeder.active
        sys.settrace(kept)


def test_part_of_a_growth_can_leave_again():
    rows = []
    watch = Watch([lambda: len(rows)], "fed.X")
    here = feed.Place("f.py", 1, "f")
    rows += [1, 2, 3]
    watch.compare(lambda _: here)
    rows.pop()
    watch.compare(lambda _: None)
    assert watch.fed
    assert watch.place() == here
    rows.clear()
    watch.compare(lambda _: None)
    assert not watch.fed
    rows.append(1)
    watch.compare(lambda _: None)
    assert watch.place() is None


def test_each_event_moves_on_and_puts_growth_down_to_the_line_before():
    rows = []
    watch = Watch([lambda: len(rows)], "app.X")
    feeder = Feeder([watch])
    frame = sys._getframe()
    assert feeder._on_trace(frame, "line", None) is None  # not begun
    feeder.active = True
    feeder._on_trace(frame, "line", None)
    rows.append(1)
    feeder._on_trace(frame, "return", None)
    assert watch.place().function == frame.f_code.co_name
    feeder._on_line()
    feeder._on_leave()
    feeder._moved(None, None)
    rows.append(2)
    feeder._moved(frame, 3)
    assert sum(size for _, size in watch._stayed[0]) == 1


def test_a_container_of_the_library_shows_the_line_of_the_library():
    frame = sys._getframe()
    watch = Watch([], "json.X")
    assert feed._place(frame, 7, watch).line == 7


class FakeSys:
    """`sys`, but for what would take the tracer of a coverage run away."""

    def __init__(self, version, **parts):
        self.version_info, self.traced = version, []
        self.settrace = self.traced.append
        self.gettrace = lambda: None
        self.__dict__.update(parts)

    def __getattr__(self, name):
        return getattr(sys, name)


class FakeMonitoring:
    class events:  # noqa: N801  # as in sys.monitoring
        PY_START, PY_RESUME, LINE, PY_RETURN, PY_YIELD, PY_UNWIND = (1 << n for n in range(6))

    def __init__(self, taken=()):
        self.tools = dict.fromkeys(taken, "others")
        self.callbacks, self.set = {}, []

    def get_tool(self, number):
        return self.tools.get(number)

    def use_tool_id(self, number, name):
        self.tools[number] = name

    def free_tool_id(self, number):
        del self.tools[number]

    def register_callback(self, number, event, callback):
        self.callbacks[event] = callback

    def set_events(self, number, events):
        self.set.append(events)


def test_before_3_12_lines_are_traced_and_the_tracer_is_taken_off(monkeypatch):
    fake = FakeSys((3, 11))
    monkeypatch.setattr(feed, "sys", fake)
    monkeypatch.setattr(feed.threading, "settrace", fake.traced.append)
    watch = Watch([lambda: 0], "app.X")
    with Feeder([watch]) as feeder:
        assert feeder.active
        assert fake.traced == [feeder._on_trace] * 2
        assert feeder._on_trace(sys._getframe(), "call", None) == feeder._on_trace
    assert fake.traced[2:] == [None, None]


def test_since_3_12_a_free_monitoring_id_is_taken_and_given_back(monkeypatch):
    tools = FakeMonitoring(taken=(4, 3))
    monkeypatch.setattr(feed, "sys", FakeSys((3, 12), monitoring=tools))
    with Feeder([]) as feeder:
        assert feeder.active
        assert tools.tools[5] == "floodline"
        assert len(tools.callbacks) == 6
    assert tools.set == [63, 0]
    assert 5 not in tools.tools
    monkeypatch.setattr(feed, "sys", FakeSys((3, 12), monitoring=FakeMonitoring(range(6))))
    with Feeder([]) as feeder:
        assert not feeder.active


def test_collections_wait_until_the_tracer_is_off(monkeypatch):
    monkeypatch.setattr(feed, "sys", FakeSys((3, 12), monitoring=FakeMonitoring()))
    with Feeder([]):
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with Feeder([]):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_shown_line_is_the_nearest_of_the_program():
    library = {"__name__": "json", "sys": sys}
    exec("def frame():\n    return sys._getframe()", library)
    inner = library["frame"]()
    shown = feed._place(inner, 2, Watch([], "app.X"))
    assert shown.function == "test_the_shown_line_is_the_nearest_of_the_program"
    of_library = feed._place(inner, 2, Watch([], "json.X"))
    assert of_library.function == shown.function
    assert feed._place(inner, 2, Watch([], "app.X", private="json.frame")).line == 2
    ours = {"__name__": "floodline.leaks.x", "sys": sys}
    exec("frame = sys._getframe()", ours)
    found = feed._place(ours["frame"], 1, Watch([], "json.X"))
    assert found is None or found.function != "<module>"


def test_a_thread_that_begins_is_put_down_to_the_line_that_starts_it(monkeypatch):
    begun = []

    def work():
        at = sys._getframe()
        while at.f_back is not None and at.f_code.co_name != "run":
            at = at.f_back
        begun.append(feed._begins(at))
        begun.append(feed._place(at, 1, Watch([], "threading._active")))

    thread = threading.Thread(target=work)
    waits = {"__name__": "threading", "sys": sys}
    exec("class Thread:\n    def start(self):\n        return sys._getframe()", waits)
    starter = waits["Thread"]().start()
    monkeypatch.setattr(sys, "_current_frames", lambda: {1: starter})
    thread.start()
    thread.join(60)
    first, place = begun
    assert first is True
    assert place.function == sys._getframe().f_code.co_name
    monkeypatch.setattr(sys, "_current_frames", dict)
    assert feed._starting() == []
    assert not feed._begins(sys._getframe())
