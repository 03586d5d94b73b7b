from __future__ import annotations

import re

import pytest

from floodline.soak import Answer
from floodline.soak._page import page


def test_the_page_shows_the_answer_and_escapes_it(suspect):
    record = Answer(
        verdict="growing", where="python", rounds=9, warmup=1, suspects=(suspect,)
    ).as_dict()
    shown = page(record, "a <b> c")
    assert "a &lt;b&gt; c" in shown
    assert "_memory_services" in shown
    assert "BoundedMap" in shown
    assert "<svg" not in shown  # nothing was measured
    assert "(static)" not in shown


@pytest.mark.parametrize(
    ("verdict", "changes", "words"),
    [
        ("bounded", {}, "Nothing to do"),
        ("undecided", {"needed_rounds": 600, "why": "a rise <1>"}, "--rounds 600"),
        ("undecided", {"why": "a rise <1>"}, "A rise &lt;1&gt;."),
        ("undecided", {"why": "a rise <1>"}, "--rounds 18"),
        ("growing", {"where": "native"}, "outside Python objects"),
        ("growing", {"where": "native", "why": "malloc holds more"}, "malloc holds more"),
        ("undecided", {"errors": ("ValueError",)}, 'data-verdict="failed"'),
    ],
)
def test_the_page_says_what_to_do_next(verdict, changes, words):
    answer = Answer(**{"verdict": verdict, "where": None, "rounds": 9, "warmup": 1} | changes)
    assert words in page(answer.as_dict(), answer.text())


def test_the_page_draws_memory_by_kind_and_the_length_of_each_suspect(run):
    answer = run("ROWS = []\ndef round(i):\n    ROWS.append([i])\n", rounds=30)
    assert answer.series["suspects"][0][-1] == answer.series["rounds"][-1]
    shown = page(answer.as_dict(), answer.text())
    assert shown.count("<svg") == 2
    assert shown.count("<polyline") == 6 + 1
    for kind in ("resident", "Python objects", "malloc in use", "malloc free", "not explained"):
        assert kind in shown
    assert not re.search(r"<script|https?://|src=", shown)
    assert "prefers-color-scheme: dark" in shown
    assert "width=device-width" in shown
