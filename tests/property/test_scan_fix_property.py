"""Whatever stands between adding and removing: a fixed function does the same, and cleans up."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from floodline.scan import Scan
from floodline.scan._fix.fix import rewrites

SIMPLE = st.sampled_from(
    [
        "work()", "# a comment", "", "x = work(1,\n    2)", "told.append('a')", "told.append(key)",
        "y = [work(n) for n in (1, 2)]", "z = 'ü'; work()", "assert work() is None", "pass",
        'w = """one\ntwo"""', "return 5", "key = 3", "v = (work()\n    or 1)", "del told[:0]",
        "u = 'a' \\\n    'b'", "running.pop(key, None)",
    ]
)  # fmt: skip


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map(lambda parts: "\n".join([*parts, "work()"]))
    heads = st.sampled_from(
        ["if key:", "for n in (1, 2):", "while work():", "with told_of() as t:", "def inner():"]
    )
    return st.builds(lambda head, text: f"{head}\n{indented(text)}", heads, body)


STATEMENTS = st.recursive(SIMPLE, nested, max_leaves=6)
REMOVALS = st.sampled_from(["running.pop(key, None)", "del running[key]  # over"])
HEAD = """\
from contextlib import nullcontext as told_of

running = {}
told = []


def handle(key, work):
    running[key] = 1
"""


def outcome(text: str, *, fails: bool) -> tuple[object, list[object], int]:
    """Run a program; return what it did, and how many entries it left."""
    names: dict[str, object] = {}
    exec(compile(text, "app.py", "exec"), names)
    calls = 0

    def work(*_: object) -> None:
        nonlocal calls
        calls += 1
        if fails and calls == 2:
            raise LookupError

    try:
        result = names["handle"](7, work)  # type: ignore[operator]  # it is a function
    except Exception as error:
        result = type(error).__name__
    return result, names["told"], len(names["running"])  # type: ignore[arg-type, return-value]  # as above


@settings(max_examples=60, deadline=None)
@given(st.lists(STATEMENTS, min_size=1, max_size=4), REMOVALS)
def test_a_fixed_function_does_the_same_and_leaves_nothing(parts, removal):
    between = "\n".join([*parts, "work()"])
    text = f"{HEAD}{indented(between)}\n    {removal}\n    return len(told)\n"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "app.py"
        path.write_text(text, encoding="utf-8")
        changes, _ = rewrites(Scan([path]).report().findings, [])
    for change in changes:
        after = change.after.decode()
        assert outcome(after, fails=False) == outcome(text, fails=False)
        before, now = outcome(text, fails=True), outcome(after, fails=True)
        assert now[:2] == before[:2]
        assert now[2] == 0
