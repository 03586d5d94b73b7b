"""The sentences that all views share, the plain snapshot, and the terminal."""

from __future__ import annotations

import pytest
from rich.console import Console

from floodline._pages.answer_words import growth, pace, place
from floodline.web import render_report, snapshot_text
from floodline.web._terminal.screen import _curve, screen
from floodline.web._words import phrases as words
from web_states import MIB, SUSPECT, beginning, killed, leaking, steady


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({**leaking(), "suspects": [], "where": "native"}, "Memory grows outside Python"),
        ({**leaking(), "suspects": [], "where": "unknown"}, "no single container explains it"),
        (steady(), "Python objects and process memory are both flat."),
        ({**beginning(), "needed": None}, "Not enough was seen."),
        ({**beginning(), "needed": {"why": "app.KEPT grows by 2", "seconds": 3}},
         "app.KEPT grows by 2. Watch for about 3 s more."),
    ],
)  # fmt: skip
def test_the_reason_of_a_verdict_is_one_sentence(state, says):
    assert says in words.because(state)


def test_how_the_verdict_changed_is_told():
    state = leaking()
    begun = state["started"]
    state["history"] = [
        {"at": begun + 1, "verdict": "undecided", "where": "none"},
        {"at": begun + 95, "verdict": "growing", "where": "python"},
    ]
    says = "The verdict so far: undecided, then growing after 1 min 35 s."
    assert words.verdicts(state) == says
    for form in ("markdown", "html"):
        assert says in render_report(state, form)
    state["history"] = state["history"][:1]
    assert words.verdicts(state) == ""


def test_a_container_that_fills_says_when_it_is_full():
    container = {"items": 5, "max_items": 10, "max_bytes": None, "bytes": None}
    full = {**container, "filling": {"limit": 10, "full_in": 65.0}}
    assert words.amount(container) == "5 of 10 items"
    assert words.amount(full) == "5 of 10 items, full in about 1 min 5 s"


def test_a_suspect_whose_line_is_not_known_is_named_without_it():
    state = leaking()
    state["suspects"] = [{**SUSPECT, "file": None, "line": None}]
    assert words.because(state).endswith("(+2.76 MiB/min).")


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (2, "+2 items/s"),
        (1, "+1 item/s"),
        (0.5, "+30 items/min"),
        (0.001, "+3.6 items/h"),
        (-3, "-3 items/s"),
        (1657.9, "+1,658 items/s"),
    ],
)
def test_rates_are_in_the_unit_that_suits_them(rate, text):
    assert pace(rate) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(1024, "+60 KiB/min"), (-1024, "-60 KiB/min"), (0.001, "none")]
)
def test_growth_is_per_minute(rate, text):
    assert growth(rate) == text


@pytest.mark.parametrize(
    ("exit", "text"),
    [
        ({"status": 3, "signal": None, "cause": "failed", "kind": "failed"}, "failed"),
        ({"status": None, "signal": "SIGKILL", "cause": "killed", "kind": "killed"},
         "killed (SIGKILL)"),
        ({"status": None, "signal": "SIGTERM", "cause": "ended by SIGTERM", "kind": "signalled"},
         "ended by SIGTERM"),
    ],
)  # fmt: skip
def test_an_end_is_its_cause_and_its_signal(exit, text):
    assert words.how(exit) == text


def test_a_run_of_some_seconds_has_no_rate_of_growth():
    state = leaking(15)
    state["memory"]["rate"] = 0.0
    assert words.rise(state) == "too early to tell"
    assert words.rise({**state, "now": state["started"] + 60}) == "none"
    assert "growth too early to tell" in snapshot_text(state)


def test_of_a_process_that_has_ended_the_most_is_told():
    process = {"state": "running", "rss": 3 * MIB, "peak": 5 * MIB}
    assert words.held(process) == "3 MiB"
    assert words.held({**process, "state": "lost", "rss": 0}) == "peak 5 MiB"


def test_a_recording_that_was_cut_off_says_so_in_the_terminal_too():
    state = {**killed(), "cut": {"at": 0.0, "why": "database or disk is full"}}
    console = Console(width=200, record=True)
    console.print(screen(state))
    for text in (snapshot_text(state), console.export_text()):
        assert "Nothing could be written from 1970-01-01 00:00:00 UTC on (database" in text


def test_what_was_gone_before_anybody_looked_is_not_called_empty():
    assert words.held({"state": "exited", "rss": 0, "peak": 0}) == "not measured"
    state = leaking()
    state["memory"] |= {"now": 0, "peak": 0, "points": []}
    assert "memory    not measured, growth" in snapshot_text(state)
    assert "<dd>not measured</dd>" in render_report(state)


def test_a_watch_that_ends_is_no_end_of_the_program():
    state = {**leaking(), "closed": True}
    assert words.ending(state) == "Watching ended; the program continues."
    for process in state["processes"]:
        process["state"] = "exited"
    assert words.ending(state) == "The program has ended."


def test_a_closed_recording_without_a_status_has_ended_badly():
    gone = {"status": None, "signal": None, "oom": False, "cause": "gone"}
    assert words.failed({"closed": True, "exit": gone})
    assert not words.failed({"closed": False, "exit": gone})
    assert not words.failed({"closed": True, "exit": None})


def test_the_line_is_crossed_near_or_far():
    state = leaking()
    assert words.crossing(state) == "crosses 512 MiB in 10 min 51 s"
    assert words.crossing({**state, "line": 100 * MIB}) == "crossed 100 MiB"
    assert words.crossing({**state, "closed": True}) == "below 512 MiB"
    assert words.crossing({**state, "line": None}) == "no line is set"


def test_a_place_may_have_no_line():
    assert place({**SUSPECT, "line": None}) == "chat/service.py"


def test_a_container_without_bounds_is_empty_and_none_is_fuller_than_full():
    loose = {"items": 5, "max_items": None, "bytes": None, "max_bytes": None}
    assert (words.fullness(loose), words.amount(loose)) == (0.0, "5 items")
    assert words.fullness({**loose, "max_items": 2}) == 1.0
    assert words.amount({**loose, "max_bytes": 1024}) == "5 items, 0 B of 1 KiB"


def test_a_snapshot_begins_with_the_verdict_and_has_a_line_for_each_fact():
    lines = snapshot_text(killed()).splitlines()
    assert lines[0].startswith("GROWING  chat.service.PlanService._sessions gains 12.4 items/s")
    assert "killed by the kernel" in lines[1]
    kinds = {line.split()[0] for line in lines}
    assert {"program", "memory", "suspect", "sessions", "container", "process"} <= kinds
    assert any("left: 2,310 idle, 1,204 closed, 96 count" in line for line in lines)
    assert lines[-1] == "not covered: worker.py was started with -I, which keeps probes out"


def test_a_snapshot_of_nothing_is_short():
    assert len(snapshot_text(beginning()).splitlines()) == 3


def test_names_cannot_command_the_terminal():
    state = leaking()
    state["command"] = state["suspects"][0]["owner"] = "\x1b]0;x\x07[red]"
    assert "\x1b" not in snapshot_text(state)
    assert "\x1b" not in drawn(state)
    assert "[red]" in drawn(state)


def drawn(state, width=120, **options):
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(screen(state, width=width, **options))
    return capture.get()


def test_the_screen_shows_all_parts():
    text = drawn(killed(), status="run.rec")
    for part in ("run.rec", "GROWING", "273 MiB", "chat/service.py:31", "2,310 idle", "replies",
                 "94%", "4101", "08:53:21  started", "killed by the kernel", "▃"):  # fmt: skip
        assert part in text


def test_the_screen_leaves_out_what_there_is_nothing_to_say_of():
    text = drawn(beginning(), width=60)
    assert "UNDECIDED" in text
    for part in ("sessions", "containers", "pid", "what grows", "events"):
        assert part not in text


def test_memory_above_the_line_and_a_good_end_are_drawn_too():
    state = {**leaking(), "line": 100 * MIB, "closed": True}
    state["exit"] = {"status": 0, "signal": None, "oom": False, "cause": "exited normally"}
    assert "crossed 100 MiB" in drawn(state)
    assert "exited normally" in drawn(state)


def test_a_curve_has_at_most_as_many_bars_as_there_is_room():
    points = [[float(n), float(n)] for n in range(1000)]
    assert len(_curve(points, 40)) == 40
    assert _curve(points, 40)[-1] == "█"
    assert len(_curve(points[:3], 40)) == 3
