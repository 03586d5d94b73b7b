"""What is in memory now, in words."""

from __future__ import annotations

from floodline.recorder._answers.held_text import held_document, held_text, split_words
from web_states import leaking


def test_the_answer_names_places_sizes_and_who_manages_the_memory():
    lines = held_text(leaking(), 4101).splitlines()
    assert lines[0].endswith("objects inspected; sizes are estimated and include what is below")
    assert lines[1].split() == [
        *("180", "MiB", "66%", "chat.service.PlanService._sessions", "(dict,", "5,230", "items)"),
    ]
    assert "part of chat.service.PlanService._sessions" in lines[2]
    assert (
        "Python objects 200 MiB, malloc in use 40 MiB, malloc free but held 9 MiB, unex" in lines[3]
    )


def test_a_process_without_large_holders_and_one_that_was_cut_short():
    state = leaking()
    state["holders"] = []
    state["processes"][0]["split"] = None
    state["processes"][0]["blind_spots"] = ["paused: less than a tenth", "something else"]
    lines = held_text(state, 4101).splitlines()
    assert lines[1:] == ["  no single place holds much", "  paused: less than a tenth"]
    assert held_document(state, 4101)["memory"] is None


def test_an_allocator_that_does_not_report_is_left_out():
    split = dict.fromkeys(("resident", "python", "malloc", "malloc_free", "mapped"), 0)
    assert split_words({**split, "unexplained": 1 << 20}).startswith("unexplained (code")
