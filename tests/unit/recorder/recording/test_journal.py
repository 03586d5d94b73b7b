"""What matters outlives what is frequent."""

from __future__ import annotations

from floodline.recorder._recording.journal import FIRST, LAST, OTHERS, Journal


def test_events_come_in_order_with_the_newest_last():
    journal = Journal()
    journal.add(1.0, 5, "growing", "a grows")
    journal.add(2.0, None, "hook_error", "b")
    assert journal.records() == [
        {"at": 1.0, "pid": 5, "kind": "growing", "text": "a grows"},
        {"at": 2.0, "pid": None, "kind": "hook_error", "text": "b"},
    ]


def test_the_same_words_are_counted_and_not_repeated():
    journal = Journal()
    for at in range(5):
        journal.add(at, 5, "hook_error", "chats: KeyError")
    assert journal.records() == [
        {"at": 0, "pid": 5, "kind": "hook_error", "text": "chats: KeyError", "count": 5}
    ]


def test_a_flood_of_small_events_does_not_wash_away_what_matters():
    journal = Journal()
    journal.add(0.0, 5, "growing", "the culprit")
    for n in range(3 * OTHERS):
        journal.add(n, 5, "hook_error", f"error {n}")
    kinds = [event["kind"] for event in journal.records()]
    assert kinds[0] == "growing"
    assert len(kinds) == OTHERS + 1


def test_of_very_many_that_matter_the_first_and_the_last_stay():
    journal = Journal()
    for n in range(FIRST + 2 * LAST):
        journal.add(n, 5, "retained", f"path {n}")
    texts = [event["text"] for event in journal.records()]
    assert len(texts) == FIRST + LAST
    assert texts[0] == "path 0"
    assert texts[-1] == f"path {FIRST + 2 * LAST - 1}"


def test_only_what_is_new_or_counted_again_is_written():
    journal = Journal()
    journal.add(0.0, 5, "growing", "x")
    assert [entry.text for entry in journal.unwritten()] == ["x"]
    assert journal.unwritten() == []
    journal.add(1.0, 5, "growing", "x")
    assert [entry.count for entry in journal.unwritten()] == [2]
    journal.rewrite()
    assert [entry.text for entry in journal.unwritten()] == ["x"]


def test_a_text_is_cut():
    journal = Journal()
    journal.add(0.0, 5, "growing", "x" * 10_000)
    assert len(journal.records()[0]["text"]) == 500
