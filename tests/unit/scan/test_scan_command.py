"""`floodline scan` and `floodline explain`, as a user calls them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from floodline.cli import _explain as explain_command
from floodline.cli import main
from floodline.cli._scan import command as scan_command
from floodline.scan import RULES

LEAKY = """\
sessions = {}

@app.post("/sessions")
def handle(session_id, state):
    sessions[session_id] = state
"""
IMPORTED = """\
import sys
from floodline.cli import main
status = main(["scan", "--cache-dir", ".cache", "app.py"])
print(status, *sorted(name for name in sys.modules if name.startswith(("floodline.scan.", "rich"))))
"""
UNSURE = """\
class Service:
    def __init__(self):
        self.sessions = {}

    def handle(self, session_id, state):
        self.sessions[session_id] = state
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(LEAKY)
    return tmp_path


def imported(folder):
    told = subprocess.run([sys.executable, "-c", IMPORTED], cwd=folder, capture_output=True)
    status, *names = told.stdout.decode().splitlines()[-1].split()
    return status, " ".join(names)


def test_a_cached_report_imports_no_frontend_no_rules_and_no_rich(project):
    (project / "app.py").write_text("known = {}\n")
    status, first = imported(project)
    assert status == "0"
    assert "._frontends.python" in first
    assert "._rules.growth" in first
    status, second = imported(project)
    assert status == "0"
    assert "._findings.packing" in second
    assert "._frontends" not in second
    assert "._rules" not in second
    assert "rich" not in first + second


def test_a_certain_finding_fails_with_frame_carets_and_four_proofs(project, capsys):
    assert main(["scan", "."]) == 1
    told = capsys.readouterr().out
    assert told.startswith("app.py:5:5: FLD101 high app.sessions grows")
    assert "  5 |     sessions[session_id] = state\n    |     ^^^^^^^^^^^^^^^^^^^^" in told
    assert [line.split()[0] for line in told.splitlines() if "  app.py:" in line[13:]] == [
        "yes"
    ] * 4
    assert '           app.py:1  sessions = BoundedMap(max_items=1000, idle="30 min")\n' in told
    assert told.endswith(
        "handlers found: 1; ranked by what they lead to\n1 finding in 1 file (1 high)\n"
    )
    assert "\x1b" not in told


def test_a_terminal_gets_colours(project, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert main(["scan", "."]) == 1
    assert "\x1b[" in capsys.readouterr().out


def test_an_unsure_finding_is_shown_and_does_not_fail(project, capsys):
    (project / "app.py").write_text(UNSURE)
    assert main(["scan", "app.py"]) == 0
    assert "FLD101 medium app.Service.sessions" in capsys.readouterr().out
    assert main(["scan", "app.py", "--fail-on", "medium"]) == 1
    assert main(["scan", "app.py", "--confidence", "high"]) == 0
    capsys.readouterr()
    assert main(["scan", "app.py", "--confidence", "high"]) == 0
    assert capsys.readouterr().out.endswith("\n0 findings in 1 file\n")


def test_the_json_document_has_the_fields_of_the_design(project, capsys):
    assert main(["scan", ".", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    wanted = ["schema", "tool", "python", "errors", "findings", "files", "skipped"]
    wanted.append("read_otherwise")
    assert list(document) == wanted
    [finding] = document["findings"]
    assert list(finding) == [
        "rule", "name", "path", "line", "column", "end_line", "symbol", "confidence", "rank",
        "message", "fingerprint", "status", "grows", "shrinks", "proofs",
    ]  # fmt: skip
    assert (finding["path"], finding["line"], finding["column"]) == ("app.py", 5, 5)
    assert (finding["status"], finding["grows"]) == ("new", ["app.py:5"])
    assert [list(proof) for proof in finding["proofs"]] == [["claim", "state", "at"]] * 4


def test_sarif_has_relative_places_flows_fingerprints_and_notifications(project, capsys):
    (project / "broken.py").write_text("def (:\n")
    assert main(["scan", ".", "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    [run] = log["runs"]
    [result] = run["results"]
    assert (log["version"], run["columnKind"]) == ("2.1.0", "unicodeCodePoints")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "app.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 5, "startColumn": 5, "endLine": 5, "endColumn": 25}
    assert len(result["codeFlows"][0]["threadFlows"][0]["locations"]) == 4
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "FLD101"
    assert result["partialFingerprints"]["floodlineContainer/v1"]
    [note] = run["invocations"][0]["toolExecutionNotifications"]
    assert "syntax error" in note["message"]["text"]


def test_sarif_marks_what_a_comment_or_a_baseline_answers(project, capsys):
    (project / "app.py").write_text(
        LEAKY.replace("= state", "= state  # floodline: bounded[ten users]")
    )
    assert main(["scan", ".", "--format", "sarif"]) == 0
    [result] = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "inSource"}]


def test_sarif_names_files_outside_by_their_whole_address(project, capsys, monkeypatch):
    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project / "elsewhere")
    assert main(["scan", str(project / "app.py"), "--format", "sarif"]) == 1
    [result] = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == (project / "app.py").as_uri()


def test_github_gets_one_command_a_line_with_escapes(project, capsys):
    (project / "broken.py").write_text("def (:\n")
    (project / "app.py").write_text(LEAKY + "# floodline: ignore[FLD999] why\n")
    assert main(["scan", ".", "--format", "github"]) == 1
    error, skipped, comment = capsys.readouterr().out.splitlines()
    assert error.startswith("::error file=app.py,line=5,endLine=5,col=5,title=FLD101 unbounded")
    assert error.count("%0A") == 4
    assert skipped.startswith("::warning file=broken.py,title=skipped::syntax error")
    assert "no rule FLD999" in comment


def test_nothing_found_prints_nothing_for_github(project, capsys):
    (project / "app.py").write_text("x = 1\n")
    assert main(["scan", ".", "--format", "github"]) == 0
    assert capsys.readouterr().out == ""


def test_files_that_cannot_be_read_are_named_with_the_reason_and_give_status_three(project, capsys):
    (project / "app.py").write_text("x = 1\n")
    (project / "broken.py").write_text("def (:\n")
    (project / "odd.py").write_bytes(b"# coding: no-such-code\nx = 1\n")
    (project / "bytes.py").write_bytes(b"x = '\xff\xfe'\n")
    (project / "nul.py").write_bytes(b"x = 1\0\n")
    (project / "deep.py").write_text("x = " + "-" * 20000 + "1\n")
    (project / "latin.py").write_bytes(b"# coding: latin-1\nx = '\xe9'\n")
    (project / "loop").mkdir()
    (project / "loop" / "again").symlink_to(project, target_is_directory=True)
    (project / "dangling.py").symlink_to(project / "nowhere.py")
    assert main(["scan", ".", "--format", "json"]) == 3
    document = json.loads(capsys.readouterr().out)
    skipped = {entry["path"]: entry["why"] for entry in document["skipped"]}
    assert {"broken.py", "odd.py", "bytes.py", "nul.py", "deep.py", "dangling.py"} == set(skipped)
    assert skipped["broken.py"].startswith("syntax error on line 1")
    assert document["files"] == 2


def test_a_file_that_is_too_large_is_skipped(project, capsys, monkeypatch):
    monkeypatch.setattr("floodline.scan._sources.content.MANY_BYTES", 10)
    assert main(["scan", "."]) == 3
    assert "app.py: skipped, it has " in capsys.readouterr().out


def test_a_folder_that_cannot_be_listed_is_skipped(project, capsys, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("floodline.scan._sources.files.os.scandir", refuse)
    assert main(["scan", "."]) == 3
    assert ".: skipped, Permission denied" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["scan"], "Missing argument"),
        (["scan", "nowhere"], "no file or folder 'nowhere'"),
        (["scan", ".", "--select", "FLD9"], "no rule 'FLD9'"),
        (["scan", ".", "--write-baseline"], "needs --baseline"),
        (["scan", ".", "--why-not", "nothing"], "no container named 'nothing'"),
        (["explain", "FLD999"], "no rule 'FLD999'"),
        (["scan", ".", "--baseline", "app.py"], "is not a baseline"),
    ],
)
def test_wrong_usage_is_one_line_and_status_two(project, capsys, arguments, says):
    assert main(arguments) == 2
    assert says in capsys.readouterr().err


def test_rules_can_be_chosen_and_left_out(project, capsys):
    assert main(["scan", ".", "--select", "fld2,FLD3"]) == 0
    assert main(["scan", ".", "--ignore", "FLD101"]) == 0
    assert main(["scan", ".", "--select", "FLD1", "--statistics"]) == 1
    assert "     1  FLD101 unbounded-container (high)\n" in capsys.readouterr().out


def test_a_baseline_hides_what_was_known_survives_moved_lines_and_only_shrinks(project, capsys):
    assert main(["scan", ".", "--baseline", "known.json", "--write-baseline"]) == 0
    (project / "app.py").write_text("\n\n\n" + LEAKY)
    assert main(["scan", ".", "--baseline", "known.json"]) == 0
    assert "1 in the baseline" in capsys.readouterr().out
    (project / "more.py").write_text(LEAKY)
    assert main(["scan", ".", "--baseline", "known.json"]) == 1
    assert main(["scan", ".", "--baseline", "known.json", "--write-baseline"]) == 2
    assert "may only shrink" in capsys.readouterr().err
    (project / "more.py").unlink()
    (project / "app.py").write_text("x = 1\n")
    assert main(["scan", ".", "--baseline", "known.json", "--write-baseline"]) == 0
    assert json.loads((project / "known.json").read_text())["fingerprints"] == {}


def test_a_baseline_of_another_schema_is_refused(project, capsys):
    (project / "known.json").write_text('{"schema": "other", "fingerprints": {}}')
    assert main(["scan", ".", "--baseline", "known.json"]) == 2
    assert "has the schema 'other'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("comment", "says"),
    [
        ("# floodline: bounded[]", "say what bounds it"),
        ("# floodline: ignore", "name the rules"),
        ("# floodline: ignore[FLD101]", "give a reason"),
        ("# floodline: ignore[FLD202] no copy here", "answers no finding"),
        ("# floodline: ignore[FLD999] why", "no rule FLD999"),
    ],
)
def test_a_comment_needs_a_rule_and_a_reason_and_must_answer_something(
    project, capsys, comment, says
):
    (project / "app.py").write_text(LEAKY.replace("= state", f"= state  {comment}"))
    assert main(["scan", "."]) == 1
    assert "app.py:5: " in capsys.readouterr().out.partition("use ")[2]
    main(["scan", "."])
    assert says in capsys.readouterr().out


def test_a_comment_may_stand_where_the_container_is_made_but_not_in_a_string(project, capsys):
    bounded = "# floodline: bounded[one per tenant]"
    (project / "app.py").write_text(LEAKY.replace("{}", "{}  " + bounded))
    assert main(["scan", "."]) == 0
    assert "1 suppressed" in capsys.readouterr().out
    (project / "app.py").write_text(LEAKY + f"text = '{bounded}'\n")
    assert main(["scan", "."]) == 1
    assert "answers no finding" not in capsys.readouterr().out


def test_the_comment_of_the_other_linter_silences_a_cached_method(project):
    code = "from functools import cache\n\nclass A:\n    @cache{}\n    def f(self): ...\n"
    (project / "app.py").write_text(code.format(""))
    assert main(["scan", ".", "--fail-on", "medium"]) == 1
    (project / "app.py").write_text(code.format("  # noqa: B019"))
    assert main(["scan", ".", "--fail-on", "medium"]) == 0


def test_a_silence_is_explained(project, capsys):
    (project / "app.py").write_text(
        LEAKY + "from collections import deque\nrecent = deque(maxlen=3)\nidle = {}\n"
    )
    assert main(["scan", ".", "--why-not", "sessions"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("app.sessions (app.py:1)\n  proved: held by the module (app.py:1)")
    assert "  reported as FLD101, high, rank " in told
    assert main(["scan", ".", "--why-not", "app.recent"]) == 0
    assert "bounded or weak where it is created" in capsys.readouterr().out
    assert main(["scan", ".", "--why-not", "idle"]) == 0
    assert "nothing was found that makes it grow" in capsys.readouterr().out


def test_explain_lists_the_rules_and_prints_a_page(capsys, monkeypatch):
    assert main(["explain"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{r.code}  {r.name}{'  (preview)' if r.preview else ''}" for r in RULES.values()
    ]
    assert main(["explain", "fld101"]) == 0
    assert capsys.readouterr().out.startswith("# FLD101 unbounded-container\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["explain", "FLD101"]) == 0
    assert "FLD101 unbounded-container" in capsys.readouterr().out


def test_explain_works_where_the_pages_are_missing(capsys, monkeypatch):
    monkeypatch.setattr(explain_command, "FOLDERS", (Path("/nonexistent"),))
    assert main(["explain", "FLD101"]) == 0
    assert capsys.readouterr().out.startswith("# FLD101 unbounded-container\n\nThe container grows")


def test_a_file_that_vanishes_after_the_scan_has_no_frame(project, capsys, monkeypatch):
    monkeypatch.setattr("floodline.scan._reporters.text.line_of", lambda path, line: "")
    assert main(["scan", "."]) == 1
    assert "^" not in capsys.readouterr().out


def test_columns_count_characters_and_not_bytes(project, capsys):
    (project / "app.py").write_text(
        "sessions = {}\n\ndef handle(key):\n    'ééé'; sessions[key] = 1\n", encoding="utf-8"
    )
    main(["scan", "."])
    told = capsys.readouterr().out
    assert re.search(r"^app.py:4:12: ", told)
    assert "    |            ^^^^^^^^^^^^^\n" in told


def test_the_progress_of_a_scan_can_be_followed(project):
    seen: list[tuple[int, int]] = []
    scan_command.Scan([project], progress=lambda *told: seen.append(told)).report()
    assert seen == [(1, 1)]


def test_missing_paths_given_to_the_library_are_skipped(tmp_path):
    report = scan_command.Scan([tmp_path / "nowhere"]).report()
    assert [s.why for s in report.skipped] == ["there is no such file or folder"]
