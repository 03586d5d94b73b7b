"""What people read is plain English: these phrases were replaced once and must not come back."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "floodline").rglob("*.py"))
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src" / "floodline" / "web" / "static").glob("*.js")),
    *sorted((ROOT / "src" / "floodline" / "web" / "static").glob("*.html")),
]
THINGS = "setting|file|rule|store|probe|folder|address|recording|recorder|program|Python|proof"

# what was written, and what to write instead
REPLACED = {
    rf"(?<!there )\bis no ({THINGS})\b": "is not a …, unknown …",
    r"\bnobody is seen to\b": "no caller found",
    r"\bclass of classes\b": "metaclass",
    r"\bso short a time\b": "too early to tell",
    r"\bthe way of nearly all\b": "the fast path for almost every …",
    r"\bthat is no more\b": "that is gone, that was cancelled",
    r"\bnothing of before\b": "earlier observations no longer hold",
    r"\bby which part of itself\b": "the relative change",
    r"\bfor ever\b": "forever",
    r"\b(the|of|at) this moment\b": "current, now",
    r"\bprocessor time\b": "CPU time",
    r"\bone of the processor\b": "one CPU",
    r"\bchoose of\b": "choose one of",
    r"\b(starts?|begins?) anew\b": "start again, start over",
    r"\bat the present rate\b": "at the current rate",
    r"\bis told as\b": "is reported as",
    r"\bnobody closed (it|this)\b": "it was never closed",
    r"\bthe limit of the system\b": "the system's limit",
    r"\bwhoever comes while\b": "a caller that arrives while",
    r"\bgoes? on in the background\b": "continues in the background",
    r"\bTells? whether\b": "Return True if",
    r"\bfor lack of memory\b": "out of memory",
    r"\bmust not wait for ever\b": "must not wait forever",
    r"\bmade anew\b": "created again, created for each …",
    r"\bwhoever calls\b": "the caller",
    r"\bnobody calls\b": "nothing calls",
    r"\b(in each turn|turn by turn)\b": "on each iteration",
    r"\b(keys|values) have no end\b": "open keys, an open set of …",
    r"\bwrong usage\b": "usage error",
    r"\blongest (unused|unchanged|unwritten)\b": "least recently used, … changed, … written",
    r"\bwrong in itself\b": "invalid, malformed",
    r"\b(sessions|stores|apps?) of yours\b": "your own sessions, …",
    r"\bin any store of floodline\b": "in any floodline store",
    r"\bnobody has (used|changed|written)\b": "not used, … for that long",
    r"\bis a whole `": "is a complete `…`",
    r"\bwhat calls it is not seen\b": "its caller is unknown",
}


@cache  # every phrase is looked for in every file
def passages(file: Path) -> str:
    return re.sub(r"\s+", " ", file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("phrase", REPLACED, ids=lambda phrase: REPLACED[phrase])
def test_a_replaced_phrase_stays_out(phrase):
    pattern = re.compile(phrase)
    found = [
        f"{file.relative_to(ROOT).as_posix()}: {text[max(hit.start() - 30, 0) : hit.end() + 30]}"
        for file in (*SOURCES, *PAGES)
        for text in [passages(file)]
        for hit in pattern.finditer(text)
    ]
    assert found == [], f"write: {REPLACED[phrase]}"


def test_a_predicate_says_when_it_returns_true():
    found = []
    for file in SOURCES:
        source = file.read_text(encoding="utf-8")
        if '"""Whether' not in source and '"""Tell' not in source:
            continue  # parsing every file would take seconds
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                said = ast.get_docstring(node) or ""
                if said.startswith(("Whether", "Tell ", "Tells ")):
                    found.append(f"{file.relative_to(ROOT).as_posix()}: {node.name}: {said}")
    assert found == []
