"""Several processes read the files of a scan: the report is the same, whatever happens to them."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import warnings

import pytest

from floodline.cli import main as command
from floodline.scan import Scan
from floodline.scan._reporters.json import render
from floodline.scan._sources import worker, workers
from floodline.scan._sources.cache import Cache
from floodline.scan._sources.encoding import unpack_facts
from floodline.scan._sources.files import Skip
from floodline.scan._sources.workers import START, Job, Workers, available_cores, worker_count

LEAK = (
    "sessions{0} = {{}}\n\n\nasync def handle{0}(request):\n    sessions{0}[request.id] = request\n"
)
DYING = """
import os, signal, sys
sys.path.append(sys.argv[1])
from floodline.scan._sources import worker
def dying(path, salt, answer=worker.answer):
    if path.name == "m3.py":
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(path, salt)
worker.answer = dying
worker.main()
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    for number in range(8):
        (tmp_path / f"m{number}.py").write_text(LEAK.format(number))
    (tmp_path / "broken.py").write_bytes(b"\n\n\nx = '\xff'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "ENOUGH", 1)
    monkeypatch.setattr(workers, "BATCH", 150)  # two files
    return tmp_path


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    kept = []

    def start(python, real=workers._started):
        kept.append(real(python))
        return kept[-1]

    monkeypatch.setattr(workers, "_started", start)
    return kept


def told(jobs, **options) -> str:
    return render(Scan(["."], jobs=jobs, **options).report(), "1")


def test_three_processes_report_what_one_does(project, started):
    alone = told(1)
    assert "FLD101" in alone
    assert "is not written in utf-8" in alone
    assert not started
    assert told(3) == alone
    assert [process.poll() for process in started] == [-signal.SIGKILL] * 2


def test_processes_fill_the_cache_for_others(project, monkeypatch):
    alone = told(1)
    with Cache(project / "cache", "1", day=1) as cache:
        assert told(2, cache=cache) == alone
    (project / "broken.py").unlink()
    alone = told(1)
    monkeypatch.setattr("floodline.scan._sources.reading.facts_of", None)  # nothing is parsed again
    with Cache(project / "cache", "1", day=1) as cache:
        assert told(1, cache=cache) == alone
    (project / "m0.py").write_text(LEAK.format(9))
    with Cache(project / "cache", "1", day=1) as cache:
        assert "handle9" in told(2, cache=cache)


def test_what_a_killed_process_left_undone_is_read_here(project, monkeypatch, started):
    alone = told(1)
    monkeypatch.setattr(workers, "START", DYING)
    assert told(2) == alone
    assert started


@pytest.mark.parametrize("start", ["raise SystemExit", "print('no worker', flush=True)"])
def test_processes_that_do_not_start_are_done_without(project, monkeypatch, start):
    alone = told(1)
    monkeypatch.setattr(workers, "START", start)
    assert told(2) == alone


def test_a_machine_without_free_processes_reads_here(project, monkeypatch):
    alone = told(1)

    def refused(*_):
        raise BlockingIOError("out of processes")

    monkeypatch.setattr(workers, "_started", refused)
    assert told(2) == alone


def test_an_interrupt_ends_the_processes(project, started):
    def interrupted(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Scan(["."], jobs=3, progress=interrupted).report()
    assert len(started) == 2
    assert all(process.poll() is not None for process in started)


def test_progress_counts_every_file_once(project):
    seen = []
    Scan(["."], jobs=2, progress=lambda done, total: seen.append((done, total))).report()
    assert seen == [(number, 9) for number in range(1, 10)]


def test_a_lack_of_memory_in_a_process_is_told(project, monkeypatch):
    answer = worker.Answer(b"", None, Skip.TOO_DEEP.name, (), True)
    everything = [(Job(number, None, 1), answer) for number in range(9)]
    monkeypatch.setattr(Workers, "read", lambda *_, helped: everything)
    with Cache(project / "cache", "1", day=1) as cache:
        scan = Scan(["."], jobs=2, cache=cache)
        assert len(scan.report().skipped) == 9
        assert scan._reading.exhausted


def test_the_number_of_processes_depends_on_cores_and_size(monkeypatch):
    monkeypatch.setattr(workers, "available_cores", lambda: 64)
    assert worker_count(None, 100 * workers.ENOUGH) == workers.MANY_READERS - 1
    assert worker_count(9, 100 * workers.ENOUGH) == 8
    assert worker_count(9, 3 * workers.ENOUGH) == 2
    assert worker_count(None, 2 * workers.ENOUGH - 1) == 0
    assert worker_count(1, 100 * workers.ENOUGH) == worker_count(9, 0) == 0


def test_a_program_that_contains_python_reads_by_itself(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert worker_count(9, 100 * workers.ENOUGH) == 0
    monkeypatch.delattr(sys, "frozen")
    monkeypatch.setattr(sys, "executable", "")
    assert worker_count(9, 100 * workers.ENOUGH) == 0


def test_cores_are_counted_on_every_platform(monkeypatch):
    assert available_cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1


def test_the_option_and_the_setting_choose_the_number(project, started, monkeypatch, capsys):
    (project / "pyproject.toml").write_text("[tool.floodline.scan]\njobs = 3\n")
    command(["scan", ".", "--no-cache", "--format", "json"])
    by_setting = capsys.readouterr().out
    assert len(started) == 2
    command(["scan", ".", "--no-cache", "--format", "json", "--jobs", "1"])
    assert capsys.readouterr().out == by_setting
    assert len(started) == 2
    (project / "pyproject.toml").write_text("[tool.floodline.scan]\njobs = 0\n")
    assert command(["scan", "."]) == 2
    assert "scan.jobs=0 must be a number from 1" in capsys.readouterr().err


def test_a_worker_answers_until_its_input_ends(project, monkeypatch):
    requests, answers = io.BytesIO(), io.BytesIO()
    worker.send(requests, (None, [b"m0.py", b"gone.py"]))
    requests.seek(0)
    # a worker sets these for its own process
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(requests))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(answers))
    with warnings.catch_warnings():
        worker.main()
    answers.seek(0)
    assert worker.receive(answers) == sys.version_info[:2]
    read, gone = (worker.Answer(*answer) for answer in worker.receive(answers))
    assert read.facts
    assert (gone.facts, gone.ground) == (None, "SYSTEM")
    with pytest.raises(EOFError):
        worker.receive(answers)
    with pytest.raises(EOFError):
        worker.receive(io.BytesIO(worker.LENGTH.pack(9) + b"short"))


def test_a_worker_ends_quietly_when_nobody_listens(project):
    process = workers._started(sys.executable)
    process.stdout.close()
    assert process.wait(60) == 0
    process.stdin.close()


def test_a_python_without_packages_reads_the_same(project, monkeypatch):
    (project / "odd.py").write_text("def f(x, y=(1, 2)):\n    x.y[x.z].append(f(x))\n")
    (project / "broken.py").unlink()
    jobs = [Job(number, path, 9) for number, path in enumerate(sorted(project.glob("*.py")))]
    read = []
    for first in ("", "import sys\nsys.modules['msgspec'] = None\n"):
        monkeypatch.setattr(workers, "START", first + START)
        with Workers(1) as reading:
            answers = [answer.facts for _, answer in reading.read(jobs, None)]
        read.append([unpack_facts(facts, "a.py", "a") for facts in answers])
    assert read[0] == read[1]
    assert len(read[0]) == 9
