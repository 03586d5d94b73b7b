"""Processes that nobody prepared are entered hundreds of times while they work; none is harmed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from floodline.cli import main
from floodline.recorder._attaching import injection
from floodline.recorder._attaching.asleep import asleep
from floodline.recorder._attaching.entrance import FIRST, enter, obstacle, python_of
from floodline.recorder._attaching.injection import Moment

hypno_api = pytest.importorskip("hypno.api")
injector_api = pytest.importorskip("pyinjector.api")
PATIENCE = 200.0  # a safety net
PYTHONS = ("3.11", "3.12", "3.13")

# a checksum over what all threads do: a damaged heap does not keep it up for long
BUSY = """
import hashlib, sys, threading, time
beats, many = sys.argv[1], int(sys.argv[2])
table = {}
def work(name):
    made = []
    for n in range(10**12):
        made.append({"n": n, "text": str(n) * 20, "digest": hashlib.sha256(b"%d" % n).digest()})
        table[name, n % 500] = made[-1]
        if len(made) > 3000:
            for one in made:
                assert one["text"] == str(one["n"]) * 20
            made.clear()
        if not n % 50 and name == "main":
            time.sleep(0.001)
            with open(beats, "r+b") as file:
                file.write(b"%020d" % n)
        elif not n % 700:
            time.sleep(0)
open(beats, "wb").close()
for number in range(many):
    threading.Thread(target=work, args=(number,), daemon=True).start()
work("main")
"""
SIGN = 'import time\ntime.sleep(0.01)\nopen({path!r}, "ab").write(b".")\n'


def interpreters():
    """Return every Python found that can be watched, by version; the one that runs this first."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {here: sys.executable}
    for version in PYTHONS:
        pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        other = str(pyenv[-1]) if pyenv else shutil.which(f"python{version}")
        if version != here and other:
            found[version] = other
    return found


def permitted():
    """Return True if the system lets us trace our own children."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        try:
            Path(f"/proc/{child.pid}/task/{child.pid}/syscall").read_text()  # or it is forbidden
            until(lambda: asleep(child.pid), child)
            with injector_api.attach(child.pid):
                return True
        except Exception:
            return False
        finally:
            child.kill()


@pytest.fixture(scope="module", autouse=True)
def _tracing():
    if not permitted():
        pytest.skip("the system does not let us trace other processes")


@contextmanager
def busy(python, threads, folder):
    beats = folder / "beats"
    process = subprocess.Popen([python, "-c", BUSY, str(beats), str(threads)])
    try:
        until(lambda: beats.exists() and beats.read_bytes(), process)
        yield process, beats
    finally:
        process.kill()
        process.wait()


def until(condition, process):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, f"it ended with {process.returncode}"
        assert time.monotonic() < end, "it hangs"
        time.sleep(0.002)


def enter_often(process, beats, signs, times):
    code = FIRST.format(then=SIGN.format(path=str(signs)))
    signs.touch()
    for _ in range(times):
        hypno_api.inject_py(process.pid, code)
        before = beats.read_bytes()
        until(lambda before=before: beats.read_bytes() != before, process)
    until(lambda: len(signs.read_bytes()) == times, process)


@pytest.fixture
def bare(monkeypatch):
    """Enter from here, at the first moment when the main thread sleeps, whatever others do."""
    monkeypatch.setattr(injection, "QUIET", 0.0)
    monkeypatch.setattr(injection, "PATIENCE", PATIENCE)
    monkeypatch.setattr(injection.signal, "alarm", bool)
    monkeypatch.setattr(hypno_api, "inject", Moment(injector_api.attach, bool).inject)


@pytest.mark.parametrize("threads", [0, 3])
def test_a_busy_process_is_entered_again_and_again(bare, tmp_path, threads):
    with busy(sys.executable, threads, tmp_path) as (process, beats):
        enter_often(process, beats, tmp_path / "signs", 5)


@pytest.mark.long
@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("version", interpreters())
def test_a_busy_process_is_entered_five_hundred_times(bare, tmp_path, version, threads):
    with busy(interpreters()[version], threads, tmp_path) as (process, beats):
        enter_often(process, beats, tmp_path / "signs", 500)


def test_the_whole_way_runs_a_script_and_leaves_nothing_in_the_main_module(tmp_path):
    told = tmp_path / "told"
    code = f"""
import time
{told.name} = 1
while True:
    time.sleep(0.01)
"""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        try:
            until(lambda: python_of(process.pid), process)
            script = (
                "import sys, threading\n"
                "names = sorted(n for n in vars(sys.modules['__main__']) if n[0] != '_')\n"
                f"open({str(told)!r}, 'w').write(' '.join(names))\n"
            )
            enter(process.pid, script)
            until(lambda: told.exists() and told.read_text(), process)
        finally:
            process.kill()
    assert told.read_text() == "time told"


def test_attach_needs_no_preparation_and_leaves_nothing_running(tmp_path, capsys):
    code = """
import time
class Box:
    def __init__(self):
        self.rows = [str(n) * 1000 for n in range(20_000)]
box = Box()
while True:
    time.sleep(0.01)
"""
    document = tmp_path / "held.json"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        threads = Path(f"/proc/{process.pid}/task")
        try:
            until(lambda: asleep(process.pid), process)
            assert main(["attach", str(process.pid), "--now", f"--json={document}"]) == 0
            until(lambda: len(list(threads.iterdir())) == 1, process)
        finally:
            process.kill()
    first = json.loads(document.read_text())["holders"][0]
    assert (first["owner"], first["items"]) == ("__main__.Box.rows", 20_000)
    assert "__main__.Box.rows" in capsys.readouterr().out


def test_a_stopped_process_is_told_as_such(capsys):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        try:
            until(lambda: asleep(process.pid), process)
            process.send_signal(signal.SIGSTOP)
            until(lambda: "stopped" in (obstacle(process.pid) or ""), process)
            assert main(["attach", str(process.pid)]) == 2
            assert f"kill -CONT {process.pid}" in capsys.readouterr().err
        finally:
            process.kill()


@pytest.mark.long
def test_a_process_that_never_waits_is_refused_and_continues(capsys):
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            until(lambda: python_of(process.pid), process)
            assert main(["attach", str(process.pid)]) == 2
            assert "never seen waiting for events" in " ".join(capsys.readouterr().err.split())
            assert process.poll() is None
        finally:
            process.kill()
