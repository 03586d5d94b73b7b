"""What a program notices of `floodline run`: nothing. Input, status, signals, children, memory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
import venv

import pytest

from floodline.errors import ConfigError
from floodline.recorder import read_recording
from run_programs import PATIENCE

PLAIN = {name: text for name, text in os.environ.items() if not name.startswith("FLOODLINE")}
COUNTING = """
import os, signal, time

arrived, arrive = os.pipe()
os.set_blocking(arrive, False)
signal.set_wakeup_fd(arrive)  # one byte for each that arrives, also for two at once
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
    signal.signal(getattr(signal, name), lambda *_: None)
print("ready", flush=True)
seen = b""
while signal.SIGUSR1 not in seen:
    seen = os.read(arrived, 1)
    print(signal.Signals(seen[0]).name, flush=True)
time.sleep(0.2)  # for one that comes twice
os.set_blocking(arrived, False)
try:
    print(os.read(arrived, 100))
except BlockingIOError:
    pass
"""


@pytest.fixture
def start(tmp_path):
    """Return what starts `floodline run` on a program, and ends it whatever happens."""
    runs = []

    def start(source, *options, arguments=(), **popen):
        program = tmp_path / "app.py"
        program.write_text(source, encoding="utf-8")
        command = [sys.executable, "-m", "floodline", "run", f"--record={tmp_path / 'run.rec'}"]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        run = subprocess.Popen(
            [*command, "--no-dashboard", *options, str(program), *arguments],
            text=True,
            **{"env": PLAIN, "start_new_session": True, **pipes, **popen},
        )
        run.record = tmp_path / "run.rec"
        runs.append(run)
        return run

    yield start
    for run in runs:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.communicate(timeout=PATIENCE)


def state_when(run, true):
    """Wait until the recording says so."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            state = read_recording(run.record).state()
        except ConfigError:  # not there yet
            pass
        else:
            if true(state):
                return state
        time.sleep(0.1)  # another process writes; there is nothing else to wait on
    raise AssertionError("it did not come true")


def watched(state):
    return [one for one in state["processes"] if one["threads"]]


def test_input_arguments_and_status_pass_through_in_an_environment_without_floodline(
    start, tmp_path
):
    """The interpreter is another one: all that it gets is one directory on its path."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    source = (
        "import importlib.util, sys\n"
        "hidden = importlib.util.find_spec('floodline') is None\n"
        "print(hidden, sys.argv[1:], flush=True)\n"
        "print(input(), flush=True)\n"
        "sys.exit(7)\n"
    )
    python = tmp_path / "venv" / "bin" / "python"
    run = start(source, f"--python={python}", arguments=("--port", "1"))
    given = "PYTHONPATH" in PLAIN  # then the tests themselves have floodline from there
    assert run.stdout.readline() == f"{not given} ['--port', '1']\n"
    state = state_when(run, watched)
    out, errors = run.communicate("hello\n", timeout=PATIENCE)
    assert out == "hello\n"
    assert run.returncode == 7
    assert "failed with status 7" in errors
    assert state["command"] == "app.py --port 1"
    assert watched(state)[0]["objects"] is not None
    assert state["not_covered"] == []
    (program,) = read_recording(run.record).state()["processes"]
    assert (program["state"], program["exit"]["status"]) == ("exited", 7)


def test_signals_that_are_sent_to_us_arrive_once(start):
    run = start(COUNTING)
    assert run.stdout.readline() == "ready\n"
    for name in ("SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1"):
        os.kill(run.pid, getattr(signal, name))
        assert run.stdout.readline() == f"{name}\n"
    out, _ = run.communicate(timeout=PATIENCE)
    assert (out, run.returncode) == ("", 0)


def test_a_signal_of_the_terminal_arrives_once(start):
    """Ctrl-C goes to the whole foreground group: passed on, it would come twice."""
    ours, theirs = pty.openpty()
    run = start(
        COUNTING,
        stdin=theirs,
        start_new_session=False,
        preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)),
    )
    os.close(theirs)
    assert run.stdout.readline() == "ready\n"
    os.write(ours, b"\x03")
    assert run.stdout.readline() == "SIGINT\n"
    os.kill(run.pid, signal.SIGUSR1)
    assert run.stdout.readline() == "SIGUSR1\n"
    out, _ = run.communicate(timeout=PATIENCE)
    os.close(ours)
    assert (out, run.returncode) == ("", 0)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGTERM])
def test_we_die_by_the_signal_that_the_program_died_of(start, number):
    run = start(f"import os; os.kill(os.getpid(), {int(number)})")
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == -number
    assert number.name in errors
    assert read_recording(run.record).state()["exit"]["signal"] == number.name


CHILDREN = """
import multiprocessing, os, subprocess, sys


def wait(line):
    line.recv()


if __name__ == "__main__":
    command = [sys.executable, "-c", "input()"]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE),
        subprocess.Popen([command[0], "-I", *command[1:]], stdin=subprocess.PIPE),
        subprocess.Popen(command, stdin=subprocess.PIPE, env={}),
    ]
    lines = []
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        mine, theirs = context.Pipe()
        process = context.Process(target=wait, args=(theirs,))
        process.start()
        lines.append((process, mine))
    print("started", flush=True)
    input()
    for process, line in lines:
        line.send(1)
        process.join()
    for child in children:
        child.communicate(b"x")
"""


def test_children_are_watched_however_they_were_started_and_others_are_told(start):
    run = start(CHILDREN)
    assert run.stdout.readline() == "started\n"
    state = state_when(
        run, lambda state: len(watched(state)) >= 4 and len(state["not_covered"]) == 2
    )
    told = " ".join(state["not_covered"])
    assert "started with -I" in told
    assert "environment was cleared" in told
    commands = [one["command"] for one in watched(state)]
    assert commands.count("app.py") >= 3  # fork, spawn, forkserver; merged under one command
    assert "-c" in commands
    run.communicate("\n", timeout=PATIENCE)
    assert run.returncode == 0


SHEDDING = """
import sys, time
from floodline import BoundedMap, MemoryBudget

budget = MemoryBudget("1 TiB", every=None)
cache = BoundedMap(100_000, pressure=budget, name="cache")
for n in range(1000):
    cache[n] = "x" * 1000
print("filled", flush=True)
while len(cache) > 900:
    time.sleep(0.01)
print("shed", flush=True)
"""


def test_above_the_line_it_warns_and_what_takes_pressure_sheds(start):
    run = start(SHEDDING, "--line=1 MiB")
    assert run.stdout.readline() == "filled\n"
    out, errors = run.communicate(timeout=PATIENCE)
    assert out == "shed\n"
    assert "above the line of 1 MiB" in errors
    state = read_recording(run.record).state()
    kinds = [event["kind"] for event in state["events"]]
    assert "line_crossed" in kinds
    assert state["line"] == 1 << 20


ALONE = """
import os, sys, time
print(os.getppid(), flush=True)
input()
print("still here", flush=True)
input()
"""


def test_a_program_goes_on_when_its_recorder_is_killed(start):
    run = start(ALONE)
    recorder = int(run.stdout.readline())
    state_when(run, watched)
    os.kill(recorder, signal.SIGKILL)
    assert run.wait(PATIENCE) == -signal.SIGKILL
    run.stdin.write("x\n")
    run.stdin.flush()
    assert run.stdout.readline() == "still here\n"
    state = read_recording(run.record).state()
    assert state["closed"] is False
    (program,) = state["processes"]
    cause = f"the recorder was killed, and process {program['pid']} of the program continues"
    assert cause in state["exit"]["cause"]
    assert program["state"] == "running"


DAEMON = """
import os, sys

if os.fork():
    sys.exit(0)
os.setsid()
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
input()
"""


@pytest.fixture
def daemon(start):
    """A program that becomes a daemon, when its probe has said that it runs."""
    run = start(DAEMON)
    run.daemon = int(run.stdout.readline())

    def left(state):
        first = state["processes"][0]["state"] == "exited"
        return first and any(one["pid"] == run.daemon for one in watched(state))

    state = state_when(run, left)
    assert state["exit"] is None
    yield run
    with contextlib.suppress(ProcessLookupError):
        os.kill(run.daemon, signal.SIGKILL)  # it has left the process group


def test_a_daemon_is_recorded_until_it_ends(daemon):
    _, errors = daemon.communicate("\n", timeout=PATIENCE)
    assert daemon.returncode == 0
    assert f"left process {daemon.daemon} running" in errors
    cause = f"continued in the background as process {daemon.daemon}: exited normally"
    assert cause in errors
    state = read_recording(daemon.record).state()
    assert (state["closed"], state["exit"]["cause"]) == (True, cause)


def test_a_signal_that_is_sent_to_us_reaches_the_daemon(daemon):
    daemon.terminate()
    _, errors = daemon.communicate(timeout=PATIENCE)
    assert daemon.returncode == 0
    assert "ended after SIGTERM, which was passed on to it" in errors
    state = read_recording(daemon.record).state()
    assert {one["state"] for one in state["processes"]} == {"exited"}


TERMINATING = """
import multiprocessing, signal, time

if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    worker.start()

    def end(*_):
        worker.terminate()
        worker.join()
        print("terminated", flush=True)
        time.sleep(1.5)  # until somebody looks
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    while True:
        time.sleep(0.05)
"""


def test_workers_that_go_with_a_program_that_was_asked_to_end_are_not_lost(start):
    run = start(TERMINATING)
    state_when(run, lambda state: len(watched(state)) == 2)
    run.terminate()
    out, errors = run.communicate(timeout=PATIENCE)
    assert (out, run.returncode) == ("terminated\n", 0)
    assert "lost" not in errors
    state = read_recording(run.record).state()
    assert state["exit"]["cause"] == "exited normally, after SIGTERM was passed on to it"
    assert {one["state"] for one in state["processes"]} == {"exited"}


def test_a_program_that_ends_by_a_signal_which_was_passed_on_is_not_lost(start):
    run = start("input()")
    state_when(run, watched)
    run.terminate()
    run.communicate(timeout=PATIENCE)
    assert run.returncode == -signal.SIGTERM
    (program,) = read_recording(run.record).state()["processes"]
    assert program["state"] == "exited"
    assert program["exit"]["cause"] == "ended by SIGTERM, which was passed on to it"
