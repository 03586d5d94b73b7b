"""The report: what it says, and that what it shows stays text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from floodline._pages.markup import Markup, tag
from floodline.errors import ConfigError
from floodline.web import FORMATS, render_report, report_document, snapshot_text, write_report
from floodline.web._report.markdown import code, plain
from floodline.web._report.memory_curve import curve, in_words
from floodline.web._words.phrases import moment
from web_states import MIB, STARTED, SUSPECT, beginning, killed, leaking, steady

NASTY = '<script>alert("x")</script>`|*'
APP = """
class PlanService:
    def __init__(self):
        self._sessions = {}

    def get(self, session_id):
        if session_id not in self._sessions:
            self._sessions[session_id] = object()
        return self._sessions[session_id]


SERVICE = PlanService()
"""


class Outline(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.words, self.outside = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.outside += [value for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def outline(state, **options):
    found = Outline(render_report(state, **options))
    assert found.open == []
    return found


def test_the_page_is_one_file_without_scripts_or_anything_from_elsewhere():
    found = outline(killed())
    assert found.outside == []
    assert not {"script", "link", "img", "iframe"} & set(found.tags)
    assert "svg" in found.tags
    assert "url(" not in render_report(killed())


def test_the_verdict_comes_first_and_then_in_order_what_a_reader_asks():
    text = outline(killed()).text
    parts = ["Growing", "_sessions gains 12.4 items/s (+2.76 MiB/min), fed at chat/service.py:31",
             "Memory", "What grew", "Reached by chat.service.SERVICE._sessions", "Sessions",
             "2,310 idle, 1,204 closed", "The end", "killed by the kernel", "What to do next",
             "Bounded containers", "Processes", "Events"]  # fmt: skip
    at = 0
    for part in parts:
        at = text.index(part, at)
    assert "SIGKILL" in text


def test_a_recording_that_was_cut_off_says_since_when_and_why():
    state = {**killed(), "cut": {"at": STARTED + 90, "why": "database or disk is full"}}
    at = moment(STARTED + 90)
    for form in ("html", "markdown"):
        text = render_report(state, form)
        assert f"Nothing could be written from {at} on (database or disk is full)" in text
        assert "Nobody closed" not in text


def test_a_recording_that_nobody_closed_says_so():
    state = leaking()
    cause = "this recording was never closed: the recorder was killed together with the program"
    state["exit"] = {
        "status": None,
        "signal": None,
        "oom": False,
        "cause": cause,
        "kind": "unclosed",
    }
    for form in ("html", "markdown"):
        assert f"T{cause[1:]}" in render_report(state, form)
    assert report_document(state)["window"]["closed"] is False


def test_a_recording_that_is_still_written_says_so():
    assert "still being written" in render_report(leaking(), "markdown")
    assert "The program's end was not seen." in outline(leaking()).text


def test_a_closed_recording_says_nothing_of_that():
    state = {**steady(), "closed": True}
    assert "recording" not in outline(state).text
    assert "Watching ended; the program continues." in outline(state).text


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("make", [leaking, killed, steady, beginning])
def test_every_state_can_be_written_in_every_form(make, format, tmp_path):
    state = make()
    name = {"html": "r.html", "json": "r.JSON", "markdown": "r.md"}[format]
    written = write_report(state, tmp_path / name)
    assert written.read_text(encoding="utf-8") == render_report(state, format)


def test_the_format_may_be_given_and_an_unknown_suffix_is_a_page(tmp_path):
    as_json = write_report(leaking(), tmp_path / "r.txt", format="json")
    assert json.loads(as_json.read_text(encoding="utf-8"))["verdict"] == "growing"
    assert (
        write_report(leaking(), str(tmp_path / "r")).read_text(encoding="utf-8")[:9] == "<!doctype"
    )


def test_an_unknown_format_and_a_folder_that_is_not_there_are_errors(tmp_path):
    with pytest.raises(ConfigError, match="choose one of 'html', 'json', 'markdown'"):
        render_report(leaking(), "pdf")
    with pytest.raises(ConfigError, match="cannot be written to"):
        write_report(leaking(), tmp_path / "missing" / "r.html")
    with pytest.raises(ConfigError, match="is not a folder"):
        render_report(leaking(), "html", tmp_path / "missing")


def test_the_json_document_has_these_names_and_no_others():
    document = json.loads(render_report(killed(), "json"))
    assert list(document) == [
        "schema", "tool", "python", "errors", "verdict", "where", "suspects", "history", "exit",
        "processes", "window", "sessions", "containers", "holders",
    ]  # fmt: skip
    assert set(SUSPECT) == set(document["suspects"][0])
    assert document["exit"] == {k: v for k, v in killed()["exit"].items() if k != "kind"}
    assert set(document["processes"][0]["exit"]) == set(document["exit"])
    assert document["window"]["seconds"] == 480


def test_what_was_in_memory_is_in_every_form():
    for form in ("html", "markdown"):
        written = render_report(leaking(), form).replace("\\", "")
        for part in ("In memory at the end", "MemoryService.turns", "66%", "malloc free but held"):
            assert part in written
        state = {**leaking(), "holders": []}
        state["processes"] = [{**one, "split": None} for one in state["processes"]]
        assert "malloc free" not in render_report(state, form)
    said = snapshot_text(leaking())
    assert "holds     chat.service.PlanService._sessions  180 MiB  66%  dict, 5,230 items" in said
    assert "memory of 4101: Python objects 200 MiB" in said


def test_the_json_document_has_an_exit_also_when_nobody_saw_it():
    unseen = {"status": None, "signal": None, "oom": None, "cause": "not seen"}
    assert report_document(leaking())["exit"] == unseen


def test_text_of_the_program_stays_text():
    state = killed()
    state |= {"command": NASTY, "not_covered": [NASTY]}
    state["suspects"][0] |= {"owner": NASTY, "path": NASTY, "holds": NASTY, "echoes": [NASTY]}
    state["sessions"][0]["name"] = state["containers"][0]["name"] = NASTY
    state["events"][0] |= {"kind": NASTY, "text": NASTY}
    state["processes"][0]["command"] = NASTY
    found = outline(state)
    assert "script" not in found.tags
    assert found.text.count("<script>") >= 9
    written = render_report(state, "markdown")
    assert re.search(r"(?<!\\)<script>", written.replace("`", "")) is None


def test_what_is_not_seen_is_said_once():
    assert outline(killed()).text.count("variables of running functions") == 1
    assert "does not see" not in outline(beginning()).text


def test_a_repeated_event_says_how_often():
    state = leaking()
    state["events"][0]["count"] = 1200
    assert "probe 4101 is connected (1,200 times)" in outline(state).text


def test_suspects_that_proved_bounded_are_in_the_document_only():
    state = leaking()
    state["suspects"][1]["verdict"] = "bounded"
    assert "chat.metrics.HISTORY" not in render_report(state, "markdown")
    assert len(json.loads(render_report(state, "json"))["suspects"]) == 2


# ---- sources


def test_the_sources_add_the_finding_of_the_scan_and_the_line_itself(tmp_path):
    (tmp_path / "chat").mkdir()
    (tmp_path / "chat" / "service.py").write_text(APP, encoding="utf-8")
    state = leaking()
    state["suspects"][0] |= {"line": 8}
    text = outline(state, sources=tmp_path).text
    assert "FLD101" in text
    assert "floodline explain FLD101" in text
    assert "self._sessions[session_id] = object()" in text
    assert "scan says FLD101 at" in render_report(state, "markdown", tmp_path)
    suspects = json.loads(render_report(state, "json", tmp_path))["suspects"]
    assert suspects[0]["finding"]["rule"] == "FLD101"
    assert suspects[1]["finding"] is None
    assert suspects[1]["code"] == ""


@pytest.mark.parametrize(
    "suspect",
    [
        {"owner": "service.PlanService._sessions", "file": None, "line": None},
        {"owner": "__main__.PlanService._sessions", "file": None, "line": None},
        {"owner": "unknown", "file": "/srv/app/service.py", "line": 8},
    ],
)
def test_a_finding_is_known_by_its_name_or_by_the_line_that_feeds(suspect, tmp_path):
    (tmp_path / "service.py").write_text(APP, encoding="utf-8")
    state = leaking()
    state["suspects"] = [{**SUSPECT, **suspect}]
    found = json.loads(render_report(state, "json", tmp_path))["suspects"][0]["finding"]
    assert found is not None
    assert found["rule"] == "FLD101"


def test_of_two_findings_with_like_names_the_one_of_the_module_is_taken(tmp_path):
    for name in ("another", "service"):
        (tmp_path / f"{name}.py").write_text(APP, encoding="utf-8")
    state = leaking()
    owner = {"owner": "service.PlanService._sessions", "file": None, "line": None}
    state["suspects"] = [{**SUSPECT, **owner}]
    found = json.loads(render_report(state, "json", tmp_path))["suspects"][0]["finding"]
    assert found["path"].endswith("service.py")


@pytest.mark.parametrize("line", [8, 4000])
def test_a_line_that_cannot_be_read_is_left_out(line, tmp_path):
    (tmp_path / "service.py").write_bytes(b"\xff\xfe broken" if line == 8 else b"x = 1\n")
    state = leaking()
    state["suspects"] = [{**SUSPECT, "file": "other/service.py", "line": line}]
    assert json.loads(render_report(state, "json", tmp_path))["suspects"][0]["code"] == ""
    state["suspects"][0]["file"] = "service.py"
    assert json.loads(render_report(state, "json", tmp_path))["suspects"][0]["code"] == ""


# ---- what to do next


def steps_of(state):
    text = render_report(state, "markdown")
    return text.partition("## What to do next")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (
            {},
            'Sessions(make_session, idle="30 min", max_sessions=10_000)  # at most about 37.1 MiB',
        ),
        ({"owner": "app.CACHE"}, 'CACHE = BoundedMap(10_000, idle="30 min")'),
        ({"owner": "app.LOG", "type": "list"}, "LOG = BoundedLog(10_000)"),
        ({"owner": "app.f()x y", "type": "set"}, 'items = BoundedMap(10_000, idle="30 min")'),
        ({"owner": "a.B", "per_round": 0.0}, 'B = BoundedMap(50_000, idle="30 min")'),
        ({"owner": "a.B", "bytes_per_round": 1e12}, "B = BoundedMap(10, "),
    ],
)
def test_the_bound_to_set_fits_an_eighth_of_the_line(change, code):
    state = leaking()
    state["memory"]["rate"] = 0.0
    state["suspects"] = [{**SUSPECT, **change}]
    assert code in steps_of(state)


def test_an_item_costs_its_share_of_the_growth_of_memory():
    state = leaking()
    state["memory"]["rate"] = 4 * SUSPECT["bytes_per_round"]
    twice = [{**SUSPECT, "owner": "a.B"}, {**SUSPECT, "owner": "a.C"}]
    assert "of about 15.2 KiB each" in steps_of({**state, "suspects": twice[:1]})
    assert "of about 7.59 KiB each" in steps_of({**state, "suspects": twice})


def test_without_a_line_the_limit_counts_and_without_both_a_usual_size():
    state = leaking()
    state["suspects"] = [{**SUSPECT, "owner": "a.B", "file": None, "line": None}]
    state["line"], state["memory"]["rate"] = None, 0.0
    assert "B = BoundedMap(20_000, " in steps_of(state)
    state["memory"]["limit"] = None
    assert "B = BoundedMap(10_000, " in steps_of(state)
    assert "adds faster" not in steps_of(state)


@pytest.mark.parametrize(
    ("where", "step"),
    [("native", "memray run --native"), ("fragmentation", "MALLOC\\_ARENA\\_MAX=2"),
     ("unknown", "Watch for longer")],
)  # fmt: skip
def test_growth_without_a_container_says_where_to_look(where, step):
    state = {**leaking(), "suspects": [], "where": where}
    assert step in steps_of(state)


def test_an_undecided_run_names_what_to_look_at_first():
    state = {**beginning(), "suspects": [{**SUSPECT, "verdict": "undecided"}]}
    assert "Look first at chat.service.PlanService" in steps_of(state)
    state["suspects"][0]["per_round"] = 0.0
    assert "Look first" not in steps_of(state)


def test_trouble_with_sessions_and_an_end_without_a_line_are_steps():
    state = killed()
    state["line"] = None
    assert "Once a session of 'chats' was held" in steps_of(state)
    assert "3 times a session of 'chats' had left" in steps_of(state)
    assert 'floodline run --line "819 MiB" …' in steps_of(state)


def test_undecided_says_how_much_longer_and_bounded_needs_nothing():
    assert "about 42 s more" in steps_of(beginning())
    calm = {**steady(), "sessions": []}
    assert "Nothing; keep watching" in steps_of(calm)


# ---- the curve


def test_the_curve_has_the_line_and_a_text_in_its_place():
    drawn = curve(leaking())
    assert 'class="line"' in drawn
    assert "line 512 MiB" in drawn
    assert "limit" not in drawn  # 1 GiB is too far away to be drawn
    assert in_words(leaking()) in drawn.replace("&#x27;", "'")
    assert "The line is at 512 MiB." in in_words(leaking())


def test_a_near_limit_is_drawn_and_a_far_line_is_not():
    state = leaking()
    state["memory"]["limit"] = 300 * MIB
    state["line"] = 10_000 * MIB
    assert "limit 300 MiB" in curve(state)
    assert "line 9.77 GiB" not in curve(state)


@pytest.mark.parametrize("seconds", [1, 7, 480, 86400 * 30])
def test_a_curve_of_any_length_stays_in_its_frame(seconds):
    drawn = curve(leaking(seconds))
    numbers = [float(n) for n in re.findall(r' (?:x|x1|x2|y|y1|y2)="([^"]+)"', drawn)]
    assert all(0 <= number <= 920 for number in numbers)
    assert 2 <= drawn.count('class="end"') < 20


def test_without_two_points_there_is_no_curve():
    assert "Too little data" in curve(beginning())
    assert in_words(beginning()) == "No memory data."


# ---- small things


def test_markup_is_kept_and_text_is_escaped():
    assert tag("p", Markup("<b>"), "<i>", None, ["x"], class_="a", id=None) == (
        '<p class="a"><b>&lt;i&gt;x</p>'
    )
    assert tag("p", title='a"><b') == '<p title="a&quot;&gt;&lt;b"></p>'
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'


def test_names_with_backticks_are_no_code():
    assert code("a|b") == "`a¦b`"
    assert code("a`b") == plain("a`b") == "a\\`b"


def test_markdown_has_the_events_that_are_not_usual():
    state = leaking()
    lost = {"at": 5.0, "pid": 7, "kind": "process_lost", "text": "app.py", "count": 2}
    state["events"] = [{**lost, "kind": "process_started"}, lost]
    part = render_report(state, "markdown").partition("## Events\n\n")[2]
    assert part.startswith("- 00:00:05 process lost: app.py (2 times)\n\n")
