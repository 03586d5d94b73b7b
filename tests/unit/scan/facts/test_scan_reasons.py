"""A verdict rests on a name in code; the sentence for it is made in one place, for people."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import pytest

import floodline.scan
from floodline.scan._facts.reasons import Ground

SCAN = Path(floodline.scan.__file__).parent
CLI = SCAN.parent / "cli"
TEXTS = {"claim", "says", "why", "text", "message"}
LOOKS = {"startswith", "endswith", "partition", "rpartition", "removeprefix", "find", "split"}


class Told(Ground):
    PLAIN = "nothing leaves"
    ALSO_PLAIN = "nothing leaves"
    KEPT = "{} is kept by {}"


def tables(kind: type[Ground] = Ground) -> list[type[Ground]]:
    return [table for below in kind.__subclasses__() for table in (below, *tables(below))]


def test_a_reason_is_told_with_what_it_rests_on():
    reason = Told.KEPT("Pool", Told.KEPT("Agent", Told.PLAIN()))
    assert str(reason) == "Pool is kept by Agent is kept by nothing leaves"
    assert [reason.rests_on(ground) for ground in Told] == [True, False, True]


def test_grounds_of_one_text_stay_apart():
    assert Told.PLAIN is not Told.ALSO_PLAIN
    assert Told.PLAIN() != Told.ALSO_PLAIN()
    assert str(Told.PLAIN()) == str(Told.ALSO_PLAIN())


def test_a_value_with_braces_is_told_as_it_is():
    assert str(Told.KEPT("{x}", "{}")) == "{x} is kept by {}"


@pytest.mark.parametrize(
    "table", tables(), ids=lambda table: f"{table.__module__}.{table.__name__}"
)
def test_every_ground_has_a_text_with_plain_places_for_values(table):
    assert len(table) > 0
    for ground in table:
        fields = [
            name for _, name, _, _ in string.Formatter().parse(ground.text) if name is not None
        ]
        assert set(fields) <= {""}
        assert ground.text.strip() == ground.text != ""


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in TEXTS


def looks_at_text(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return any(map(is_text, (node.left, *node.comparators)))
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LOOKS
        and is_text(node.func.value)
    )


@pytest.mark.parametrize(
    "line", ['"start-up" in proof.claim', "p.says == x", "proof.claim.endswith(HANDED_ON)"]
)
def test_code_that_looks_at_a_sentence_is_found(line):
    assert any(map(looks_at_text, ast.walk(ast.parse(line))))


def test_no_code_of_the_scan_or_of_verify_looks_at_a_sentence():
    files = [*SCAN.rglob("*.py"), *(CLI / "_scan").glob("*.py"), CLI / "_explain.py"]
    files += [*SCAN.with_name("verify").glob("*.py"), CLI / "_verify.py"]
    found = [
        f"{path.relative_to(SCAN.parent)}:{node.lineno}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if looks_at_text(node)
    ]
    assert found == []
