"""One text for the answers of soak and of run."""

from __future__ import annotations

import pytest

from floodline._pages.answer_text import Named, Told, answer_text
from recorder_fakes import suspect


def told(*suspects: Named, **changes) -> list[str]:
    facts = {
        "verdict": "growing", "where": "python", "why": None, "by": "round", "span": "90 rounds",
        "rate": 2048.0, "suspects": suspects,
    }  # fmt: skip
    return answer_text(Told(**(facts | changes))).splitlines()


def test_a_suspect_is_told_with_the_unit_and_the_function_that_are_known_of_it():
    one = Named(suspect(type="bytearray", line_source="trace"), "byte", "round")
    assert told(one) == [
        "GROWING  +2.0 bytes/round, +100 B/round over 90 rounds  (python)",
        "  app.SESSIONS   bytearray, 10 bytes",
        "    reached by  app.SESSIONS",
        "    fed at      app.py:7  round",
        "    holds       Session ×10",
    ]


def test_a_file_below_the_current_folder_is_told_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    caller = {"file": str(tmp_path / "src" / "app.py"), "line": 3}
    inside = Named(suspect(file=str(tmp_path / "lib.py"), caller=caller))
    assert "    fed at      lib.py:7  (static)" in told(inside)
    assert "    called from src/app.py:3" in told(inside)
    elsewhere = str(tmp_path.parent / "lib.py")
    assert f"    fed at      {elsewhere}:7  (static)" in told(Named(suspect(file=elsewhere)))


@pytest.mark.parametrize(
    ("by", "rate", "says"),
    [
        ("round", 1.0, "+1.0 item/round"),
        ("round", 0.5, "+0.5 items/round"),
        ("second", 1.0, "+1.0 item/s"),
        ("second", 0.5, "+30.0 items/min"),
    ],
)
def test_a_rate_is_told_by_the_round_or_by_the_time_that_suits_it(by, rate, says):
    assert f"GROWING  {says}, " in told(Named(suspect(per_round=rate)), by=by)[0]


def test_growth_without_a_name_is_that_of_resident_memory():
    assert told(where="native") == ["GROWING  +2 KiB/round resident over 90 rounds  (native)"]
    assert told(verdict="bounded", where="none", rate=-512.0, by="second", span="2 min") == [
        "BOUNDED  -512 B/s resident over 2 min"
    ]


def test_a_rate_that_is_not_known_is_left_out():
    assert told(verdict="undecided", rate=None) == ["UNDECIDED  over 90 rounds"]


def test_the_reason_comes_before_the_suspects_and_notes_after_them():
    lines = told(*[Named(suspect(f"app.S{n}")) for n in range(3)], why="it is so", shown=2,
                 notes=["the program: failed"])  # fmt: skip
    assert lines[1] == "  it is so"
    assert lines[-2:] == ["  and 1 more in the report", "  the program: failed"]
    assert not any("app.S2" in line for line in lines)
