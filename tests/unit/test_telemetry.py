from __future__ import annotations

import gc
import json
import os
import subprocess
import sys

import pytest

from floodline import telemetry
from floodline.telemetry import Reason, Stats


class Box:
    def stats(self):
        return Stats(kind="box", name="a", items=2, left={"idle": 1})


@pytest.fixture
def heard():
    events = []
    end = telemetry.subscribe(events.append)
    yield events
    end()


def test_reasons_are_plain_words():
    assert Reason.idle == "idle"
    assert json.dumps({Reason.owner_gone: 1}) == '{"owner_gone": 1}'
    assert set(Reason) == {
        *("idle", "age", "count", "bytes", "pressure", "completed", "closed", "replaced"),
        *("owner_gone", "shutdown", "parked", "stale", "discarded"),
    }


def test_stats_are_frozen_and_ready_for_json():
    stats = Box().stats()
    assert json.loads(json.dumps(stats.as_dict()))["left"] == {"idle": 1}
    with pytest.raises(AttributeError):
        stats.items = 3


def test_a_registered_holder_is_seen_as_long_as_it_lives_and_is_not_kept():
    box = Box()
    telemetry.register(box)
    assert box in telemetry.holders()
    number = id(box)
    del box
    gc.collect()
    assert number not in {id(holder) for holder in telemetry.holders()}
    assert number not in telemetry._holders


def test_a_holder_can_be_taken_out_and_that_twice():
    box = Box()
    telemetry.register(box)
    telemetry.unregister(box)
    telemetry.unregister(box)
    assert box not in telemetry.holders()


def test_a_subscriber_hears_events_until_it_ends(heard):
    telemetry.emit("stuck_hold", "chats", id="alice", seconds=301)
    event = heard[0]
    assert (event.kind, event.source) == ("stuck_hold", "chats")
    assert event.fields == {"id": "alice", "seconds": 301}
    assert event in telemetry.recent()


def test_after_the_end_nothing_is_heard():
    events = []
    end = telemetry.subscribe(events.append)
    end()
    end()
    telemetry.emit("quiet", "test")
    assert events == []


def test_a_subscriber_that_raises_stops_nobody_and_is_noted(heard):
    def broken(event):
        raise OSError("no terminal")

    end = telemetry.subscribe(broken)
    try:
        telemetry.emit("something", "test")
    finally:
        end()
    assert [event.kind for event in heard] == ["something"]
    assert {"error": "OSError: no terminal"} in [event.fields for event in telemetry.recent()]


def test_only_the_last_thousand_events_are_kept():
    for n in range(1100):
        telemetry.emit("tick", "test", n=n)
    assert len(telemetry.recent()) == 1000
    assert telemetry.recent()[-1].fields == {"n": 1099}


def test_an_error_is_described_whatever_its_str_does():
    class Rude(Exception):
        def __str__(self):
            raise TypeError("no")

    assert telemetry.describe(KeyError("x")) == "KeyError: 'x'"
    assert telemetry.describe(Rude()) == "Rude"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_in_a_forked_child_holders_start_empty_and_nobody_listens():
    code = """
import os
from floodline import telemetry
class Box:
    full = True
    def stats(self): ...
    def _after_fork(self): self.full = False
class Plain:
    def stats(self): ...
box, plain = Box(), Plain()
telemetry.register(box)
telemetry.register(plain)
telemetry.subscribe(print)
telemetry.emit("before", "test")
pid = os.fork()
if pid == 0:
    os._exit(1 if box.full or telemetry.recent() or telemetry._subscribers else 0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) or not box.full)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_events_are_logged_but_one_of_a_kind_only_once_a_minute(caplog, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(telemetry.time, "time", lambda: now[0])
    monkeypatch.setattr(telemetry, "_logged", {})
    for _ in range(3):
        telemetry.emit("stuck_hold", "chats", id="alice")
    telemetry.emit("stuck_hold", "other", id="bob")
    now[0] += 61
    telemetry.emit("stuck_hold", "chats", id="carol")
    assert [record.getMessage() for record in caplog.records] == [
        "stuck hold in chats: id=alice",
        "stuck hold in other: id=bob",
        "stuck hold in chats: id=carol",
    ]


def test_what_was_logged_when_is_not_remembered_without_bound(caplog, monkeypatch):
    monkeypatch.setattr(telemetry, "_logged", {})
    for number in range(2500):
        telemetry.emit("retained", f"source-{number}")
    assert len(telemetry._logged) <= 1000
