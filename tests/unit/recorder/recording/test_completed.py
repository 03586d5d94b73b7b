"""Snapshots of other versions: what they lack has its value at one place."""

from __future__ import annotations

import pytest

from floodline.recorder._probe.messages import read_message
from floodline.recorder._recording.completed import completed, completed_exit
from floodline.recorder._snapshot import ExitKind
from floodline.web import FORMATS, render_report, snapshot_text
from floodline.web._dashboard.metrics import metrics_text
from recorder_fakes import sample
from web_states import killed

LEAST = {"now": 90.0, "started": 0.0, "memory": {}, "recorder": {}}


def test_a_whole_snapshot_stays_as_it_is_also_in_its_order():
    state = completed(killed())
    assert state == killed()
    assert list(state) == list(killed())
    assert list(state["processes"][0]) == list(killed()["processes"][0])


def test_what_a_snapshot_lacks_is_completed_so_that_all_views_can_show_it():
    state = completed(
        {
            **LEAST,
            "processes": [{"pid": 7}],
            "sessions": [{"name": "chats", "pid": 7}],
            "containers": [{"name": "cache", "pid": 7}],
            "suspects": [
                {"verdict": "growing", "owner": "app.X", "path": "app.X", "type": "dict",
                 "len": 5, "per_round": 1.0, "bytes_per_round": 9.0}
            ],
        }
    )  # fmt: skip
    assert (state["verdict"], state["where"], state["exit"]) == ("undecided", "unknown", None)
    for form in FORMATS:
        assert "app.X" in render_report(state, form)
    assert "cache" in snapshot_text(state)
    assert 'owner="app.X"' in metrics_text(state)


def test_two_completed_snapshots_share_nothing():
    one, other = completed(dict(LEAST)), completed(dict(LEAST))
    one["errors"].append("x")
    one["memory"]["points"].append([1.0, 2.0])
    assert other["errors"] == other["memory"]["points"] == []


@pytest.mark.parametrize("missing", LEAST)
def test_what_is_no_snapshot_is_refused(missing):
    with pytest.raises(KeyError):
        completed({name: value for name, value in LEAST.items() if name != missing})


@pytest.mark.parametrize(
    ("exit", "kind"),
    [
        ({"status": 0, "cause": "ended by itself"}, ExitKind.ENDED),
        ({"status": 2, "cause": "failed with status 2"}, ExitKind.FAILED),
        ({"signal": "SIGTERM", "cause": "ended by SIGTERM"}, ExitKind.SIGNALLED),
        ({"signal": "SIGSEGV", "cause": "crashed with SIGSEGV"}, ExitKind.CRASHED),
        ({"signal": "SIGKILL", "cause": "killed, cause unknown"}, ExitKind.KILLED),
        ({"signal": "SIGKILL", "oom": True, "cause": "killed"}, ExitKind.OUT_OF_MEMORY),
        ({"cause": "gone, cause unknown"}, ExitKind.GONE),
        (
            {"status": 0, "cause": "went on in the background as process 5: still running"},
            ExitKind.BACKGROUND,
        ),
        ({"status": 0, "cause": "ended by itself", "kind": "background"}, ExitKind.BACKGROUND),
    ],
)
def test_an_end_that_was_written_without_a_kind_gets_it(exit, kind):
    assert completed_exit(exit)["kind"] is kind


@pytest.mark.parametrize(
    ("exit", "cause"),
    [({"status": 3}, "status 3"), ({"oom": True}, "out of memory"), ({"cause": None}, "unknown")],
)
def test_an_end_without_a_cause_gets_one(exit, cause):
    assert completed_exit(exit)["cause"] == cause
    assert completed_exit(None) is None


def test_a_line_of_a_probe_that_says_little_is_completed():
    message = read_message({"kind": "tick", "answer": {"verdict": "growing"}, "events": [{}]}, 7.0)
    assert message.keys() == sample().keys()
    assert message["answer"]["suspects"] == []
    assert message["events"] == [{"at": 7.0, "kind": "None", "text": "None"}]
    assert read_message({"kind": "song"}, 7.0) is None
    assert read_message({"kind": "bye"}, 7.0) == {"kind": "bye", "at": 7.0}
