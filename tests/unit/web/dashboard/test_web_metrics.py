"""The state for Prometheus."""

from __future__ import annotations

from floodline.web._dashboard.metrics import metrics_text
from web_states import beginning, leaking


def test_the_main_figures_are_told():
    lines = metrics_text(leaking()).splitlines()
    assert "floodline_run_line_bytes 536870912" in lines
    assert 'floodline_run_verdict{verdict="growing"} 1' in lines
    assert 'floodline_run_verdict{verdict="bounded"} 0' in lines
    assert "floodline_run_processes 1" in lines
    assert 'floodline_run_sessions_live{name="chats",pid="4101"} 412' in lines
    assert 'floodline_run_container_max_items{name="replies",pid="4101"} 1000' in lines
    owner = 'owner="chat.service.PlanService._sessions",command="server.py --port 8000"'
    assert f"floodline_run_suspect_bytes_per_second{{{owner}}} 48200" in lines


def test_what_is_not_known_is_left_out_with_its_heading():
    text = metrics_text(beginning())
    assert "line_bytes" not in text
    assert "sessions_live" not in text


def test_labels_are_escaped_and_equal_series_are_added_up():
    state = leaking()
    state["containers"] = [
        {**state["containers"][0], "name": 'a"b\\\n', "items": n, "max_items": None} for n in (1, 2)
    ]
    found = [line for line in metrics_text(state).splitlines() if "container_items{" in line]
    assert found == ['floodline_run_container_items{name="a\\"b\\\\\\n",pid="4101"} 3']
