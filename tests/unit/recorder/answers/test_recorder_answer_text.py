"""The answer of a run in words."""

from __future__ import annotations

import pytest

from floodline.recorder._answers.answer_text import text
from recorder_fakes import suspect


def state(verdict="growing", *suspects, **changes):
    told = [{"command": "app.py", "pids": [1], **one} for one in suspects]
    return {
        "verdict": verdict, "where": "python", "needed": None, "suspects": told,
        "started": 0.0, "now": 90.0, "memory": {"rate": 2048.0}, "exit": None, "not_covered": [],
        "events": [],
        **changes,
    }  # fmt: skip


def test_what_grows_comes_first_with_its_line():
    words = text(state("growing", suspect(pids=[1, 2], echoes=["app.INDEX"]))).splitlines()
    assert words == [
        "GROWING  +2.0 items/s, +100 B/s over 1 min 30 s  (python)",
        "  app.SESSIONS   dict, 10 items, in 2 processes",
        "    reached by  app.SESSIONS",
        "    fed at      app.py:7  (static)",
        "    holds       Session ×10",
        "    echoed by   app.INDEX",
    ]


def test_slow_growth_is_told_by_the_minute():
    assert "+6.0 items/min" in text(state("growing", suspect(per_round=0.1)))


def test_a_line_that_was_seen_is_not_called_static():
    words = text(state("growing", suspect(line_source="trace", holds="")))
    assert "(static)" not in words
    assert "holds" not in words


def test_a_suspect_without_a_line_is_told_all_the_same():
    words = text(state("growing", suspect(file=None)))
    assert "app.SESSIONS" in words
    assert "fed at" not in words


@pytest.mark.parametrize("verdict", ["bounded", "undecided"])
def test_without_growth_the_resident_memory_is_told(verdict):
    words = text(state(verdict, suspect(), where="none", memory={"rate": -10.0}))
    assert words == f"{verdict.upper()}  -10 B/s resident over 1 min 30 s"


def test_undecided_says_what_more_is_needed():
    needed = {"seconds": 60.0, "why": "too few seconds to tell"}
    assert "too few seconds" in text(state("undecided", needed=needed))


def test_an_end_that_was_none_of_its_own_is_told_and_what_is_not_covered():
    died = {"status": None, "signal": "SIGKILL", "cause": "killed, cause unknown", "kind": "killed"}
    words = text(state("bounded", exit=died, not_covered=["`python -I` (process 3)"]))
    assert "  the program: SIGKILL: killed, cause unknown" in words
    assert "  not covered: `python -I` (process 3)" in words
    failed = {"status": 3, "signal": None, "cause": "failed with status 3", "kind": "failed"}
    assert "  the program: failed with status 3" in text(state("bounded", exit=failed))
    well = {"status": 0, "signal": None, "cause": "exited normally", "kind": "ended"}
    assert "the program" not in text(state("bounded", exit=well))
    assert "the program" in text(state("bounded", exit={**well, "kind": "background"}))


def test_a_run_of_some_seconds_has_no_rate():
    words = text(state("undecided", now=5.0, memory={"rate": 0.0}))
    assert words.splitlines()[0] == "UNDECIDED  over 5 s"


def test_what_still_ran_at_the_end_is_told():
    left = {"kind": "left_running", "text": "app.py", "pid": 5, "at": 1.0}
    told = text(state("bounded", events=[left, {**left, "pid": 6}]))
    assert "  2 of its processes were still running when the recording ended" in told.splitlines()


def test_a_signal_is_named_once():
    ended = {"status": None, "signal": "SIGINT", "cause": "ended by SIGINT", "kind": "signalled"}
    assert "  the program: ended by SIGINT" in text(state("bounded", exit=ended)).splitlines()


def test_workers_that_were_killed_are_told():
    lost = {"kind": "process_lost", "text": "app.py", "pid": 5, "at": 1.0}
    assert "  lost 2 of its processes: killed, crashed, or ended by os._exit" in text(
        state("bounded", events=[lost, {**lost, "pid": 6}])
    )
    killed = {"kind": "oom_kill", "text": "the kernel has killed", "pid": None, "at": 2.0}
    assert "os._exit; the kernel has killed" in text(state("bounded", events=[lost, killed]))


def test_only_the_worst_are_listed():
    many = [suspect(f"app.S{n}") for n in range(9)]
    words = text(state("growing", *many))
    assert "app.S4" in words
    assert "app.S5" not in words
    assert "and 4 more" in words
