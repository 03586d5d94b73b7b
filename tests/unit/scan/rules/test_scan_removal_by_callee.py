"""An entry that helpers add or remove is left behind by an error all the same."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Scan

HEAD = """
active = {}

def add(key):
    active[key] = 1

def forget(key):
    active.pop(key, None)
"""


def reported(folder: Path, code: str, head: str = HEAD) -> list[str]:
    (folder / "app.py").write_text(head + dedent(code), encoding="utf-8")
    findings = Scan([folder]).report().findings
    return [f"{f.rule} {f.confidence} {f.line}" for f in findings if f.confidence != "low"]


FOUND = {
    "both steps are helpers": (
        """
        def handle(user_id, work):
            add(user_id)
            work()
            forget(user_id)
        """,
        "FLD109 medium 5",
    ),
    "the removal is a helper": (
        """
        waiting = {}

        async def handle(user_id, work):
            waiting[user_id] = work
            await work()
            leave(user_id)

        def leave(key):
            del waiting[key]
        """,
        "FLD109 medium 13",
    ),
    "the end may remove too": (
        """
        def handle(user_id, work):
            add(user_id)
            work()
            forget(user_id)

        def close():
            forget(1)
        """,
        "FLD109 medium 5",
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_an_entry_is_left_behind_where(case, tmp_path):
    code, wanted = FOUND[case]
    assert reported(tmp_path, code) == [wanted]


CLEAN = {
    "the removal is in finally": """
        def handle(user_id, work):
            add(user_id)
            try:
                work()
            finally:
                forget(user_id)
    """,
    "nothing between can fail": """
        def handle(user_id, log):
            add(user_id)
            log.info("added")
            forget(user_id)
    """,
    "the removal depends on something": """
        def handle(user_id, work):
            add(user_id)
            if work():
                forget(user_id)
    """,
    "another key is removed": """
        def handle(user_id, other_id, work):
            add(user_id)
            work()
            forget(other_id)
    """,
    "the removal comes first": """
        def handle(user_id, work):
            forget(user_id)
            work()
            add(user_id)
    """,
    "somebody else removes too": """
        def handle(user_id, work):
            add(user_id)
            work()
            forget(user_id)

        def sweep(user_id):
            forget(user_id)
    """,
    "a timer removes": """
        def handle(user_id, work, loop):
            add(user_id)
            loop.call_later(5, forget, user_id)
            work()
            forget(user_id)
    """,
    "a loop removes": """
        def handle(user_ids, work):
            for user_id in user_ids:
                add(user_id)
            work()
            for user_id in user_ids:
                forget(user_id)
    """,
    "it grows at start-up": """
        def setup(user_id, work):
            add(user_id)
            work()
            forget(user_id)
    """,
}


@pytest.mark.parametrize("case", CLEAN)
def test_nothing_is_said_if(case, tmp_path):
    assert reported(tmp_path, CLEAN[case]) == []


def test_helpers_that_look_first_are_not_followed(tmp_path):
    head = HEAD.replace("    active[key] = 1", "    if key:\n        active[key] = 1")
    assert reported(tmp_path, FOUND["both steps are helpers"][0], head) == []
