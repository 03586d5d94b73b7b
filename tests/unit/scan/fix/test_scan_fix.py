"""`--fix` makes sure that a removal which is meant does run, and touches nothing else."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from floodline.cli import main
from floodline.scan import Scan
from floodline.scan._fix import fix as fixing
from floodline.scan._fix.fix import rewrites, write


def fixed(folder: Path, code: str, **others: str) -> tuple[str, list[str]]:
    """Fix `app.py`; return what it is afterwards, and why findings were left."""
    for name, text in {"app": code, **others}.items():
        (folder / f"{name}.py").write_text(dedent(text), encoding="utf-8")
    scan = Scan([folder])
    changes, left = rewrites(scan.report().findings, scan.paths)
    for change in changes:
        write(change)
    return (folder / "app.py").read_text(encoding="utf-8"), [why for _, why in left]


def loaded(text: str) -> ModuleType:
    module = ModuleType("app")
    exec(compile(text, "app.py", "exec"), module.__dict__)
    return module


def rules_in(folder: Path) -> list[str]:
    return [f.rule for f in Scan([folder]).report().findings if f.confidence != "low"]


TASKS = """\
import asyncio

tasks = set()


async def named(work):
    task = asyncio.create_task(work)
    tasks.add(task)  # or it is collected
    return "named"


async def inline(work):
    tasks.add(asyncio.ensure_future(work))  # or it is collected
    return "inline"


def stop():
    for task in tasks:
        task.cancel()
    return len(tasks)
"""


def test_tasks_are_discarded_when_they_are_done(tmp_path):
    text, left = fixed(tmp_path, TASKS)
    assert left == []
    assert text.count("add_done_callback(tasks.discard)") == 2
    assert text.count("# or it is collected") == 2
    assert rules_in(tmp_path) == []
    app = loaded(text)

    async def run() -> list[object]:
        told = [await app.named(asyncio.sleep(0)), await app.inline(asyncio.sleep(0))]
        held = len(app.tasks)
        await asyncio.gather(*app.tasks)
        await asyncio.sleep(0)
        return [*told, held, len(app.tasks), app.stop()]

    assert asyncio.run(run()) == ["named", "inline", 2, 0, 0]


def test_futures_of_an_executor_are_discarded_when_they_are_done(tmp_path):
    text, left = fixed(
        tmp_path,
        """
        from concurrent.futures import ThreadPoolExecutor

        class Jobs:
            def __init__(self):
                self._pool = ThreadPoolExecutor(1)
                self._futures = set()

            def run(self, work):
                self._futures.add(self._pool.submit(work))

            def end(self):
                self._pool.shutdown()

        jobs = Jobs()
        """,
    )
    assert left == []
    assert rules_in(tmp_path) == []
    app = loaded(text)
    app.jobs.run(list)
    app.jobs.end()
    assert app.jobs._futures == set()


PAIR = """\
running = {}


async def handle(request_id, work):
    running[request_id] = work
    # the work may fail

    result = await work(
        request_id,
    )
    if result is None:
        raise ValueError(request_id)
    del running[request_id]  # over
    return result
"""


def test_what_is_removed_at_the_end_is_removed_in_finally(tmp_path):
    text, left = fixed(tmp_path, PAIR)
    assert left == []
    assert "    try:\n        # the work may fail\n\n        result = await" in text
    assert "    finally:\n        del running[request_id]  # over\n    return result\n" in text
    assert rules_in(tmp_path) == []
    app = loaded(text)

    async def work(result: object) -> object:
        assert list(app.running) == ["a"]
        return result

    assert asyncio.run(app.handle("a", lambda _: work(1))) == 1
    with pytest.raises(ValueError, match="a"):
        asyncio.run(app.handle("a", lambda _: work(None)))
    assert app.running == {}


def test_a_second_run_finds_nothing_more_to_do(tmp_path):
    for code in (TASKS, PAIR):
        text, _ = fixed(tmp_path, code)
        assert fixed(tmp_path, text) == (text, [])


@pytest.mark.parametrize(
    ("newline", "encoding"),
    [("\r\n", "utf-8"), ("\r", "utf-8"), ("\n", "utf-8-sig"), ("\n", "latin-1")],
)
def test_line_ends_marks_encodings_and_modes_are_kept(newline, encoding, tmp_path):
    head = "# -*- coding: latin-1 -*-\n" if encoding == "latin-1" else ""
    text = head + PAIR.replace("over", "vorüber")
    path = tmp_path / "app.py"
    path.write_bytes(text.replace("\n", newline).encode(encoding))
    path.chmod(0o754)
    scan = Scan([tmp_path])
    [change], _ = rewrites(scan.report().findings, scan.paths)
    write(change)
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf") is (encoding == "utf-8-sig")
    result = data.decode(encoding)
    assert f"    finally:{newline}        del running[request_id]  # vorüber{newline}" in result
    assert set(result) & set("\r\n") == set(newline)
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert [entry.name for entry in tmp_path.iterdir()] == ["app.py"]


def test_a_last_line_without_an_end_stays_one(tmp_path):
    text, _ = fixed(tmp_path, PAIR.partition("    return")[0].rstrip())
    assert text.endswith("    finally:\n        del running[request_id]  # over")


def test_tabs_stay_tabs(tmp_path):
    text, _ = fixed(tmp_path, PAIR.replace("        ", "\t\t").replace("    ", "\t"))
    assert "\tfinally:\n\t\tdel running[request_id]" in text


def pair(between: str, removal: str = "running.pop(key, None)") -> str:
    body = "\n".join(f"    {line}" for line in between.splitlines())
    head = "running = {}\n\n\ndef handle(key, work):\n    running[key] = 1\n"
    return f"{head}{body}\n    {removal}\n"


def task(adds: str, rest: str = "", head: str = "import asyncio") -> str:
    body = "\n".join(f"    {line}" for line in adds.splitlines())
    return f"{head}\n\ntasks = set()\n\n\nasync def handle(work, pool):\n{body}\n\n{rest}\n"


LEFT = {
    "a return that may keep the entry on purpose": (
        pair("if work():\n    return\nwork()"),
        "line 7 returns and may keep the entry on purpose",
    ),
    "a key that changes": (pair("work()\nfor key in work():\n    pass"), "changes key"),
    "a container that changes": (
        "class A:\n    def __init__(self):\n        self.x = {}\n\n"
        "    def handle(self, key, work):\n        self.x[key] = 1\n"
        "        self.x, self.y = work()\n        self.x.pop(key, None)\n\n\na = A()\n",
        "line 7 changes self.x",
    ),
    "a text of several lines": (
        pair('work("""\nno\n""")'),
        "a string that spans several lines cannot be indented",
    ),
    "a removal whose result is used": (
        pair("work()", "found = running.pop(key, None)"),
        "the result of the removal is used",
    ),
    "statements on one line": (
        pair("work()", "running.pop(key, None); work()"),
        "it shares its line with another statement",
    ),
    "another removal that makes this one fail": (
        pair("work()", "del running[key]") + "\n\ndef close():\n    running.clear()\n",
        "something else may have removed it",
    ),
    "a list of tasks": (
        task("task = asyncio.create_task(work())\ntasks.append(task)").replace("set()", "[]"),
        "only a set that is filled with add() can be fixed",
    ),
    "tasks that are awaited": (
        task(
            "task = asyncio.create_task(work())\ntasks.add(task)",
            "async def end():\n    return await asyncio.gather(*tasks)\n",
        ),
        "line 11 reads tasks and would miss what is done",
    ),
    "tasks that somebody works through": (
        task(
            "task = asyncio.create_task(work())\ntasks.add(task)",
            "def end():\n    for task in tasks:\n        print(task)\n",
        ),
        "line 11 reads tasks and would miss what is done",
    ),
    "a task of somebody else": (
        task("task = work.create_task()\ntasks.add(task)"),
        "it is not certain to be an asyncio task",
    ),
    "a future of somebody else": (
        task("tasks.add(pool.submit(work))"),
        "it is not certain to be an asyncio task",
    ),
    "a task that is sometimes none": (
        task("task = None\ntask = asyncio.create_task(work())\ntasks.add(task)"),
        "it is not certain to be an asyncio task",
    ),
    "a name that is taken": (
        task("task = work\ntasks.add(asyncio.create_task(task()))"),
        "the name 'task' is already taken",
    ),
    "a call of several lines": (
        task("tasks.add(asyncio.create_task(\n    work()\n))"),
        "the call spans several lines",
    ),
    "a set of the same name that is made elsewhere": (
        task(
            "task = asyncio.create_task(work())\ntasks.add(task)",
            "def other(x, y):\n    x.tasks = y\n",
        ),
        "line 11 does not assign a new set to tasks",
    ),
    "a removal between": (
        pair("work()\nif key in work:\n    running.clear()\nwork()"),
        "something in between may remove it too",
    ),
}


@pytest.mark.parametrize("case", LEFT)
def test_nothing_is_changed_because_of(case, tmp_path):
    code, why = LEFT[case]
    text, left = fixed(tmp_path, code)
    assert text == code
    assert why in " ".join(left)


def test_a_loop_of_its_own_may_break(tmp_path):
    text, left = fixed(tmp_path, pair("for item in work():\n    if item:\n        break"))
    assert (left, text.count("finally:")) == ([], 1)


def test_a_loop_that_breaks_out_is_left_alone(tmp_path):
    code = (
        "running = {}\n\n\n"
        "def handle(keys, work):\n    for key in keys:\n        running[key] = 1\n"
        "        if work():\n            break\n        running.pop(key, None)\n"
    )
    text, left = fixed(tmp_path, code)
    assert text == code
    assert not left or "leaves the block and may keep the entry" in left[0]


def test_functions_made_between_may_return(tmp_path):
    text, left = fixed(tmp_path, pair("def inner():\n    return 1\nwork(inner)"))
    assert (left, text.count("finally:")) == ([], 1)


def test_a_set_that_another_file_names_is_left_alone(tmp_path):
    text, left = fixed(tmp_path, TASKS, other="from app import tasks\n\nprint(tasks)\n")
    assert text == TASKS
    assert left == ["another file uses it too"]


def test_imported_functions_are_known(tmp_path):
    code = TASKS.replace("import asyncio", "from asyncio import create_task, ensure_future")
    text, left = fixed(tmp_path, code.replace("asyncio.", ""))
    assert (left, text.count("add_done_callback")) == ([], 2)


def test_two_fixes_that_overlap_need_two_runs(tmp_path):
    code = """
    running = {}
    waiting = {}

    def handle(key, work):
        running[key] = 1
        waiting[key] = 1
        work()
        waiting.pop(key, None)
        running.pop(key, None)
    """
    text, left = fixed(tmp_path, code)
    assert (text.count("finally:"), left) == (1, ["it overlaps with another fix; run again"])
    text, left = fixed(tmp_path, text)
    assert (text.count("finally:"), left) == (2, [])
    assert rules_in(tmp_path) == []


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(TASKS, encoding="utf-8")
    (tmp_path / "pair.py").write_text(PAIR, encoding="utf-8")
    return tmp_path


def test_a_trial_shows_the_diff_and_changes_nothing(project, capsys):
    assert main(["scan", ".", "--diff"]) == 1
    shown = capsys.readouterr()
    assert "--- a/app.py\n+++ b/app.py\n" in shown.out
    assert "+    task.add_done_callback(tasks.discard)\n" in shown.out
    assert shown.err == "2 findings can be fixed in 2 files\n"
    assert (project / "app.py").read_text(encoding="utf-8") == TASKS


def test_a_fix_is_written_shown_and_judged_again(project, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["scan", ".", "--fix"]) == 0
    shown = capsys.readouterr()
    assert "add_done_callback" in shown.out
    assert "0 findings in 2 files" in shown.out
    assert shown.err == "2 findings fixed in 2 files\n"
    assert main(["scan", ".", "--diff"]) == 0


def test_what_cannot_be_fixed_is_told_as_advice(project, capsys):
    (project / "app.py").write_text(LEFT["tasks that are awaited"][0], encoding="utf-8")
    (project / "pair.py").write_text(
        "sessions = {}\n\ndef f(user_id):\n    sessions[user_id] = 1\n"
    )
    assert main(["scan", ".", "--fix", "--fail-on", "medium"]) == 1
    shown = capsys.readouterr()
    assert "FLD401 left alone: line 11 reads tasks" in shown.err
    assert "0 findings fixed in 0 files" in shown.err
    assert "use    bound it" in shown.out
    assert 'pair.py:1  sessions = BoundedMap(max_items=1000, idle="30 min")' in shown.out


def test_a_document_stays_alone_on_standard_output(project, capsys):
    assert main(["scan", ".", "--fix", "--format", "json"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("{")
    assert "+++ b/app.py" in shown.err


def test_what_a_comment_answers_or_the_level_hides_is_not_fixed(project, capsys):
    ignored = TASKS.replace("# or it is collected", "# floodline: ignore[FLD401] a test says so")
    (project / "app.py").write_text(ignored, encoding="utf-8")
    assert main(["scan", "app.py", "--fix"]) == 0
    assert (project / "app.py").read_text(encoding="utf-8") == ignored


def test_a_file_that_changed_or_cannot_be_written_is_left_alone(project, capsys, monkeypatch):
    [change, _], _ = rewrites(Scan(["."]).report().findings, ["app.py"])
    (project / "app.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(OSError, match="changed while it was scanned"):
        write(change)
    (project / "app.py").write_text(TASKS, encoding="utf-8")

    def refuse(*_: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(Path, "replace", refuse)
    assert main(["scan", ".", "--fix", "--fail-on", "medium"]) == 1
    assert "FLD401 left alone: cannot write it: no" in capsys.readouterr().err
    assert sorted(path.name for path in project.iterdir()) == ["app.py", "pair.py"]


def test_a_file_that_vanished_or_moved_is_left_alone(project):
    findings = Scan(["."]).report().findings
    (project / "app.py").write_text("\n\n" + TASKS, encoding="utf-8")
    (project / "pair.py").unlink()
    changes, left = rewrites(findings, ["app.py", "pair.py"])
    assert changes == []
    assert {why.partition(":")[0].partition(";")[0] for _, why in left} == {
        "the file can no longer be read",
        "the statement was not found",
    }


def test_a_result_that_is_another_program_is_refused(project, monkeypatch):
    findings = Scan(["."]).report().findings
    for broken in ("def", "x = 1\n"):
        monkeypatch.setattr(fixing, "_applied", lambda *_, broken=broken: broken)
        changes, left = rewrites(findings, [])
        assert changes == []
        assert {why for _, why in left} == {"the result would not be the same program"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--fix", "--audit"], "exclude each other; choose one"),
        (["--diff", "--why-not", "x"], "exclude each other; choose one"),
        (["--fix", "--baseline", "b", "--write-baseline"], "run --fix first"),
    ],
)
def test_questions_that_exclude_each_other(project, capsys, arguments, says):
    assert main(["scan", ".", *arguments]) == 2
    assert says in capsys.readouterr().err


CHANGED = {
    "x = 1\ntasks = set()\ntasks.add(1)\n": "it is not in a function",
    "def f(x):\n    y = 1\n    x().add(1)\n": "the set is not a plain name",
    "def f(x):\n    y = 1\n    x.add(x.submit(1))\n": "it is not certain",
    "def f(x):\n    x = x.y\n    x.add(x.submit(1))\n": "it is not certain",
}


@pytest.mark.parametrize("text", CHANGED)
def test_a_file_that_is_another_now_is_left_alone(text, tmp_path):
    (tmp_path / "app.py").write_text(task("tasks.add(asyncio.create_task(work()))"))
    [finding] = Scan([tmp_path]).report().findings
    (tmp_path / "app.py").write_text(text, encoding="utf-8")
    finding = finding._replace(line=3, grows=(f"{finding.path}:3",))
    [(_, why)] = rewrites([finding], [])[1]
    assert CHANGED[text] in why
    [(_, why)] = rewrites([finding._replace(grows=("other.py:3",))], [])[1]
    assert why == "another file adds to it too"


def test_a_removal_in_another_block_is_left_alone(tmp_path):
    (tmp_path / "app.py").write_text(pair("work()"), encoding="utf-8")
    [finding] = Scan([tmp_path]).report().findings
    changed = pair("work()").replace("    running.pop", "    if key:\n        running.pop")
    (tmp_path / "app.py").write_text(changed, encoding="utf-8")
    finding = finding._replace(shrinks=(f"{finding.path}:8",))
    [(_, why)] = rewrites([finding], [])[1]
    assert why == "the removal is not in the same block"
    [(_, why)] = rewrites([finding._replace(shrinks=("other.py:7",))], [])[1]
    assert why == "the removal is not in the same block"


@pytest.mark.parametrize("other", ["running[other] = 1", "running = {key: 1}", "work.key = 1"])
def test_a_removal_of_something_else_is_left_alone(other, tmp_path):
    (tmp_path / "app.py").write_text(pair("work()"), encoding="utf-8")
    [finding] = Scan([tmp_path]).report().findings
    changed = pair("work()").replace("running[key] = 1", other)
    (tmp_path / "app.py").write_text(changed, encoding="utf-8")
    [(_, why)] = rewrites([finding], [])[1]
    assert why == "what is removed is not what was added"


def test_a_set_is_discarded_from_in_finally(tmp_path):
    code = (
        "busy = set()\n\n\ndef handle(key, work):\n"
        "    busy.add(key)\n    work()\n    busy.discard(key)\n"
    )
    text, left = fixed(tmp_path, code)
    assert (left, text.count("finally:")) == ([], 1)
