"""`--fix --unsafe` creates containers with a bound, but not where that could break something."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from floodline.cli import main
from floodline.scan._findings.finding import Confidence, Finding, Status
from floodline.scan._fix.fix import created_with_bounds, diff, rewrites, write

HANDLER = """\
{head}
class Service:
    MAX_SIZE = 50

    def __init__(self):
        {made}

    def on_message(self, user_id):
        {grows}
        {more}
"""


def finding(path: Path, symbol: str = "app.Service.kept", rule: str = "FLD101") -> Finding:
    return Finding(
        rule, "name", str(path), 9, 1, 9, 2, symbol, Confidence.HIGH, 90, "grows", "f", Status.NEW,
        (f"{path}:9",), (), (),
    )  # fmt: skip


def bounded(folder: Path, code: str, symbol: str = "app.Service.kept", **others: str):
    """Return `app.py` after the fix, and why it was left alone."""
    path = folder / "app.py"
    path.write_text(code, encoding="utf-8")
    for name, text in others.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    files = [str(one) for one in folder.glob("*.py")]
    changes, left = rewrites([finding(path, symbol)], files, unsafe=True)
    for change in changes:
        write(change)
    return path.read_text(encoding="utf-8"), [why for _, why in left]


def service(made: str, grows: str, more: str = "pass", head: str = "") -> str:
    return HANDLER.format(made=made, grows=grows, more=more, head=head)


PUT = "self.kept[user_id] = 1"


@pytest.mark.parametrize(
    ("made", "grows", "more", "new"),
    [
        ("self.kept = {}", PUT, "pass",
         'self.kept = BoundedMap(max_items=1000, idle="30 min")'),
        ("self.kept: dict[str, int] = dict()  # by user", PUT, "return self.kept.get(user_id)",
         'self.kept: BoundedMap[str, int] = BoundedMap(max_items=1000, idle="30 min")  # by user'),
        ("self.kept: dict = {}", PUT, "return user_id in self.kept",
         'self.kept: BoundedMap = BoundedMap(max_items=1000, idle="30 min")'),
        ("self.kept = []", "self.kept.append(user_id)", "for _ in self.kept: print(len(self.kept))",
         "self.kept = BoundedLog(max_items=1000)"),
        ("self.kept = deque()", "self.kept.append(user_id)", "self.kept.rotate()",
         "self.kept = deque(maxlen=1000)"),
        ("self.kept = []", "self.kept.append(user_id)", "if len(self.kept) > self.MAX_SIZE: pass",
         "self.kept = BoundedLog(max_items=self.MAX_SIZE)"),
        ("self.kept = {}", PUT, "if len(self.kept) > 77: print(1)",
         'self.kept = BoundedMap(max_items=77, idle="30 min")'),
        ("self.kept = {}", PUT, "if len(self.kept) > self.unknown: print(1)",
         'self.kept = BoundedMap(max_items=1000, idle="30 min")'),
        ("self.kept = {}", PUT, "if len(self.kept) > LIMIT and not self.kept: print(1)",
         'self.kept = BoundedMap(max_items=LIMIT, idle="30 min")'),
    ],
)  # fmt: skip
def test_a_container_is_created_with_a_bound_in_the_names_of_the_code(
    tmp_path, made, grows, more, new
):
    head = "from collections import deque\nLIMIT = 60"
    text, left = bounded(tmp_path, service(made, grows, more, head))
    assert left == []
    assert f"        {new}\n" in text
    imported = "from floodline import Bounded" in text
    assert imported == ("Bounded" in new)
    compile(text, "app.py", "exec")


@pytest.mark.parametrize(
    ("made", "more", "why"),
    [
        ("self.kept = defaultdict(int)", "pass", "a defaultdict has no bounded twin"),
        ("self.kept = OrderedDict()", "pass", "an OrderedDict has more methods"),
        ("self.kept = set()", "pass", "there is no bounded set"),
        ("self.kept = load()", "pass", "it is not created empty"),
        ("self.kept = {}", "return self.kept", "line 10 uses kept in a way"),
        ("self.kept = {}", "send(self.kept)", "line 10 uses kept in a way"),
        ("self.kept = {}", "self.kept.fromkeys([])", "line 10 uses kept in a way"),
        ("self.kept = {}", "self.kept = load()", "it is not created empty"),
        ("self.kept = {}", "self.kept = []", "it is created in different ways"),
        ("self.kept = {}", "self.kept += 1", "line 10 assigns something else to kept"),
        ("self.kept = []", "self.kept[0] = 1", "line 10 uses kept in a way"),
        ("self.kept = []", "self.kept[:2]", "line 10 uses kept in a way"),
        ("self.kept = {}", "self.kept == {}", "line 10 uses kept in a way"),
        ("self.kept: Mapping = {}", "pass", "its annotation would no longer be true"),
        ("self.kept = {\n        }", "pass", "spans several lines"),
        ("self.other = {}", "pass", "where it is created was not found"),
    ],
)
def test_it_is_left_alone_where_the_replacement_could_break_it(tmp_path, made, more, why):
    code = service(made, "pass", more)
    text, left = bounded(tmp_path, code)
    assert text == code
    assert len(left) == 1
    assert why in left[0]


def test_another_file_that_uses_it_keeps_it_as_it_is(tmp_path):
    _, left = bounded(tmp_path, service("self.kept = {}", PUT), other="print(service.kept)")
    assert left == ["another file uses it too"]


@pytest.mark.parametrize(
    ("code", "begins"),
    [
        ("kept = {}\n", "from floodline import BoundedMap\n\nkept = BoundedMap("),
        ('"""Doc."""\nkept = {}\n', '"""Doc."""\n\nfrom floodline import BoundedMap\nkept = Bound'),
        ("from floodline import BoundedMap\nkept = {}\n", "from floodline import BoundedMap\nkept"),
        ("import os\nkept = {}\n", "import os\nfrom floodline import BoundedMap\nkept = Bounded"),
    ],
)
def test_the_import_goes_where_imports_are(tmp_path, code, begins):
    text, left = bounded(tmp_path, code, "app.kept")
    assert (left, text[: len(begins)]) == ([], begins)


def test_a_class_attribute_gets_a_number_that_is_known_there(tmp_path):
    code = "class A:\n    MOST = 9\n    kept = {}\n    def f(self):\n"
    code += "        if len(self.kept) > self.MOST: print(1)\n"
    text, _ = bounded(tmp_path, code, "app.A.kept")
    assert '    kept = BoundedMap(max_items=1000, idle="30 min")\n' in text


LEAKY = """\
from flask import Flask

app = Flask(__name__)
SEEN = {}


@app.route("/<user>")
def hello(user):
    SEEN[user] = [user]
    return "hello"
"""


def test_it_is_only_done_when_asked_for_and_the_diff_applies(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("web.py").write_text(LEAKY)
    assert main(["scan", "web.py", "--no-cache", "--diff"]) == 0
    assert main(["scan", "web.py", "--no-cache", "--unsafe"]) == 2
    assert "--unsafe needs --fix or --diff" in capsys.readouterr().err
    assert main(["scan", "web.py", "--no-cache", "--diff", "--unsafe"]) == 1
    patch = capsys.readouterr().out
    assert Path("web.py").read_text() == LEAKY
    subprocess.run(["git", "apply", "-"], input=patch, text=True, check=True)
    applied = Path("web.py").read_text()
    assert 'SEEN = BoundedMap(max_items=1000, idle="30 min")' in applied
    Path("web.py").write_text(LEAKY)
    assert main(["scan", "web.py", "--no-cache", "--fix", "--unsafe"]) == 0
    assert Path("web.py").read_text() == applied


def test_the_diff_of_an_absolute_path_has_one_slash(tmp_path):
    path = tmp_path / "app.py"
    path.write_text("kept = {}\n")
    (change,), _ = rewrites([finding(path, "app.kept")], [str(path)], unsafe=True)
    assert next(diff(change)) == f"--- a{path}\n"


def test_the_line_that_would_create_it_is_shown_where_there_is_one(tmp_path):
    code = {"good": "kept = {}\n", "refused": "kept = make()\n", "broken": "kept = {\n"}
    for name, text in code.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    found = [finding(tmp_path / f"{name}.py", f"{name}.kept") for name in [*code, "gone"]]
    path = tmp_path / "good.py"
    line = f'{path}:1  kept = BoundedMap(max_items=1000, idle="30 min")'
    assert created_with_bounds([*found, finding(path, rule="FLD401")]) == {found[0]: line}
