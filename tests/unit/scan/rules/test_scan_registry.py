"""A rule is found by its code: its module, its page and its test; nothing else has to name it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from floodline.scan import RULES, Rule, Scan
from floodline.scan._rules import containers, registry
from floodline.scan._rules.detectors import Check, Pattern, Search
from floodline.scan._rules.growth.unbounded import ANY

FAMILIES = {"1": "growth", "2": "false_bounds", "3": "caches", "4": "callbacks", "5": "resources"}
HERE = Path(__file__).parent
NEW = Rule("FLD199", "new", "{} is new", "nothing")


def test_rules_are_listed_by_code_and_each_is_detected():
    assert list(RULES) == sorted(RULES)
    assert {detector.rule.code for detector in registry.DETECTORS} == set(RULES)


@pytest.mark.parametrize("code", RULES)
def test_a_rule_stands_in_the_folder_of_its_family(code):
    folder = import_module(f"floodline.scan._rules.{FAMILIES[code[3]]}").__path__[0]
    texts = [path.read_text(encoding="utf-8") for path in Path(folder).glob("*.py")]
    assert sum(f"\n{code} = Rule(\n" in text for text in texts) == 1


@pytest.mark.parametrize("code", RULES)
def test_a_rule_has_a_case_in_the_test_of_its_family(code):
    text = (HERE / f"test_scan_{FAMILIES[code[3]]}.py").read_text(encoding="utf-8")
    assert code in re.findall(r'": \(\n        "(FLD\d+)",$', text, re.MULTILINE)


def test_every_pattern_and_search_is_tried():
    known = (*containers.PATTERNS, *containers.SEARCHES)
    wanted = [d for d in registry.DETECTORS if not isinstance(d, Check)]
    assert sorted(known, key=str) == sorted(wanted, key=str)


def test_a_new_pattern_is_tried_before_the_one_that_fits_everything():
    pattern = Pattern(NEW, lambda case: True)
    patterns, searches = containers.in_order([ANY, pattern, *registry.DETECTORS])
    assert patterns[-2:] == (pattern, ANY)
    assert patterns[:-2] == containers.PATTERNS[:-1]
    assert searches == containers.SEARCHES


def test_a_new_search_is_tried_after_the_others():
    search = Search(NEW, lambda judge, held, holder: None)
    patterns, searches = containers.in_order([search, *registry.DETECTORS])
    assert patterns == containers.PATTERNS
    assert searches == (*containers.SEARCHES, search)


def test_tests_are_left_alone(tmp_path):
    (tmp_path / "tests").mkdir()
    code = "answers = {}\n\ndef ask(question):\n    answers[question] = 1\n"
    for path in (tmp_path / "app.py", tmp_path / "tests" / "app.py"):
        path.write_text(code, encoding="utf-8")
    findings = Scan([tmp_path]).report(preview=True).findings
    assert [Path(finding.path).parent.name for finding in findings] == [tmp_path.name]
