"""Preview rules: off until they are asked for, and silent where another rule has spoken."""

from __future__ import annotations

from pathlib import Path

from floodline.scan import RULES, Scan

SHARED = """
class Agent:
    notes = []

    def forget(self):
        self.notes.clear()

    def note(self, text):
        self.forget()
        self.notes.append(text){comment}
"""


def test_preview_rules_run_when_they_are_asked_for(tmp_path):
    (tmp_path / "app.py").write_text(SHARED.format(comment=""), encoding="utf-8")
    scan = Scan([tmp_path])
    assert scan.report().findings == ()
    assert [f.rule for f in scan.report(preview=True).findings] == ["FLD104"]
    assert [f.rule for f in scan.report(select=["FLD104"]).findings] == ["FLD104"]
    assert scan.report(select=["FLD1"]).findings == ()
    assert scan.report(preview=True, ignore=["FLD104"]).findings == ()


def test_a_comment_for_a_preview_rule_waits_until_the_rule_runs(tmp_path):
    comment = "  # floodline: ignore[FLD104] one list for all is meant"
    (tmp_path / "app.py").write_text(SHARED.format(comment=comment), encoding="utf-8")
    assert Scan([tmp_path]).report().problems == ()
    assert [f.status for f in Scan([tmp_path]).report(preview=True).findings] == ["suppressed"]
    (tmp_path / "app.py").write_text(f"x = 1{comment}\n", encoding="utf-8")
    assert [p.line for p in Scan([tmp_path]).report(preview=True).problems] == [1]


def test_no_preview_rule_says_what_another_rule_says(found):
    code = SHARED.format(comment="").replace("self.notes.clear()", "pass")
    assert [f.rule for f in found(app=code)] == ["FLD101"]


def test_preview_rules_say_so_on_their_page():
    pages = Path(__file__).parents[4] / "docs" / "rules"
    for rule in RULES.values():
        text = (pages / f"{rule.code}-{rule.name}.md").read_text(encoding="utf-8")
        assert ("--preview" in text) is rule.preview
