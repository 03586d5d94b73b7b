from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from floodline.leaks import Suspect
from floodline.leaks._vocabulary import Cause
from floodline.pytest_plugin import _mocks, _records, _soaks
from floodline.soak import Answer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pytest.md").read_text(encoding="utf-8")
NARROW = """
import sys

import pytest
import soak_programs
from floodline.leaks._heap import roots

def pytest_collection_finish(session):
    soak_programs.narrow(pytest.MonkeyPatch(), sys.modules["test_it"])
    roots._asynchronous = lambda *_: None
"""
SHORT = "import asyncio, pytest\npytestmark = pytest.mark.filterwarnings('default')\n"

LEAKY = """
import pytest

ROWS, SEEN, KEPT = [], {}, set()

@pytest.mark.soak(rounds=24)
def test_grows():
    ROWS.append([1])

@pytest.mark.soak(rounds=24, allow="test_it.SEEN")
def test_may_grow():
    SEEN[len(SEEN)] = [1]

def test_block(soak):
    for number in soak.rounds(24):
        before = len(KEPT)
        KEPT.add((number, before))

def test_block_left_early(soak):
    for number in soak.rounds(24):
        if number == 3:
            break
    assert soak.answer is None

def test_block_that_may_grow(soak):
    for number in soak.rounds(24, allow="test_it.KEPT"):
        KEPT.add((number, -1))
    assert soak.answer.verdict == "growing"
"""

RECORDED = """
import logging, warnings
from unittest import mock

import pytest

SENT = mock.MagicMock()
SETTINGS = {}

@pytest.fixture
def sender():
    sent = mock.create_autospec(lambda text: None)
    sent("before")
    return sent

@pytest.mark.soak(rounds=24)
def test_calm(caplog, capsys, monkeypatch, record_property, sender):
    logging.getLogger("app").warning("turn %s", object())
    assert len(caplog.records) == caplog.text.count("turn") == 1
    print("a line " * 500)
    assert capsys.readouterr().out.count("\\n") == 1
    print("unread " * 500)
    assert "new" not in SETTINGS
    monkeypatch.setitem(SETTINGS, "new", [1])
    monkeypatch.setattr(logging, "kept", [1], raising=False)
    record_property("turn", 1)
    warnings.warn("old", DeprecationWarning)
    SENT.chat.send("hello")
    SENT.chat.send.assert_called_once_with("hello")
    sender("again")
    assert sender.call_count == 2
"""


def run_pytest(
    folder: Path, text: str, *options: str, plugins: str = "", conftest: str = NARROW
) -> str:
    """Run pytest on a file; walks see it alone, for the sake of speed, unless `conftest` is ''."""
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider"]
    for name in ("floodline.pytest_plugin", *plugins.split()):
        command += ["-p", name]
    if "pytest_asyncio" in plugins:
        command += ["-o", "asyncio_default_fixture_loop_scope=function"]
    # where walks see everything, a coverage run is not followed: it would take minutes
    followed = [name for name in os.environ if conftest or not name.startswith("COVERAGE")]
    environment = {name: os.environ[name] for name in followed}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests")))
    environment.pop("PYTEST_ADDOPTS", None)
    run = subprocess.run(
        [*command, *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


def outcomes(printed: str) -> dict[str, str]:
    found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) .*?::(\w+)", printed, re.MULTILINE)
    return {name: outcome for outcome, name in found}


def test_growth_fails_with_the_answer_unless_its_owner_is_allowed(tmp_path):
    printed = run_pytest(tmp_path, LEAKY)
    may = ("test_may_grow", "test_block_left_early", "test_block_that_may_grow")
    must_not = ("test_grows", "test_block")
    wanted = {**dict.fromkeys(may, "PASSED"), **dict.fromkeys(must_not, "FAILED")}
    assert outcomes(printed) == wanted, printed
    assert "GROWING  +1.0 item/round" in printed
    assert "test_it.ROWS   list" in printed
    assert re.search(r"fed at +\S*test_it.py:8  test_grows", printed)
    assert re.search(r"fed at +\S*test_it.py:17  test_block", printed)
    assert printed.count("Captured soak call") == 4
    assert printed.count("reached by") == 4  # once a section
    assert "Answer(" not in printed  # the answer is told as text
    assert "During handling" not in printed


def test_what_pytest_and_mocks_write_down_is_no_growth(tmp_path):
    printed = run_pytest(tmp_path, RECORDED, conftest="")
    assert outcomes(printed) == {"test_calm": "PASSED"}, printed
    assert "reached by" not in printed  # no suspect
    assert printed.count("DeprecationWarning: old") == 1
    assert outcomes(run_pytest(tmp_path, RECORDED, "--soak-rounds=5")) == {"test_calm": "PASSED"}


ASYNC = (
    SHORT
    + """
LOOPS, SET_UP = set(), []

@pytest.fixture
def once():
    SET_UP.append(1)

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.PLUGIN
@pytest.mark.soak(rounds=6)
async def test_marked(once):
    LOOPS.add(id(asyncio.get_running_loop()))
    await asyncio.sleep(0)

@pytest.mark.PLUGIN
async def test_block(soak):
    ran = []
    async def work():
        ran.append(1)
        await asyncio.sleep(0)
    answer = await soak.run(work, rounds=6)
    assert (answer.verdict, len(ran)) == ("undecided", 6)

@pytest.mark.PLUGIN
@pytest.mark.soak(rounds=6)
async def test_raises():
    await asyncio.sleep(0)
    raise LookupError("from the third line")

def test_after():
    assert (len(LOOPS), len(SET_UP)) == (1, 1)
"""
)


@pytest.mark.parametrize("name", ["anyio.pytest_plugin", "pytest_asyncio.plugin"])
def test_async_tests_run_all_rounds_in_one_event_loop(tmp_path, name):
    package = name.split(".")[0]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    text = ASYNC.replace("PLUGIN", package.removeprefix("pytest_"))
    printed = run_pytest(tmp_path, text, plugins=name)
    expected = dict.fromkeys(("test_marked", "test_block", "test_after"), "PASSED")
    assert outcomes(printed) == expected | {"test_raises": "FAILED"}, printed
    assert "LookupError: from the third line" in printed
    assert "_run.py" not in printed  # the traceback begins in the test
    assert printed.count("too few rounds to tell") >= 2


FEW = (
    SHORT
    + """
@pytest.mark.soak(rounds=6, warmup=2)
def test_short():
    pass

def test_block(soak, request):
    ran = []
    print("before")
    soak(lambda: ran.append(1), rounds=5)
    rounds = request.config.getoption("soak_rounds") or 5
    assert len(ran) == rounds
"""
)


@pytest.mark.parametrize(("chosen", "outcome"), [("fail", "FAILED"), ("skip", "SKIPPED")])
def test_undecided_does_what_the_setting_says(tmp_path, chosen, outcome):
    printed = run_pytest(tmp_path, FEW, "-o", f"soak_undecided={chosen}", "-s", "-p", "no:logging")
    assert f"2 {outcome.lower()}" in printed, printed
    assert "UNDECIDED" in printed


def test_undecided_warns_and_rounds_can_be_set_for_all(tmp_path):
    printed = run_pytest(tmp_path, FEW, "--soak-rounds", "3", "-p", "no:capture")
    assert "2 passed, 2 warnings" in printed, printed
    assert "SoakWarning: UNDECIDED" in printed
    assert "over 2 rounds" in printed  # 3, of which 2 * 3 // 6 warm up


def test_workers_of_xdist_send_the_answer(tmp_path):
    printed = run_pytest(tmp_path, FEW, "-n", "2", plugins="xdist.plugin")
    assert outcomes(printed) == {"test_short": "PASSED", "test_block": "PASSED"}, printed
    assert printed.count("Captured soak call") == 2
    assert "before" in printed


WRONG = (
    SHORT
    + """
@pytest.mark.soak(5)
def test_position():
    pass

@pytest.mark.soak(round=5)
def test_unknown():
    pass

@pytest.mark.soak(rounds=5)
async def test_no_plugin():
    pass

@pytest.mark.soak(rounds=5)
async def test_generator():
    yield

@pytest.mark.soak(rounds=5)
def test_raises():
    assert 1 == 2

def test_coroutine_function(soak):
    async def work(): ...
    soak(work)
"""
)


def test_what_cannot_be_looped_fails_and_says_why(tmp_path):
    printed = run_pytest(tmp_path, WRONG)
    assert set(outcomes(printed).values()) == {"FAILED"}, printed
    for words in (
        "name the argument, as in soak(rounds=200)",
        "soak(round=…) is unknown; it accepts rounds, warmup and allow",
        "async def functions are not natively supported",
        "assert 1 == 2",
        "use `await soak.run(...)`",
    ):
        assert words in printed
    assert "_run.py" not in printed


HOOK = """
import pytest

class Item(pytest.Item):
    def runtest(self):
        pass

class Quiet(pytest.File):
    def collect(self):
        item = Item.from_parent(self, name="page")
        item.add_marker(pytest.mark.soak)
        yield item

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".page":
        return Quiet.from_parent(parent, path=file_path)

def pytest_pyfunc_call(pyfuncitem):
    if pyfuncitem.name == "test_never_called":
        return True
    if pyfuncitem.name == "test_other_loop":
        try:
            pyfuncitem.obj().send(None)
        except StopIteration:
            return True
"""
OTHER = (
    SHORT
    + """
RAN = []

@pytest.mark.soak(rounds=5)
def test_never_called():
    pass

@pytest.mark.soak(rounds=5)
async def test_other_loop():
    RAN.append(1)

def test_after():
    assert len(RAN) == 5
"""
)


UNITTESTS = """
import asyncio, unittest, pytest

RAN, KEPT = [], []

class TestPlain(unittest.TestCase):
    @pytest.mark.soak(rounds=5)
    def test_plain(self):
        RAN.append(1)

class TestLoop(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.loop = asyncio.get_running_loop()

    @pytest.mark.soak(rounds=5)
    async def test_in_its_loop(self):
        RAN.append(asyncio.get_running_loop() is self.loop)

    @pytest.mark.soak(rounds=40)
    async def test_growth(self):
        KEPT.append([1])

    @pytest.mark.soak(rounds=5)
    async def test_skipped(self):
        self.skipTest("not here")

def test_rounds():
    assert RAN == [True] * 10
"""


def test_methods_of_unittest_are_looped_too(tmp_path):
    printed = run_pytest(tmp_path, UNITTESTS, "-W", "default::floodline.pytest_plugin.SoakWarning")
    assert "1 failed, 3 passed, 1 skipped" in printed, printed
    assert "test_it.KEPT" in printed


def test_other_items_and_other_event_loops_are_told_apart(tmp_path):
    (tmp_path / "one.page").write_text("")
    printed = run_pytest(tmp_path, OTHER, conftest=NARROW + HOOK)
    assert "2 failed, 2 passed" in printed, printed
    assert "test_never_called is called in a way that the mark soak cannot loop" in printed
    assert "the mark soak is for test functions only" in printed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("-o", "soak_undecided=maybe"),
            "soak_undecided='maybe' is unknown; choose one of warn, fail, skip",
        ),
        (("--soak-rounds", "0"), "--soak-rounds 0 must be at least 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path, options, words):
    assert words in run_pytest(tmp_path, FEW, *options)


def test_the_examples_of_the_page_run(tmp_path):
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    shown = "from unittest import mock\napp = mock.NonCallableMock()\n" + "\n".join(blocks)
    if find_spec("pytest_asyncio") is None:
        pytest.skip("pytest-asyncio is not installed")
    printed = run_pytest(tmp_path, shown, "--soak-rounds", "3", plugins="pytest_asyncio.plugin")
    assert "failed" not in printed.splitlines()[-1], printed


def test_the_plugin_is_announced_and_brings_nothing_heavy():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"floodline": "floodline.pytest_plugin"}
    code = "import sys, pytest; before = set(sys.modules); import json, floodline.pytest_plugin"
    code += "; print(json.dumps(sorted(set(sys.modules) - before)))"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean
    )
    ours = {name for name in json.loads(run.stdout) if name.startswith("floodline")}
    light = {"floodline", "floodline._lazy", "floodline.errors", "floodline.pytest_plugin"}
    assert ours <= light
    assert not set(json.loads(run.stdout)) & {"asyncio", "unittest.mock"}


def suspect(owner: str, **changes: object) -> Suspect:
    return Suspect(1, "growing", owner, "m", "p", "dict", "", 9, 1.0, 1.0).but(**changes)


def answer(verdict: str, *suspects: Suspect, where: str = "python", cause: Cause | None = None):
    return Answer(verdict=verdict, where=where, rounds=9, warmup=1, suspects=suspects, cause=cause)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (answer("growing", suspect("app.CACHE")), "bounded"),
        (answer("growing", suspect("app.CACHE.rows")), "bounded"),
        (answer("growing", suspect("app.CACHE_2")), "growing"),
        (answer("growing", suspect("app.CACHE"), suspect("app.B")), "growing"),
        (answer("growing", suspect("app.CACHE"), suspect("app.B", capped=True)), "undecided"),
        (answer("growing", suspect("app.CACHE"), suspect("b", capped=True, cap=3)), "growing"),
        (answer("growing", suspect("app.CACHE"), cause=Cause.UNNAMED_OBJECTS), "growing"),
        (answer("growing", suspect("app.CACHE"), where="native"), "growing"),
        (answer("undecided", suspect("app.CACHE"), cause=Cause.UNSTEADY), "bounded"),
        (answer("undecided"), "undecided"),
    ],
)
def test_an_allowed_owner_excuses_itself_and_what_is_below_it(found, verdict):
    assert _soaks._verdict(found, ("app.CACHE",)) == verdict


def test_only_one_warning_of_a_place_stays():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warned = _records.Warned(fresh=False)
        for number in range(5):
            warnings.warn(f"here {number}", UserWarning, stacklevel=1)
            warnings.warn("there", UserWarning, stacklevel=1)
            warned.put_back()
        assert [str(one.message) for one in seen] == ["here 0", "there"]
        fresh = _records.Warned(fresh=True)
        warnings.warn("gone", UserWarning, stacklevel=1)
        fresh.put_back()
        assert len(seen) == 2


def test_reports_of_subtests_are_dropped_after_each_round_unless_one_failed():
    fine, failed = (SimpleNamespace(failed=yes) for yes in (False, True))
    warned = SimpleNamespace()
    stats = {"passed": [fine], "failed": [failed], "warnings": []}
    subtests = _records.Subtests(stats)
    stats["passed"].append(fine)
    stats["subtests passed"] = [fine, fine]
    stats["warnings"].append(warned)
    subtests.put_back()
    assert stats == {
        "passed": [fine], "failed": [failed], "warnings": [warned], "subtests passed": []
    }  # fmt: skip
    stats["failed"].append(failed)
    with pytest.raises(pytest.fail.Exception, match="a subtest failed"):
        subtests.put_back()
    assert stats["failed"] == [failed, failed]


def test_mocks_keep_the_calls_from_before_and_no_others():
    old, parent = mock.Mock(), mock.MagicMock()
    old(1)
    known = _mocks.Mocks()
    later = None
    for _ in range(5):
        later = later or mock.AsyncMock()
        old(2)
        later(3).close()
        parent.child.run().more()
        known.put_back()
        assert (old.call_count, old.call_args, len(old.mock_calls)) == (1, mock.call(1), 1)
        assert (later.called, later.mock_calls, parent.mock_calls) == (False, [], [])
        assert (parent.child.run.call_count, parent.child.run.call_args_list) == (0, [])


def test_a_program_without_mocks_is_not_searched(monkeypatch):
    monkeypatch.delitem(sys.modules, "unittest.mock")
    known = _mocks.Mocks()
    known.put_back()
    assert known._known == {}


def test_without_plugins_of_pytest_there_is_nothing_to_put_back():
    manager = SimpleNamespace(get_plugin=lambda name: None)
    item = SimpleNamespace(config=SimpleNamespace(pluginmanager=manager), user_properties=[])
    records = _records.Records(item)
    item.user_properties.append(("a", 1))
    records.put_back()
    assert item.user_properties == []
