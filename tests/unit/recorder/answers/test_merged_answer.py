"""Workers are one answer: by command and owner, worst first."""

from __future__ import annotations

from dataclasses import replace

from floodline.recorder._answers.merged_answer import (
    Answered,
    History,
    doubted,
    merge_suspects,
    merge_verdicts,
)
from recorder_fakes import answer, suspect


def process(pid, *suspects, command="app.py", state="running", verdict="bounded", **changes):
    said = answer(verdict, suspects=list(suspects), **changes)
    return Answered(pid, command, state, said)


def test_the_same_owner_in_two_workers_is_one_suspect():
    merged = merge_suspects([process(1, suspect(echoes=["a"])), process(2, suspect(len=5))])
    assert len(merged) == 1
    assert merged[0]["len"] == 15
    assert merged[0]["per_round"] == 4.0
    assert merged[0]["bytes_per_round"] == 200.0
    assert merged[0]["pids"] == [1, 2]
    assert merged[0]["command"] == "app.py"
    assert merged[0]["echoes"] == ["a"]


def test_the_same_owner_in_another_command_is_another_suspect():
    merged = merge_suspects([process(1, suspect()), process(2, suspect(), command="other.py")])
    assert [one["pids"] for one in merged] == [[1], [2]]


def test_the_worst_comes_first_and_ranks_follow():
    small, large = suspect("a"), suspect("b", bytes_per_round=900.0)
    unsure = suspect("c", verdict="undecided", bytes_per_round=9e9)
    merged = merge_suspects([process(1, small, unsure), process(2, large)])
    assert [(one["owner"], one["rank"]) for one in merged] == [("b", 1), ("a", 2), ("c", 3)]


def test_a_line_that_was_seen_beats_one_that_was_read():
    seen = suspect(line=9, line_source="trace")
    missing = suspect(file=None, line=None, line_source=None)
    assert merge_suspects([process(1, suspect()), process(2, seen)])[0]["line"] == 9
    assert merge_suspects([process(1, missing), process(2, suspect())])[0]["line"] == 7


def test_the_caller_belongs_to_the_line_that_is_told():
    called = suspect(line=9, line_source="trace", caller={"file": "app.py", "line": 31})
    merged = merge_suspects([process(1, suspect()), process(2, called)])
    assert merged[0]["caller"] == {"file": "app.py", "line": 31}


def test_growing_in_one_worker_is_growing():
    merged = merge_suspects([process(1, suspect(verdict="undecided")), process(2, suspect())])
    assert merged[0]["verdict"] == "growing"


def test_one_that_grows_decides_also_after_its_end():
    ended = process(2, suspect(), state="lost", verdict="growing")
    assert merge_verdicts([process(1), ended], 1)["verdict"] == "growing"


def test_all_that_run_must_be_bounded():
    waiting = process(2, verdict="undecided", needed={"seconds": 9.0, "why": "too short"})
    merged = merge_verdicts([process(1), waiting], 1)
    assert merged["verdict"] == "undecided"
    assert merged["needed"] == {"seconds": 9.0, "why": "too short"}
    assert merge_verdicts([process(1), process(2)], 1)["verdict"] == "bounded"


def test_a_helper_that_ended_early_does_not_leave_all_undecided():
    helper = process(2, verdict="undecided", state="exited")
    assert merge_verdicts([process(1), helper], 1)["verdict"] == "bounded"


def test_an_ended_worker_that_was_watched_for_a_minute_keeps_all_undecided():
    worker = process(2, verdict="undecided", state="exited", watched_seconds=200.0)
    assert merge_verdicts([process(1), worker], 1)["verdict"] == "undecided"


def test_memory_that_rises_without_an_explanation_is_not_bounded():
    said = doubted([process(1)], 1, 20 << 20, 60.0)
    assert (said["verdict"], said["where"]) == ("undecided", "unknown")
    assert "rose by 20 MiB in 1 min" in said["needed"]["why"]
    assert doubted([process(1)], 1, 1 << 20, 60.0)["verdict"] == "bounded"
    grows = process(2, suspect(), verdict="growing")
    assert doubted([process(1), grows], 1, 20 << 20, 60.0)["verdict"] == "growing"


def test_the_history_has_each_change_of_the_verdict_once():
    history = History()
    for at, (verdict, where) in enumerate(
        [("undecided", "unknown"), ("undecided", "python"), ("growing", "python")]
    ):
        history.note({"verdict": verdict, "where": where, "needed": None}, float(at))
    assert history.records() == [
        {"at": 0.0, "verdict": "undecided", "where": "python"},
        {"at": 2.0, "verdict": "growing", "where": "python"},
    ]
    for at in range(300):
        verdict = "bounded" if at % 2 else "undecided"
        history.note({"verdict": verdict, "where": "none", "needed": None}, float(at))
    assert len(history.records()) <= 101


def test_what_was_never_watched_has_no_say():
    silent = Answered(3, "x", "running", None)
    assert merge_verdicts([process(1), silent], 1)["verdict"] == "bounded"
    assert merge_verdicts([silent], 3)["verdict"] == "undecided"
    assert "watched" in merge_verdicts([silent], 3)["needed"]["why"]


def test_if_nothing_runs_any_more_the_last_answers_count():
    assert merge_verdicts([process(5, state="exited")], None)["verdict"] == "bounded"


def test_a_worker_that_replaced_another_is_judged_by_the_memory_of_all_at_first():
    young = process(9, verdict="undecided", watched_seconds=20.0)
    assert merge_verdicts([process(1), young], 1)["verdict"] == "undecided"
    young = replace(young, recycled=1)
    assert merge_verdicts([process(1), young], 1)["verdict"] == "bounded"
    assert merge_verdicts([young], 1)["verdict"] == "undecided"
    assert doubted([process(1), young], 1, 20 << 20, 60.0)["verdict"] == "undecided"
    older = replace(process(9, verdict="undecided", watched_seconds=90.0), recycled=1)
    assert merge_verdicts([process(1), older], 1)["verdict"] == "undecided"


def test_a_worker_that_has_just_begun_when_the_program_ends_does_not_count():
    young = process(2, verdict="undecided", watched_seconds=0.5)
    assert merge_verdicts([process(1), young], 1)["verdict"] == "undecided"
    assert merge_verdicts([process(1, state="exited"), young], 1)["verdict"] == "bounded"
    older = process(2, verdict="undecided", watched_seconds=61.0)
    assert merge_verdicts([process(1, state="exited"), older], 1)["verdict"] == "undecided"


def test_workers_that_live_for_less_than_a_minute_are_judged_by_memory_alone():
    young = replace(process(2, verdict="undecided", watched_seconds=9.0), recycled=2)
    main = Answered(1, "app.py", "running", None)
    assert doubted([main, young], 1, 1 << 20, 60.0)["verdict"] == "bounded"
    assert doubted([main, young], 1, 20 << 20, 60.0)["verdict"] == "undecided"
    assert doubted([main, young], 1, 1 << 20, 59.0)["verdict"] == "undecided"
    others = (
        replace(young, suspected=True),
        replace(young, recycled=1),
        replace(young, answer=answer("undecided", watched_seconds=61.0)),
    )
    for one in others:
        assert doubted([main, young, one], 1, 1 << 20, 60.0)["verdict"] == "undecided"
