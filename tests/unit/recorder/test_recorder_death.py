"""What a process died of."""

from __future__ import annotations

import signal

import pytest

from floodline.recorder._death import (
    background_record,
    exit_record,
    oom_kills,
    processes,
    signal_name,
    unclosed_cause,
)

MIB = 1 << 20


def record(code, **facts):
    return exit_record(code, **{"oom": False, "last": 90 * MIB, "limit": None, **facts})


def test_an_orderly_end():
    assert record(0) == {"status": 0, "signal": None, "oom": False, "cause": "ended by itself"}
    assert record(3)["status"] == 3
    assert "status 3" in record(3)["cause"]


def test_the_kernel_counted_a_kill():
    died = record(-signal.SIGKILL, oom=True, limit=100 * MIB)
    assert died["signal"] == "SIGKILL"
    assert died["oom"] is True
    assert "lack of memory" in died["cause"]
    assert "100 MiB" in died["cause"]
    assert "limit" not in record(-signal.SIGKILL, oom=True)["cause"]


def test_a_count_of_the_kernel_means_nothing_if_the_program_was_not_killed():
    assert record(0, oom=True)["oom"] is False
    assert record(-signal.SIGTERM, oom=True)["oom"] is False


def test_close_to_the_limit_it_was_probably_memory():
    died = record(-signal.SIGKILL, last=98 * MIB, limit=100 * MIB)
    assert died["oom"] is False
    assert "probably" in died["cause"]


def test_else_the_cause_is_unknown():
    assert record(-signal.SIGKILL)["cause"] == "killed, cause unknown"
    assert record(-signal.SIGKILL, limit=1000 * MIB)["cause"] == "killed, cause unknown"
    assert record(None)["cause"] == "gone, cause unknown"


def test_crashes_and_requests_are_told_apart():
    assert record(-signal.SIGSEGV)["cause"] == "crashed with SIGSEGV"
    assert record(-signal.SIGTERM)["cause"] == "ended by SIGTERM"
    assert "passed on" in record(-signal.SIGTERM, asked=True)["cause"]


def background(*states, **facts):
    facts = {"oom": False, "last": 90 * MIB, "limit": None, **facts}
    return background_record(list(enumerate(states, 5)), **facts)


def test_a_program_that_went_on_in_the_background_ended_as_its_last_process_did():
    went_on = "went on in the background as"
    ended = background("exited")
    assert ended == {
        "status": 0,
        "signal": None,
        "oom": False,
        "cause": f"{went_on} process 5: ended by itself",
    }
    assert background("exited", "running")["cause"] == f"{went_on} processes 5, 6: still running"
    assert "after SIGTERM, which was" in background("exited", asked="SIGTERM")["cause"]


def test_of_a_lost_daemon_no_status_is_known():
    lost = background("exited", "lost")
    assert lost["status"] is None
    assert "gone, cause unknown" in lost["cause"]
    killed = background("lost", oom=True, limit=100 * MIB)
    assert killed["oom"] is True
    assert "lack of memory, with 90 MiB resident of a limit of 100 MiB" in killed["cause"]
    assert background("exited", oom=True)["oom"] is False


def test_of_many_processes_the_first_are_named():
    assert processes(range(1, 9)) == "processes 1, 2, 3, 4, 5 and 3 more"


def test_a_signal_without_a_name_has_a_number():
    assert signal_name(200) == "signal 200"


def test_an_unclosed_recording_says_so():
    assert "cause unknown" in unclosed_cause(10 * MIB, None)
    assert "cause unknown" in unclosed_cause(10 * MIB, 100 * MIB)
    assert "probably for lack of memory" in unclosed_cause(99 * MIB, 100 * MIB)


@pytest.mark.parametrize(
    ("cgroup", "file", "folder"),
    [
        ("0::/app\n", "memory.events", "sys/fs/cgroup/app"),
        ("4:memory:/app\n", "memory.oom_control", "sys/fs/cgroup/memory/app"),
    ],
)
def test_the_kernels_count_is_read_of_either_version(tmp_path, cgroup, file, folder):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(cgroup)
    (tmp_path / folder).mkdir(parents=True)
    assert oom_kills(tmp_path) is None
    (tmp_path / folder / file).write_text("oom 1\nunder_oom 0\noom_kill 2\n")
    assert oom_kills(tmp_path) == 2
