"""Children of a program, and what is left of it after its end."""

from __future__ import annotations

import pytest

from floodline.recorder import Recorder, _proc
from floodline.recorder._proc import Seen
from floodline.recorder._processes.fleet import Fleet
from floodline.recorder._processes.process_tree import CHILD_AGE, Family
from floodline.recorder._recording.journal import Journal
from recorder_fakes import Clock

MIB = 1 << 20


class World:
    """Processes as the outside would show them: pid → why it has no probe yet, in one word."""

    def __init__(self):
        self.alive = {1: "quiet"}
        self.children = {}

    def look(self, pid, parent, site):
        if self.alive.get(pid, "helper") == "helper":
            return None
        return Seen(pid, parent, f"program {pid}", self.alive[pid], "why")

    def descendants(self, pid):
        return [child for child in self.children.get(pid, ()) if child in self.alive]

    def carriers(self, address):
        return list(self.alive)


@pytest.fixture
def world(monkeypatch):
    world = World()
    monkeypatch.setattr(_proc, "look", world.look)
    monkeypatch.setattr(_proc, "descendants", world.descendants)
    monkeypatch.setattr(_proc, "carriers", world.carriers)
    monkeypatch.setattr(_proc, "carries", lambda pid, address: pid in world.alive)
    monkeypatch.setattr(_proc, "alive", lambda pid: pid in world.alive)
    monkeypatch.setattr(_proc, "resident", lambda pid: 10 * MIB)
    return world


@pytest.fixture
def fleet():
    fleet = Fleet(Journal())
    fleet.start(1, "app.py", 0.0, main=True)
    return fleet


@pytest.fixture
def family(fleet, world):
    return Family(fleet, "h:1:t")


def hello(fleet, pid, parent=1):
    fleet.hello(pid, {"command": "app.py", "parent": parent, "python": "3.11.7"}, 1.0)


def test_a_program_that_leaves_nothing_behind_is_over(family, fleet, world):
    del world.alive[1]
    assert not family.outlives(10.0)
    assert not fleet.went_on


def test_a_daemon_remains_also_before_its_probe_has_said_a_word(family, fleet, world):
    world.alive = {5: "quiet"}
    assert family.outlives(10.0)
    assert fleet.went_on
    assert family.remaining() == [5]
    assert fleet.running[5].blind == "no probe yet: why"
    hello(fleet, 5)
    assert family.remaining() == [5]
    del world.alive[5]
    assert family.remaining() == []


def test_a_daemon_is_found_though_the_process_between_ends_while_we_look(
    family, world, monkeypatch
):
    """Listed, it forks for the second time and ends before it is looked at."""

    def listed(address):
        found = list(world.alive)
        if 5 in world.alive:
            world.alive = {6: "quiet"}
        return found

    world.alive = {5: "quiet"}
    monkeypatch.setattr(_proc, "carriers", listed)
    assert family.outlives(10.0)
    assert family.remaining() == [6]


def test_one_that_forks_and_ends_between_two_looks_is_followed(family, world):
    world.alive = {5: "quiet"}
    assert family.outlives(10.0)
    world.alive = {6: "quiet"}
    assert family.remaining() == []
    assert family.left(10.1) == [6]
    world.alive = {}
    assert family.left(10.2) == []


@pytest.mark.parametrize("why", ["other", "flags", "path", "helper"])
def test_a_process_without_a_probe_is_no_reason_to_wait(family, world, why):
    world.alive = {5: why}
    assert not family.outlives(10.0)


def test_what_becomes_another_program_is_waited_for_no_longer(family, world):
    world.alive = {5: "quiet"}
    assert family.outlives(10.0)
    world.alive[5] = "other"
    family.look(11.0)
    family.look(11.0 + CHILD_AGE)
    assert family.remaining() == []


def test_children_of_a_daemon_are_found_and_told(family, fleet, world):
    world.alive = {5: "quiet"}
    family.outlives(10.0)
    hello(fleet, 5)
    world.alive[6], world.children[5] = "flags", [6]
    family.look(11.0)
    assert 6 not in fleet.running
    family.look(11.0 + CHILD_AGE)
    assert fleet.running[6].blind == "no probe: why"
    assert family.remaining() == [5]


def test_a_signal_is_for_those_whose_parent_does_not_get_it(family, fleet, world, monkeypatch):
    world.alive = {5: "quiet", 6: "quiet", 7: "quiet"}
    family.outlives(10.0)
    for pid, parent in ((5, 1), (6, 5), (7, 1)):
        hello(fleet, pid, parent)
    assert family.heads() == [5, 7]
    monkeypatch.setattr(_proc, "carries", lambda pid, address: False)
    fleet.hung_up(7)
    assert family.heads() == [5]


# ---- the recorder


@pytest.fixture
def recorder(world):
    clock = Clock()
    recorder = Recorder("app.py", clock=clock, kills=lambda: 0)
    recorder.program(1)
    recorder.tick()
    world.alive = {5: "quiet"}
    clock.now += 1
    yield recorder
    recorder.close()


def finish(recorder):
    recorder.ended(0)
    recorder.tick()
    return recorder.state()


def test_the_end_of_a_daemon_is_that_of_the_program(recorder, world):
    assert recorder.outlived(0, patience=0) == [5]
    state = recorder.state()
    assert (state["exit"], state["closed"]) == (None, False)
    recorder._clock.now += 5
    recorder.heard(5, {"kind": "hello", "command": "app.py", "python": "3.11.7"})
    recorder.heard(5, {"kind": "bye"})
    del world.alive[5]
    assert recorder.remaining() == []
    state = finish(recorder)
    assert state["exit"]["status"] == 0
    assert state["exit"]["cause"] == "continued in the background as process 5: exited normally"
    states = {one["pid"]: (one["state"], one["exit"]) for one in state["processes"]}
    assert states[1] == ("exited", {**states[1][1], "status": 0, "cause": "exited normally"})
    assert states[5] == ("exited", None)
    texts = [one["text"] for one in state["events"] if one["kind"] == "program_ended"]
    assert texts[0] == "exited normally, and continued in the background as process 5"


def test_memory_at_the_end_is_that_of_the_daemon(recorder, world, monkeypatch):
    recorder.outlived(0, patience=0)
    monkeypatch.setattr(_proc, "resident", lambda pid: 70 * MIB)
    recorder._clock.now += 1
    recorder.tick()
    recorder._clock.now += 1
    del world.alive[5]
    assert finish(recorder)["memory"]["now"] == 70 * MIB


def test_a_daemon_that_was_killed_is_lost(recorder, world):
    recorder.outlived(0, patience=0)
    recorder._clock.now += 5
    recorder.heard(5, {"kind": "hello", "command": "app.py", "python": "3.11.7"})
    assert recorder.pass_on(1) == [5]  # SIGHUP: to read its settings again
    del world.alive[5]
    state = finish(recorder)
    assert "gone without a goodbye" in state["exit"]["cause"]
    assert state["processes"][-1]["state"] == "lost"


def test_a_daemon_that_ends_after_a_signal_that_we_passed_on_is_not_lost(recorder, world):
    recorder.outlived(0, patience=0)
    recorder._clock.now += 5
    recorder.heard(5, {"kind": "hello", "command": "app.py", "python": "3.11.7"})
    assert recorder.pass_on(15) == [5]
    del world.alive[5]
    assert recorder.pass_on(2) == []
    state = finish(recorder)
    assert "ended after SIGTERM, which was passed on" in state["exit"]["cause"]
    assert state["processes"][-1]["state"] == "exited"


def test_the_last_words_of_a_daemon_are_waited_for(recorder, world, monkeypatch):
    recorder.outlived(0, patience=0)
    recorder._clock.now += 5
    recorder.heard(5, {"kind": "hello", "command": "app.py", "python": "3.11.7"})
    del world.alive[5]

    def read(timeout):
        recorder.heard(5, {"kind": "bye"})
        recorder.hung_up(5)

    monkeypatch.setattr(recorder, "wait_for_news", read)
    assert finish(recorder)["exit"]["cause"].endswith("process 5: exited normally")


def test_what_still_runs_when_the_recording_ends_is_told(recorder):
    recorder.outlived(0, patience=0)
    state = finish(recorder)
    assert state["exit"]["cause"].endswith("process 5: still running")
    assert [one["pid"] for one in state["events"] if one["kind"] == "left_running"] == [5]


def test_workers_that_need_a_moment_longer_are_no_daemon(recorder, world, monkeypatch):
    monkeypatch.setattr(recorder, "wait_for_news", lambda timeout: world.alive.clear())
    assert recorder.outlived(0, patience=60) == []
    assert finish(recorder)["exit"]["cause"] == "exited normally"


def test_memory_at_the_end_is_that_of_before_the_workers_went(world):
    clock = Clock()
    recorder = Recorder("app.py", clock=clock, kills=lambda: 0)
    recorder.program(1)
    world.alive |= {5: "quiet", 6: "quiet"}
    for pid in (5, 6):
        recorder.heard(pid, {"kind": "hello", "command": "app.py", "python": "3.11.7"})
    recorder.tick()
    for gone in (5, 6):
        clock.now += 1
        recorder.heard(gone, {"kind": "bye"})
        del world.alive[gone]
        recorder.tick()
    assert recorder.state()["memory"]["now"] == 10 * MIB
    clock.now += 1
    recorder.ended(0)
    recorder.close()
    assert recorder.state()["memory"]["now"] == 30 * MIB
