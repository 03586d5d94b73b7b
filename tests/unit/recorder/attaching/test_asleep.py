"""When a process may be entered."""

from __future__ import annotations

import os

import pytest

from floodline.recorder._attaching.asleep import MOST_THREADS, asleep, quiet

PID = 77


@pytest.fixture
def process(tmp_path):
    (tmp_path / str(PID) / "task" / str(PID)).mkdir(parents=True)
    (tmp_path / str(PID) / "fd").mkdir()
    return tmp_path


def calls(proc, text):
    (proc / str(PID) / "task" / str(PID) / "syscall").write_text(text)
    return proc


@pytest.mark.parametrize("number", [7, 23, 35, 230, 232, 270, 271, 281, 441])
def test_a_main_thread_that_waits_for_events_or_time_is_asleep(process, number):
    assert asleep(PID, calls(process, f"{number} 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n"), "x86_64")


@pytest.mark.parametrize(
    "text",
    [
        "running\n",
        "-1 0x7ffd 0x7f\n",  # stopped outside of a call
        "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n",  # futex: a lock, maybe Python's own
        "219 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n",  # a call that goes on: nobody knows which
        "1 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n",
        "",
    ],
)
def test_any_other_moment_is_none(process, text):
    assert not asleep(PID, calls(process, text), "x86_64")


def test_the_numbers_are_those_of_the_machine(process):
    calls(process, "7 0x1 0x2\n")
    assert not asleep(PID, process, "aarch64")
    assert not asleep(PID, process, "riscv64")
    assert asleep(PID, calls(process, "22 0x1 0x2\n"), "aarch64")


@pytest.mark.parametrize(
    ("opened", "waits"),
    [("pipe:[123]", True), ("socket:[5]", True), ("/dev/pts/3", True), ("/usr/lib/x.so", False)],
)
def test_reading_counts_only_where_it_waits_for_others(process, opened, waits):
    (process / str(PID) / "fd" / "16").symlink_to(opened)
    assert asleep(PID, calls(process, "0 0x10 0x2 0x3\n"), "x86_64") is waits
    assert not asleep(PID, calls(process, "0 0x11 0x2 0x3\n"), "x86_64")


def test_a_process_that_is_gone_is_not_asleep(tmp_path):
    assert not asleep(PID, tmp_path)
    assert not quiet(PID, tmp_path)
    assert not asleep(os.getpid())  # it runs this


def test_the_others_are_quiet_if_none_of_them_runs(process):
    def thread(number, state):
        folder = process / str(PID) / "task" / str(number)
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_text(f"{number} (a ) name) {state} 1 2 3")

    assert quiet(PID, process)
    thread(78, "S")
    (process / str(PID) / "task" / "79").mkdir()  # it has just ended
    assert quiet(PID, process)
    thread(80, "R")
    assert not quiet(PID, process)
    thread(80, "S")
    for number in range(100, 101 + MOST_THREADS):
        thread(number, "S")
    assert not quiet(PID, process)
