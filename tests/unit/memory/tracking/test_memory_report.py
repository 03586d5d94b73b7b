from __future__ import annotations

import contextvars
import json
import sys

import pytest

from floodline.errors import ConfigError
from floodline.memory import MemoryTracker
from floodline.memory._tracking import report
from memory_fakes import MIB, fake_tracker


def test_the_json_report_is_a_document():
    tracker, memory, _ = fake_tracker(name="t")
    with tracker.stage("load"):
        memory.grow(MIB)
    document = json.loads(tracker.report("json"))
    assert {"schema", "tool", "python", "errors"} <= document.keys()
    assert document["tracker"]["growth"] == MIB
    assert document["stages"][0]["name"] == "load"
    assert document["stages"][0]["mean_growth"] == MIB


def filled():
    tracker, memory, _ = fake_tracker(name="t")
    with tracker.stage("small"):
        memory.grow(MIB)
    with tracker.stage("a|b [red]"):
        memory.grow(2 * MIB)
    with tracker.stage("shrinks"):
        memory.grow(-MIB)
    return tracker


def test_the_text_report_begins_with_who_grew_most():
    text = filled().report()
    assert text.startswith("t: peak 3 MiB, growth 2 MiB, 6 samples\n")
    assert text.index("a|b [red]") < text.index("small") < text.index("shrinks")
    assert "-1 MiB" in text
    assert text.endswith("\n")


def test_the_text_report_is_plain_without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    lines = filled().report().splitlines()
    assert lines[2].split() == ["stage", "runs", "growth", "mean", "own", "peak", "seconds"]
    assert len({len(line) for line in lines[2:]}) == 1


def test_the_text_report_is_a_table_with_rich():
    pytest.importorskip("rich")
    assert "┃ stage" in filled().report()


def test_the_markdown_report_is_a_table():
    lines = filled().report("markdown").splitlines()
    assert lines[2] == "| stage | runs | growth | mean | own | peak | seconds |"
    assert lines[4].startswith("| a\\|b [red] | 1 | 2 MiB |")


def test_a_name_of_several_lines_is_one_row():
    tracker = MemoryTracker(probe=lambda: 1)
    with tracker.stage("load\nall"):
        pass
    assert "| load all | 1 |" in tracker.report("markdown")


def test_a_report_without_stages_is_one_line():
    tracker, _, _ = fake_tracker(name="t")
    assert tracker.report() == "t: peak 0 B, growth 0 B, 0 samples\n"


def test_a_report_says_when_stages_overlapped():
    tracker, _, _ = fake_tracker()
    first, second = tracker.stage("a"), tracker.stage("b")
    contextvars.copy_context().run(first.__enter__)
    with second:
        first.end(failed=False)
    assert "b *" in tracker.report("markdown")
    assert report.NOTE in tracker.report("markdown")


def test_an_unknown_format_is_refused():
    with pytest.raises(ConfigError, match="format='xml' is unknown; choose one of 'text'"):
        MemoryTracker().report("xml")
