"""All processes of a run, merged from what they say and what is seen of them."""

from __future__ import annotations

import pytest

from floodline.recorder._exit_cause import exit_record
from floodline.recorder._proc import Seen
from floodline.recorder._processes.fleet import MOST_ENDED, Fleet
from floodline.recorder._recording.journal import Journal
from recorder_fakes import answer, sample, suspect


@pytest.fixture
def journal():
    return Journal()


@pytest.fixture
def fleet(journal):
    fleet = Fleet(journal)
    fleet.start(1, "app.py", 0.0, main=True)
    return fleet


def hello(fleet, pid, at=1.0, *, command="app.py", parent=1):
    message = {"kind": "hello", "command": command, "parent": parent, "python": "3.11.7"}
    fleet.hello(pid, message, at)


def kinds(journal):
    return [event["kind"] for event in journal.records()]


def test_the_program_keeps_the_name_it_was_started_with(fleet):
    hello(fleet, 1, command="__main__.py")
    assert fleet.running[1].command == "app.py"
    assert fleet.running[1].python == "3.11.7"


def test_a_process_whose_probe_was_woken_need_not_be_the_program(journal):
    fleet = Fleet(journal)
    fleet.start(9, "app.py", 0.0)
    assert fleet.main is None
    fleet.end(9, None, 1.0)
    assert fleet.ended[0].state == "lost"


def test_a_child_that_starts_another_program_has_its_name(fleet):
    hello(fleet, 2)
    hello(fleet, 2, command="other.py")
    assert fleet.running[2].command == "other.py"


def test_a_recycled_worker_continues_the_series_of_its_predecessor(fleet):
    hello(fleet, 2)
    fleet.measured(2, 100.0, 2.0)
    series = fleet.running[2].points.series
    fleet.end(2, None, 3.0)
    hello(fleet, 3, at=4.0)
    fleet.measured(3, 50.0, 5.0)
    worker = fleet.running[3]
    assert worker.points.series == series
    assert worker.points.all == [[2.0, 100.0], [5.0, 50.0]]
    assert (worker.recycled, worker.started, worker.pid) == (1, 4.0, 3)
    assert fleet.ended == []


def test_what_grew_in_a_recycled_worker_is_told_until_its_successor_is_judged(fleet):
    hello(fleet, 2)
    fleet.sample(2, sample(answer=answer("growing", suspects=[suspect()])), 2.0)
    fleet.end(2, None, 3.0)
    hello(fleet, 3)
    fleet.sample(3, sample(answer=answer("undecided", objects=7)), 4.0)
    worker = fleet.running[3]
    assert worker.answer["suspects"] == [suspect()]
    assert worker.as_record()["verdict"] == "growing"
    assert worker.as_record()["objects"] == 7
    fleet.sample(3, sample(answer=answer("bounded")), 60.0)
    assert worker.answer["verdict"] == "bounded"


def test_it_is_known_that_a_recycled_worker_had_a_suspect(fleet):
    hello(fleet, 2)
    unsure = answer("undecided", suspects=[suspect(verdict="undecided")])
    fleet.sample(2, sample(answer=unsure), 2.0)
    fleet.end(2, None, 3.0)
    hello(fleet, 3)
    assert fleet.running[3].answered() == (3, "app.py", "running", None, 1, True)


def test_another_command_or_parent_is_no_successor(fleet):
    hello(fleet, 2)
    fleet.end(2, None, 3.0)
    hello(fleet, 3, command="other.py")
    hello(fleet, 4, parent=9)
    assert [one.pid for one in fleet.ended] == [2]


def test_growth_is_told_once_for_all_workers(fleet, journal):
    for pid in (2, 3):
        hello(fleet, pid)
        for _ in range(2):
            grown = answer("growing", suspects=[suspect(), suspect("b", verdict="undecided")])
            fleet.sample(pid, sample(answer=grown), 2.0)
    texts = [event["text"] for event in journal.records() if event["kind"] == "growing"]
    assert texts == ["app.SESSIONS grows, fed at app.py:7"]


def test_growth_without_a_known_line_is_told_too(fleet, journal):
    hello(fleet, 2)
    fleet.sample(2, sample(answer=answer("growing", suspects=[suspect(file=None)])), 2.0)
    assert journal.records()[-1]["text"] == "app.SESSIONS grows"


def test_events_of_a_probe_go_to_the_journal(fleet, journal):
    hello(fleet, 2)
    fleet.sample(2, sample(events=[{"at": 5.0, "kind": "retained", "text": "x"}]), 2.0)
    assert journal.records()[-1] == {"at": 5.0, "pid": 2, "kind": "retained", "text": "x"}
    assert fleet.running[2].sample["events"] == []


def test_the_last_words_of_a_process_that_is_gone_may_be_on_the_way(fleet):
    for pid in (2, 3):
        hello(fleet, pid)
        fleet.measured(pid, None, 2.0)
    assert list(fleet.running) == [1, 2, 3]
    fleet.goodbye(2)
    fleet.hung_up(2)
    for pid in (2, 3):
        fleet.measured(pid, None, 3.0)
    assert [(one.pid, one.state) for one in fleet.ended] == [(2, "exited"), (3, "lost")]


def test_a_worker_that_goes_when_the_program_was_asked_to_end_is_not_lost(fleet):
    hello(fleet, 2)
    hello(fleet, 3)
    for pid, stopping in ((2, False), (3, True)):
        fleet.stopping = stopping
        fleet.end(pid, None, 3.0)
    assert [one.state for one in fleet.ended] == ["lost", "exited"]


def test_a_sample_of_nobody_is_passed_over(fleet):
    fleet.sample(77, sample(), 1.0)
    fleet.goodbye(77)
    fleet.hung_up(77)
    fleet.measured(77, 1.0, 1.0)
    fleet.end(77, None, 1.0)
    assert list(fleet.running) == [1]


def test_a_process_that_vanishes_is_lost_and_one_that_says_goodbye_has_ended(fleet, journal):
    hello(fleet, 2)
    hello(fleet, 3)
    fleet.goodbye(3)
    for pid in (2, 3):
        fleet.hung_up(pid)
        fleet.measured(pid, None, 5.0)
    assert {one.pid: one.state for one in fleet.ended} == {2: "lost", 3: "exited"}
    assert kinds(journal)[-2:] == ["process_lost", "process_ended"]


def test_after_the_program_its_children_may_go_by_any_signal(fleet, journal):
    hello(fleet, 2)
    fleet.end(1, exit_record(0, oom=False, last=0, limit=None), 5.0)
    fleet.measured(2, None, 5.0)
    assert {one.pid: one.state for one in fleet.ended} == {1: "exited", 2: "exited"}
    assert "process_lost" not in kinds(journal)


def test_the_program_is_lost_if_it_died_of_a_signal(fleet):
    fleet.goodbye(1)
    fleet.measured(1, None, 4.0)
    assert fleet.running[1].state == "running"
    fleet.end(1, exit_record(-9, oom=False, last=0, limit=None), 5.0)
    assert fleet.all()[0].as_record()["state"] == "lost"
    assert fleet.all()[0].as_record()["rss"] == 0.0


def test_what_has_no_probe_is_shown_and_told_once(fleet, journal):
    found = Seen(5, 1, "python -I x.py", "flags", "started with -I")
    fleet.seen(found, 1.0)
    fleet.seen(found, 2.0)
    fleet.seen(Seen(6, 1, "node x.js", "other", "not a Python program"), 2.0)
    assert list(fleet.not_covered) == ["`python -I x.py` (process 5): started with -I"]
    assert kinds(journal) == ["not_covered"]
    assert fleet.running[6].as_record()["blind_spots"] == ["no probe: not a Python program"]
    fleet.measured(6, None, 3.0)
    assert fleet.ended[-1].state == "exited"


def test_a_probe_that_could_not_start_says_why(fleet):
    fleet.hello(5, {"error": "ImportError('x')"}, 1.0)
    assert "ImportError" in next(iter(fleet.not_covered))
    assert 5 not in fleet.running


def test_a_probe_that_was_only_slow_covers_its_process_after_all(fleet):
    for pid in (5, 6):
        fleet.seen(Seen(pid, 1, "x.py", "environment", "cleaned"), 4.0)
    fleet.hello(5, {"command": "x.py", "parent": 1, "python": "3.11.7"}, 5.0)
    assert list(fleet.not_covered.values()) == [6]


def test_the_list_of_what_is_not_covered_is_bounded(fleet):
    for n in range(300):
        fleet.uncover(f"process {n}", n, 1.0)
    assert len(fleet.not_covered) == 100


def test_those_that_ended_are_bounded_and_the_one_that_grew_stays(fleet):
    hello(fleet, 2, command="grew.py")
    fleet.sample(2, sample(answer=answer("growing", suspects=[suspect()])), 2.0)
    fleet.end(2, None, 3.0)
    for pid in range(100, 100 + 2 * MOST_ENDED):
        hello(fleet, pid, command=f"job-{pid}.py")
        fleet.end(pid, None, 4.0)
    assert len(fleet.ended) == MOST_ENDED
    assert fleet.ended[0].pid == 2
    for pid in range(1000, 1000 + 2 * MOST_ENDED):
        hello(fleet, pid, command=f"grows-{pid}.py")
        fleet.sample(pid, sample(answer=answer("growing")), 2.0)
        fleet.end(pid, None, 4.0)
    assert len(fleet.ended) == MOST_ENDED


def test_sums_limits_and_holders_are_of_those_that_run(fleet):
    hello(fleet, 2)
    fleet.measured(1, 100.0, 1.0)
    fleet.measured(2, 50.0, 1.0)
    fleet.sample(2, sample(limit=900, sessions=[{"name": "chats"}]), 2.0)
    assert fleet.resident() == 150.0
    assert fleet.limit() == 900
    assert fleet.sessions() == [{"name": "chats", "pid": 2}]
    fleet.end(2, None, 3.0)
    assert fleet.sessions() == []
    fleet.end(1, None, 3.0)
    assert fleet.sessions() == [{"name": "chats", "pid": 2}]


def test_the_program_comes_first_then_those_that_run(fleet):
    hello(fleet, 2)
    hello(fleet, 3, command="b.py")
    fleet.end(2, None, 3.0)
    fleet.end(1, None, 3.0)
    assert [one.pid for one in fleet.all()] == [1, 3, 2]
