"""`floodline verify`, as a user calls it, with real child processes where it executes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from floodline.cli import main
from floodline.verify import Claim, _probe, verify

ANNOUNCED = Path(__file__).parent / "announced" / "claims.toml"
GOOD = """\
[[claim]]
file = "app.py"
symbol = "Ring"
limit = 5
policy = "fifo"
"""
RING = """\
from collections import deque
class Ring:
    def __init__(self):
        self.items = deque(maxlen=5)
    def add(self, item):
        self.items.append(item)
    async def add_later(self, item):
        self.add(item)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(RING)
    (tmp_path / "claims.toml").write_text(GOOD)
    return tmp_path


def verdicts(told: str) -> list[str]:
    return [line.partition(":")[0] for line in told.splitlines()[:-1] if line[0] != " "]


@pytest.mark.parametrize("options", [[], ["--execute"]])
def test_of_five_announced_fixes_one_is_proved_and_four_are_refuted(capsys, options):
    assert main(["verify", str(ANNOUNCED), *options]) == 1
    told = capsys.readouterr().out
    assert verdicts(told) == ["proved", "refuted", "refuted", "refuted", "refuted"]
    assert told.endswith("5 claims: 1 proved, 4 refuted\n")
    assert told.count("  executed: ") == 5 * len(options)
    assert "fixes.py:25: " in told
    assert "fixes.py:39: the size of StatusCache.by_job is compared, but the branch" in told


def test_all_proved_is_zero(project, capsys):
    assert main(["verify", "claims.toml"]) == 0
    assert capsys.readouterr().out == (
        "proved: Ring (Ring, 5 fifo)\n"
        "  app.py:4: Ring.items, at 5: removes the first item\n"
        "1 claim: 1 proved\n"
    )


def test_what_cannot_be_told_is_three(project, capsys):
    (project / "app.py").write_text("class Ring:\n    pass\n")
    assert main(["verify", "claims.toml"]) == 3
    assert capsys.readouterr().out.startswith("cannot tell: Ring")


MARKDOWN = """\
# Announced fixes

1 claim: 1 proved

| claim | file | limit | before | after |
|---|---|---|---|---|
| Ring | `app.py` | 5 fifo | refuted | **proved** |

## 1. Ring: proved

| | |
|---|---|
| File | `app.py:4` |
| Container | `Ring` |
| Claimed limit | 5, fifo |
| Before | refuted: Ring.items grows, and nothing limits it |
| After | proved: Ring.items, at 5: removes the first item |
| Executed | proved: Ring.items held at most 5 of 12 items, and the newest were kept |
| Verdict | **proved** |

Evidence:

- `app.py:4`: Ring.items, at 5: removes the first item
- `executed`: Ring.items held at most 5 of 12 items, and the newest were kept
"""


def git(*arguments: str) -> None:
    config = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", *config, *arguments], check=True, capture_output=True)


def test_an_audit_document_says_before_and_after(project, capsys, in_process):
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "nothing")
    (project / "app.py").write_text(RING.replace("deque(maxlen=5)", "[]"))
    git("add", ".")
    git("commit", "-q", "-m", "leaks")
    (project / "app.py").write_text(RING)
    options = ["--format", "markdown", "--before", "HEAD"]
    assert main(["verify", "claims.toml", "--execute", *options]) == 0
    assert capsys.readouterr().out == MARKDOWN
    assert main(["verify", "claims.toml", "--before", "HEAD", "--json", "out.json"]) == 0
    assert "  before: refuted: Ring.items grows, and nothing" in capsys.readouterr().out
    assert json.loads(Path("out.json").read_text())["claims"][0]["before"] == "refuted"
    assert main(["verify", "claims.toml", "--before", "HEAD~1"]) == 0
    assert "  before: refuted: there is no file app.py\n" in capsys.readouterr().out
    assert main(["verify", "claims.toml", "--before", "nowhere"]) == 2
    assert "--before nowhere cannot be read for app.py: there is no such" in capsys.readouterr().err


def test_without_a_revision_before_is_not_checked(project, capsys, monkeypatch):
    assert main(["verify", "claims.toml", "--format", "markdown"]) == 0
    told = capsys.readouterr().out
    assert "| Ring | `app.py` | 5 fifo | – | **proved** |" in told
    assert "| Before | not checked (`--before REVISION`) |" in told
    monkeypatch.setenv("PATH", str(project))
    assert main(["verify", "claims.toml", "--before", "HEAD"]) == 2
    assert "--before needs git, which cannot be run" in capsys.readouterr().err


def test_a_claim_names_one_container_or_a_list_of_them(project, capsys):
    several = GOOD.replace('"Ring"', '["Ring.items", "Ring.gone"]')
    (project / "claims.toml").write_text(several)
    assert main(["verify", "claims.toml"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("refuted: Ring.items, Ring.gone (Ring.items, Ring.gone, 5 fifo)\n")
    assert "there is no Ring.gone in this file" in told
    for wrong in ("[]", '["Ring", ""]', '["Ring", 3]', "3"):
        (project / "claims.toml").write_text(GOOD.replace('"Ring"', wrong))
        assert main(["verify", "claims.toml"]) == 2
        assert "must be a non-empty string, or a list" in capsys.readouterr().err


def test_without_execute_nothing_is_run(project, capsys):
    touch = f"from pathlib import Path\nPath({str(project / 'ran')!r}).touch()\n"
    (project / "app.py").write_text(touch + RING)
    assert main(["verify", "claims.toml"]) == 0
    assert not (project / "ran").exists()
    assert main(["verify", "claims.toml", "--execute"]) == 0
    assert (project / "ran").exists()


def test_code_that_is_run_starts_in_an_empty_folder_and_prints_into_nothing(project, capfd):
    noisy = "open('litter', 'w').close()\nprint('noise')\n"
    (project / "app.py").write_text(noisy + RING)
    assert main(["verify", "claims.toml", "--execute"]) == 0
    assert "noise" not in capfd.readouterr().out
    assert sorted(p.name for p in project.iterdir()) == ["app.py", "claims.toml"]


def test_the_record_is_json_on_the_screen_and_in_a_file(project, capsys):
    assert main(["verify", "claims.toml", "--format", "json", "--json", "out.json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((project / "out.json").read_text())
    assert list(record) == ["schema", "tool", "python", "errors", "claims"]
    assert record["claims"][0]["verdict"] == "proved"
    assert record["claims"][0]["executed"] is None
    assert record["claims"][0]["evidence"][0]["at"] == "app.py:4"


def test_a_record_that_cannot_be_written_is_said_in_a_line(project, capsys):
    assert main(["verify", "claims.toml", "--json", "no/such/folder.json"]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_terminal_gets_colours(project, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["verify", "claims.toml"]) == 0
    assert capsys.readouterr().out.startswith("\x1b[32m\x1b[1mproved\x1b[0m: Ring")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD.replace("symbol", "symbl"), "unknown key symbl; did you mean symbol?"),
        (GOOD + "zzz = 1\n", "unknown key zzz; choose one of file,"),
        (GOOD.replace("claim", "claims"), "unknown key claims; did you mean claim?"),
        (GOOD.replace('"fifo"', '"fifoo"'), "unknown policy 'fifoo'; did you mean fifo?"),
        (GOOD.replace('"fifo"', '"x y"'), "choose one of lru, oldest"),
        (GOOD.replace("limit = 5\n", ""), "limit is missing; a claim needs file, symbol, limit"),
        (GOOD.replace("= 5", "= 0"), "limit=0 must be a whole number of at least 1"),
        (GOOD.replace("= 5", "= true"), "limit=True must be"),
        (GOOD.replace('"app.py"', "1"), "file=1 must be a non-empty string"),
        (GOOD + "feed = 'add({i}'\n", "is not a Python expression"),
        ("claim = [1]\n", "1 is not a table"),
        ("", "has no claims; add one under [[claim]]"),
        ("[[claim]]\nfile = \n", "is not valid TOML: Invalid value (at line 2"),
    ],
)  # fmt: skip
def test_a_wrong_file_of_claims_is_one_line_and_two(project, capsys, text, says):
    (project / "claims.toml").write_text(text)
    assert main(["verify", "claims.toml"]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


def test_a_file_of_claims_that_is_missing_is_two(project, capsys):
    assert main(["verify", "gone.toml"]) == 2
    assert "gone.toml cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("while True: pass\n", "no answer within 1 seconds; the process was killed"),
        ("import os\nos._exit(7)\n", "the process ended with status 7"),
        ("raise RuntimeError('no')\n", "the file cannot be imported: RuntimeError: no"),
        ("raise SystemExit(0)\n", "the file cannot be imported: SystemExit: 0"),
    ],
)
def test_code_that_hangs_dies_or_raises_cannot_be_told(project, capsys, code, says):
    (project / "app.py").write_text(RING + code)
    patience = "1" if "while" in code else "30"
    assert main(["verify", "claims.toml", "--execute", "--timeout", patience]) == 3
    assert says in capsys.readouterr().out
    assert (
        main(["verify", "claims.toml", "--execute", "--format", "json", "--timeout", patience]) == 3
    )
    assert says in json.loads(capsys.readouterr().out)["errors"][0]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="Windows has no process groups")
def test_a_process_that_the_code_left_behind_is_ended(project):
    left = "import subprocess, sys\n"
    left += "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    left += f"open({str(project / 'pid')!r}, 'w').write(str(child.pid))\n"
    (project / "app.py").write_text(left + RING)
    assert main(["verify", "claims.toml", "--execute"]) == 0
    pid = int((project / "pid").read_text())
    deadline = time.monotonic() + 100
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)  # the signal is sent; the system takes a moment
    assert not runs(pid)


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def ring(project: Path, **more: object) -> Claim:
    return Claim(
        "n", project / "app.py", **{"symbol": "Ring", "limit": 5, "policy": "fifo", **more}
    )


@pytest.mark.parametrize(
    ("make", "feed", "verdict"),
    [
        (None, "add({i})", "proved"),
        (None, "ring.add('k{i}')", "proved"),
        ("Ring()", "it.add([{i}])", "proved"),
        (None, "add_later({i} * 1000)", "proved"),
        (None, "add([str(n) for n in range({i}, {i} + 1)])", "proved"),
        (None, "add('same')", "cannot tell"),
        (None, "len('{i}')", "cannot tell"),
        (None, "add(1 / 0)", "cannot tell"),
        ("Ring(1)", "add({i})", "cannot tell"),
    ],
)
def test_make_and_feed_say_how(project, make, feed, verdict, in_process):
    assert verify(ring(project, make=make, feed=feed), run=True).verdict == verdict


def test_a_module_of_a_package_is_imported_with_its_package(project, in_process):
    package = project / "floodline_verified"
    package.mkdir()
    (package / "__init__.py").write_text(RING)
    (package / "app.py").write_text("from floodline_verified import Ring as Base\n" + RING)
    for name in ("app.py", "__init__.py"):
        claim = ring(project)._replace(file=package / name)
        assert verify(claim, run=True).verdict == "proved"


def test_counting_runs_no_code_of_the_container(project, in_process):
    liar = "class Liar(dict):\n    __len__ = __iter__ = None\n"
    liar += "    __class__ = property(lambda self: 1 / 0)\n"
    liar += "class Ring:\n    __slots__ = ('a', 'x')\n    def __init__(self): self.x = Liar()\n"
    liar += "    def add(self, key): self.x[key] = 1\n"
    (project / "app.py").write_text(liar)
    answer = verify(ring(project, feed="add({i})"), run=True)
    assert answer.executed is not None
    assert "Ring.x held at most 12" in answer.executed.evidence[0].says


def test_a_keyword_that_is_needed_is_given(project, in_process):
    code = RING.replace(
        "(self, item):\n        self.items", "(self, *, item, n=1):\n        self.items"
    )
    (project / "app.py").write_text(code)
    assert verify(ring(project), run=True).verdict == "proved"


def test_a_function_that_wants_numbers_is_given_numbers(project, in_process):
    code = RING.replace("append(item)", "append(item + 1000)")
    (project / "app.py").write_text(code)
    assert verify(ring(project), run=True).verdict == "proved"


def test_what_cannot_be_fed_by_guessing_keeps_the_verdict_of_the_source(project, in_process):
    (project / "app.py").write_text(RING.replace("append(item)", "append(item.value)"))
    answer = verify(ring(project), run=True)
    assert (answer.verdict, answer.executed.verdict) == ("proved", "cannot tell")
    assert "give `feed`" in answer.evidence[-1].says


def test_a_nested_class_is_made_and_fed(project, in_process):
    inner = "".join(f"    {line}\n" for line in RING.splitlines()[1:])
    (project / "app.py").write_text("from collections import deque\nclass Outer:\n" + inner)
    assert verify(ring(project, symbol="Outer.Ring.items"), run=True).verdict == "proved"


def test_the_probe_needs_nothing_but_the_standard_library():
    code = f"import sys; sys.path.insert(0, {str(Path(_probe.__file__).parent)!r}); import _probe; "
    code += "print([m for m in sys.modules if m.startswith(('floodline', 'click', 'msgspec'))])"
    run = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"


def test_the_example_can_be_verified_from_anywhere(tmp_path, monkeypatch, capsys):
    shutil.copytree(ANNOUNCED.parent, tmp_path / "copy")
    monkeypatch.chdir(tmp_path)
    assert main(["verify", "copy/claims.toml"]) == 1
    assert "  copy/fixes.py:" in capsys.readouterr().out
