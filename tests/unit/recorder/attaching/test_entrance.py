"""Entering a process that was not prepared: what keeps us out is told, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from floodline.errors import ConfigError
from floodline.recorder._attaching import entrance
from floodline.recorder._attaching.entrance import enter, obstacle, python_of, same_file
from floodline.recorder._attaching.injection import BUSY, NO_PACKAGE, REFUSED

PID = 77


@pytest.fixture
def proc(tmp_path, monkeypatch):
    """A folder as /proc is, with one process that sees our files and our network."""
    monkeypatch.setattr(entrance, "find_spec", lambda name: name)
    for name in (str(PID), "self"):
        (tmp_path / name / "ns").mkdir(parents=True)
        (tmp_path / name / "ns" / "net").symlink_to("net:[1]")
    (tmp_path / str(PID) / "root").symlink_to("/")
    (tmp_path / str(PID) / "maps").write_text("7f-8f r-xp /usr/bin/python3.12\n")
    status(tmp_path, "S (sleeping)")
    return tmp_path


def status(proc, state, tracer=0):
    (proc / str(PID) / "status").write_text(f"Name:\tx\nState:\t{state}\nTracerPid:\t{tracer}\n")


def move(link, target):
    link.unlink()
    link.symlink_to(target)


def test_a_script_runs_on_a_thread_of_its_own(proc):
    ran = []

    def run(words):
        ran.append((words, Path(words[-1]).read_text()))
        return 0, "entering\nentered\n"

    enter(PID, "print('in')", proc=proc, run=run)
    ((words, code),) = ran
    assert words[:4] == [sys.executable, "-m", "floodline.recorder._attaching.injection", str(PID)]
    assert not Path(words[-1]).exists()
    names = {}
    exec(code.replace("print('in')", "pass"), names)
    assert list(names) == ["__builtins__"]
    assert "print('in')" in code


def test_nothing_is_known_to_keep_us_out(proc):
    assert obstacle(PID, proc, "x86_64") is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda proc: status(proc, "T (stopped)"),
            "is stopped; let it continue with kill -CONT 77",
        ),
        (lambda proc: status(proc, "t (tracing stop)", 9), "is traced by process 9, a debugger"),
        (
            lambda proc: (proc / "77" / "maps").write_text("7f /lib/libpython3.14.so.1.0\n"),
            "run floodline with Python 3.14",
        ),
        (
            lambda proc: (
                (proc / "77/ns/net").unlink(),
                (proc / "77/ns/net").symlink_to("net:[2]"),
            ),
            "in a container with its own files or network: run floodline attach inside it",
        ),
        (
            lambda proc: ((proc / "77/root").unlink(), (proc / "77/root").mkdir()),
            "in a container with its own files",
        ),
    ],
)
def test_what_keeps_us_out_is_told_before_anything_is_tried(proc, change, told, monkeypatch):
    change(proc)
    monkeypatch.setattr(entrance.os, "uname", lambda: os.uname_result(("", "", "", "", "x86_64")))
    with pytest.raises(ConfigError) as refused:
        enter(PID, "", proc=proc, run=lambda words: pytest.fail("it was tried"))
    assert told in str(refused.value)
    assert "FLOODLINE_PROBE=dormant" in str(refused.value)


def test_without_the_package_or_on_another_system(proc, monkeypatch, tmp_path):
    assert "on Linux only, not on riscv64" in obstacle(PID, proc, "riscv64")
    assert "on Linux only" in obstacle(PID, tmp_path / "none", "x86_64")
    monkeypatch.setattr(entrance, "find_spec", lambda name: None)
    assert "pip install 'floodline[attach]'" in obstacle(PID, proc, "x86_64")


def capable(proc, scope, capabilities):
    (proc / str(os.getpid())).mkdir()
    (proc / str(os.getpid()) / "status").write_text(f"CapEff:\t{capabilities:016x}\n")
    if scope is not None:
        (proc / "sys/kernel/yama").mkdir(parents=True)
        (proc / "sys/kernel/yama/ptrace_scope").write_text(f"{scope}\n")


@pytest.mark.parametrize(
    ("scope", "capabilities", "told"),
    [
        (1, 0, "sudo sysctl kernel.yama.ptrace_scope=0"),
        (2, 0, "kernel.yama.ptrace_scope=2"),
        (3, entrance.SYS_PTRACE, "until the next boot"),
        (0, 0, "--cap-add=SYS_PTRACE"),
        (None, 0, "--cap-add=SYS_PTRACE"),
        (None, entrance.SYS_PTRACE, "AppArmor, SELinux or seccomp"),
    ],
)
def test_a_system_that_forbids_it_is_told_with_what_to_set(proc, scope, capabilities, told):
    capable(proc, scope, capabilities)
    with pytest.raises(ConfigError) as refused:
        enter(PID, "", proc=proc, run=lambda words: (REFUSED, "because operation not permitted\n"))
    assert told in str(refused.value)
    assert "(operation not permitted)" in str(refused.value)


@pytest.mark.parametrize(
    ("status", "said", "told"),
    [
        (BUSY, "because never\n", "its main thread was never seen waiting for events"),
        (NO_PACKAGE, "because No module named 'hypno'\n", "the extra attach is needed (No module"),
        (None, "entering\n", "some thread keeps the interpreter to itself"),
        (None, "", "could not be entered in time"),
    ],
)
def test_how_the_child_ended_is_told(proc, status, said, told):
    with pytest.raises(ConfigError) as refused:
        enter(PID, "", proc=proc, run=lambda words: (status, said))
    assert told in str(refused.value)
    assert "floodline.watch()" in str(refused.value)


def test_the_child_is_waited_for_and_never_ended(tmp_path, monkeypatch):
    run = entrance._run_in(str(tmp_path))
    status, said = run([sys.executable, "-c", "import os; print(os.environ['TMPDIR']); exit(4)"])
    assert (status, said.strip()) == (4, str(tmp_path))
    for name in ("PATIENCE", "SLACK", "LONGEST"):
        monkeypatch.setattr(entrance, name, 0.0)
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        entrance.subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[0]
    )
    assert run([sys.executable, "-c", "import time; time.sleep(600)"])[0] is None
    assert started[0].poll() is None
    started[0].kill()
    started[0].wait()


def test_files_and_versions_that_cannot_be_seen(tmp_path):
    assert python_of(PID, tmp_path) is None
    assert python_of(os.getpid()) == sys.version_info.minor
    assert not same_file(PID, str(tmp_path), tmp_path)
    (tmp_path / str(PID)).touch()  # not a folder: an error of another kind
    assert same_file(PID, str(tmp_path), tmp_path)
    assert same_file(os.getpid(), str(tmp_path))
