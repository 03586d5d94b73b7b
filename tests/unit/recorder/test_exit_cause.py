"""What a process died of."""

from __future__ import annotations

import signal

import pytest

from floodline.recorder import Recorder
from floodline.recorder._exit_cause import (
    background_record,
    ending,
    exit_record,
    oom_kills,
    processes,
    signal_name,
    unclosed_record,
)
from floodline.recorder._snapshot import ExitKind

MIB = 1 << 20
NOBODY = 2**22 + 9


def record(code, **facts):
    return exit_record(code, **{"oom": False, "last": 90 * MIB, "limit": None, **facts})


def test_an_orderly_end():
    assert record(0) == {
        "status": 0,
        "signal": None,
        "oom": False,
        "cause": "exited normally",
        "kind": ExitKind.ENDED,
    }
    assert record(3)["status"] == 3
    assert "status 3" in record(3)["cause"]


def test_the_kernel_counted_a_kill():
    died = record(-signal.SIGKILL, oom=True, limit=100 * MIB)
    assert died["signal"] == "SIGKILL"
    assert died["oom"] is True
    assert "out of memory" in died["cause"]
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
    asked = record(-signal.SIGTERM, asked="SIGTERM")["cause"]
    assert asked == "ended by SIGTERM, which was passed on to it"


def test_what_was_passed_on_is_told_although_the_program_ended_in_order():
    after = "after SIGTERM was passed on to it"
    assert record(0, asked="SIGTERM")["cause"] == f"exited normally, {after}"
    assert record(3, asked="SIGTERM")["cause"] == f"failed with status 3, {after}"
    assert record(-signal.SIGHUP, asked="SIGTERM")["cause"] == f"ended by SIGHUP, {after}"
    assert record(-signal.SIGKILL, asked="SIGTERM")["cause"] == "killed, cause unknown"


def background(*states, **facts):
    facts = {"oom": False, "last": 90 * MIB, "limit": None, **facts}
    return background_record(list(enumerate(states, 5)), **facts)


def test_a_program_that_went_on_in_the_background_ended_as_its_last_process_did():
    went_on = "continued in the background as"
    ended = background("exited")
    assert ended == {
        "status": 0,
        "signal": None,
        "oom": False,
        "cause": f"{went_on} process 5: exited normally",
        "kind": ExitKind.BACKGROUND,
    }
    assert background("exited", "running")["cause"] == f"{went_on} processes 5, 6: still running"
    assert "after SIGTERM, which was" in background("exited", asked="SIGTERM")["cause"]


def test_of_a_lost_daemon_no_status_is_known():
    lost = background("exited", "lost")
    assert lost["status"] is None
    assert "gone without a goodbye" in lost["cause"]
    killed = background("lost", oom=True, limit=100 * MIB)
    assert killed["oom"] is True
    assert "out of memory, with 90 MiB resident of a limit of 100 MiB" in killed["cause"]
    assert background("exited", oom=True)["oom"] is False


def test_of_many_processes_the_first_are_named():
    assert processes(range(1, 9)) == "processes 1, 2, 3, 4, 5 and 3 more"


def test_a_signal_without_a_name_has_a_number():
    assert signal_name(200) == "signal 200"


def test_an_unclosed_recording_says_so():
    assert "and processes 5, 6 of the program continue" in unclosed_record(1, None, [5, 6])["cause"]
    assert "cause unknown" in unclosed_record(10 * MIB, None)["cause"]
    assert "cause unknown" in unclosed_record(10 * MIB, 100 * MIB)["cause"]
    near = unclosed_record(99 * MIB, 100 * MIB)
    assert "probably out of memory" in near["cause"]
    assert near["kind"] is ExitKind.UNCLOSED


@pytest.mark.parametrize(
    ("code", "facts", "kind"),
    [
        (0, {}, ExitKind.ENDED),
        (3, {}, ExitKind.FAILED),
        (None, {}, ExitKind.GONE),
        (-signal.SIGTERM, {}, ExitKind.SIGNALLED),
        (-signal.SIGABRT, {}, ExitKind.CRASHED),
        (-signal.SIGKILL, {}, ExitKind.KILLED),
        (-signal.SIGKILL, {"limit": 91 * MIB}, ExitKind.NEAR_THE_LIMIT),
        (-signal.SIGKILL, {"oom": True, "limit": 91 * MIB}, ExitKind.OUT_OF_MEMORY),
    ],
)
def test_each_end_has_its_kind_and_the_signal_is_said_once(code, facts, kind):
    died = record(code, **facts)
    assert died["kind"] is kind
    assert ending(died).count(died["signal"] or "no signal") == (died["signal"] is not None)


EVENTS = "low 0\nhigh 3\nmax 40\noom 1\noom_kill {kills}\noom_group_kill 0\n"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n"


class Kernel:
    """A made-up cgroup that the kernel kills in."""

    def __init__(self, root, cgroup, folder, file, text):
        self.root, self._text = root, text
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/cgroup").write_text(cgroup)
        self.own = root / "sys/fs/cgroup" / folder
        self.own.mkdir(parents=True)
        self._name = file

    def killed(self, kills, folder=None):
        (folder or self.own).joinpath(self._name).write_text(self._text.format(kills=kills))


@pytest.fixture(params=["v2", "v2 in a container", "v1", "v1 in a container"])
def kernel(request, tmp_path):
    """Either version; in a container the own path is often not mounted."""
    version, inside = request.param[:2], "container" in request.param
    cgroup = "0::/app/one\n" if version == "v2" else "3:cpu:/\n4:memory:/app/one\n0::/\n"
    base = "" if version == "v2" else "memory"
    folder = base if inside else f"{base}/app/one".lstrip("/")
    names = ("memory.events", EVENTS) if version == "v2" else ("memory.oom_control", CONTROL)
    return Kernel(tmp_path, cgroup, folder, *names)


def test_the_kernels_count_is_read_of_either_version(kernel):
    assert oom_kills(kernel.root) is None
    kernel.killed(2)
    assert oom_kills(kernel.root) == 2


def death(kernel, code, kills=3, folder=None):
    """Let a recorder see an end, after the kernel has killed so often."""
    recorder = Recorder("app.py", kills=lambda: oom_kills(kernel.root))
    recorder.program(NOBODY)
    kernel.killed(kills, folder)
    recorder.ended(code)
    recorder.close()
    return recorder.state()["exit"]


def test_a_program_that_the_kernel_killed_died_for_lack_of_memory(kernel):
    kernel.killed(2)
    assert death(kernel, -signal.SIGKILL)["oom"] is True


def test_one_that_was_killed_while_the_kernel_killed_nobody_here_did_not(kernel):
    kernel.killed(3)
    ended = death(kernel, -signal.SIGKILL)
    assert (ended["oom"], ended["cause"]) == (False, "killed, cause unknown")


def test_one_that_failed_although_the_kernel_killed_a_worker_did_not(kernel):
    kernel.killed(2)
    ended = death(kernel, 1)
    assert (ended["oom"], ended["cause"]) == (False, "failed with status 1")


def test_where_the_kernel_does_not_count_nothing_is_made_up(kernel):
    ended = death(kernel, -signal.SIGKILL)  # the count comes with the first kill
    assert ended["oom"] is False


def test_a_stranger_that_the_kernel_killed_in_the_cgroup_above_was_not_us(tmp_path):
    kernel = Kernel(tmp_path, "0::/system/app\n", "system/app", "memory.events", EVENTS)
    kernel.killed(0)
    kernel.killed(7, kernel.own.parent)
    assert oom_kills(tmp_path) == 0
    ended = death(kernel, -signal.SIGKILL, 8, kernel.own.parent)
    assert (ended["oom"], ended["cause"]) == (False, "killed, cause unknown")


def test_ctrl_c_is_not_told_as_an_end_of_its_own_accord():
    assert record(0, typed="SIGINT")["cause"] == "exited normally, after Ctrl-C"
    assert record(130, typed="SIGINT")["cause"] == "failed with status 130, after Ctrl-C"
    assert record(-signal.SIGINT, typed="SIGINT")["cause"] == "ended by SIGINT (Ctrl-C)"
    assert record(-signal.SIGSEGV, typed="SIGINT")["cause"] == "crashed with SIGSEGV"
