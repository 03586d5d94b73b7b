"""The pages of the rules are the tests: each example is found, each alternative is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from floodline.scan import RULES, Scan

PAGES = sorted((Path(__file__).parents[4] / "docs" / "rules").glob("*.md"))
SECTIONS = ["What", "Why", "Example", "Use instead", "Silence it"]


def block(page: Path, section: str) -> str:
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"^## {section}\n.*?^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def rules_in(code: str, folder: Path) -> dict[str, str]:
    (folder / "app.py").write_text(code, encoding="utf-8")
    findings = Scan([folder]).report(preview=True).findings
    return {f.rule: f.confidence for f in findings if f.confidence != "low"}


def test_every_rule_has_a_page_and_every_page_a_rule():
    assert [page.stem for page in PAGES] == [f"{r.code}-{r.name}" for r in RULES.values()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_sections_and_its_title(page):
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.stem.replace('-', ' ', 1)}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_of_a_page_is_found_by_its_rule_alone(page, tmp_path):
    found = rules_in(block(page, "Example"), tmp_path)
    assert list(found) == [page.stem.partition("-")[0]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_tells_to_use_instead_is_clean(page, tmp_path):
    assert rules_in(block(page, "Use instead"), tmp_path) == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_comment_with_a_reason_silences_the_example(page, tmp_path):
    code = page.stem.partition("-")[0]
    (tmp_path / "app.py").write_text(block(page, "Example"), encoding="utf-8")
    [finding] = [f for f in Scan([tmp_path]).report(preview=True).findings if f.rule == code]
    lines = block(page, "Example").splitlines()
    lines[finding.line - 1] += f"  # floodline: ignore[{code}] a test says so"
    (tmp_path / "app.py").write_text("\n".join(lines), encoding="utf-8")
    report = Scan([tmp_path]).report(preview=True)
    assert [f.status for f in report.findings if f.rule == code] == ["suppressed"]
    assert report.problems == ()
