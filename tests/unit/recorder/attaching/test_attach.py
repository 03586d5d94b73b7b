"""A sleeping probe is woken by its user, and by nobody else."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from floodline.errors import ConfigError
from floodline.recorder._attaching import attach as attaching
from floodline.recorder._attaching.attach import _folders, wake
from floodline.recorder._probe import dormant as dormant_module
from floodline.recorder._probe.dormant import Dormant, peer, socket_of
from floodline.recorder._probe.site import _floodline_arm as arming
from floodline.recorder._probe.site._floodline_arm import Arm
from floodline.recorder._proc import NoProbe, Seen
from floodline.recorder._runtime_folder import runtime_folder
from recorder_fakes import known_thread, no_descriptors

PATIENCE = 60.0
WHERE = "127.0.0.1:1:token"


@pytest.fixture
def folder():
    """A short path: the name of a socket has little room."""
    with tempfile.TemporaryDirectory(prefix="fl-") as name:
        Path(name).chmod(0o700)
        yield Path(name)


class Probe:
    """Runs until it is told that its time is over."""

    def __init__(self, where, seconds):
        self.where, self.seconds = where, seconds
        self.closed = self.abandoned = 0
        self.over = threading.Event()

    def run(self, nap):
        while not self.over.wait(0.01):
            if nap(0):
                return

    def close(self):
        self.closed += 1

    def abandon(self):
        self.abandoned += 1


class Sleeper:
    """A dormant probe on its thread, and the probes that it has made."""

    def __init__(self, folder):
        self.made = []
        self.woken = threading.Event()
        self.dormant = None
        self.ready = threading.Event()
        self.arm = Arm(lambda: self._dormant(folder), delay=0.0, eager=True)
        self.arm.begin()
        assert self.ready.wait(PATIENCE)

    def _dormant(self, folder):
        self.dormant = Dormant(folder, self._make)
        self.ready.set()
        return self.dormant

    def _make(self, where, seconds):
        self.made.append(Probe(where, seconds))
        self.woken.set()
        return self.made[-1]


@pytest.fixture(autouse=True)
def _threads(monkeypatch):
    monkeypatch.setattr(arming._thread, "start_new_thread", known_thread)
    for module in (attaching, dormant_module, arming):
        monkeypatch.setattr(module, "PATIENCE", PATIENCE)


@pytest.fixture
def sleeper(folder):
    sleeper = Sleeper(folder)
    yield sleeper
    sleeper.arm.last_words()


def test_an_exit_in_the_middle_of_a_watch_leaves_no_socket(sleeper):
    assert sleeper.dormant.file.exists()
    sleeper.dormant.leave()
    assert not sleeper.dormant.file.exists()


def test_a_sleeping_probe_is_woken_with_address_and_time(sleeper, folder):
    wake(os.getpid(), WHERE, 5.0, folder=folder)
    assert sleeper.woken.wait(PATIENCE)
    assert (sleeper.made[0].where, sleeper.made[0].seconds) == (WHERE, 5.0)


def test_it_is_told_if_only_what_is_in_memory_now_is_wanted(folder):
    asked, woken = [], threading.Event()

    def make(where, seconds, **more):
        asked.append((where, seconds, more))
        woken.set()
        return Probe(where, seconds)

    arm = Arm(lambda: Dormant(folder, make), delay=0.0, eager=True)
    arm.begin()
    while not list(folder.glob("probe-*.sock")):
        time.sleep(0.01)
    wake(os.getpid(), WHERE, 5.0, now=True, folder=folder)
    assert woken.wait(PATIENCE)
    arm.last_words()
    assert asked == [(WHERE, 5.0, {"now": True})]


def test_it_can_be_woken_again_after_its_time(sleeper, folder):
    for n in range(2):
        sleeper.woken.clear()
        wake(os.getpid(), WHERE, None, folder=folder)
        assert sleeper.woken.wait(PATIENCE)
        sleeper.made[n].over.set()
    assert len(sleeper.made) == 2


def test_one_that_is_watched_already_says_so_and_gives_no_wrong_advice(
    sleeper, folder, monkeypatch
):
    wake(os.getpid(), WHERE, None, folder=folder)
    assert sleeper.woken.wait(PATIENCE)
    monkeypatch.setattr(attaching, "PATIENCE", 0.05)
    with pytest.raises(ConfigError, match=r"did not answer.*another attach is watching it"):
        wake(os.getpid(), WHERE, None, folder=folder, remote_exec=None)
    sleeper.made[0].over.set()


def test_the_sockets_of_killed_processes_are_swept_away(folder):
    nobody = 2**22 + 1
    left = socket_of(nobody, folder)
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(left))
    elsewhere = socket_of(nobody + 1, folder)  # in another container, whose numbers are not ours
    others = [folder / "probe-x.sock", folder / "recorder-1.json"]
    for file in others:
        file.touch()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(elsewhere))
        listening.listen(1)
        dormant_module.sweep(folder)
        assert not left.exists()
        assert elsewhere.exists()
        for _ in range(4):  # until no more may wait
            dormant_module.sweep(folder)
            assert elsewhere.exists()
    assert all(file.exists() for file in others)


def test_only_its_user_can_open_the_socket(sleeper, folder):
    assert stat.S_IMODE(sleeper.dormant.file.stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="the system does not tell")
def test_another_user_is_refused_whatever_the_file_allows(sleeper, folder, monkeypatch):
    monkeypatch.setattr(dormant_module, "peer", lambda caller: os.getuid() + 12345)
    with pytest.raises(ConfigError, match="no probe that sleeps: the door is shut"):
        wake(os.getpid(), WHERE, 5.0, folder=folder, remote_exec=None, enter=shut)
    assert sleeper.made == []


@pytest.mark.parametrize(
    "request_",
    [b"nonsense\n", b'{"for": 5}\n', b'{"where": "10.0.0.1:1:t"}\n', b"[]\n", b"", b"x" * 9000],
)
def test_a_request_that_is_none_wakes_nobody(sleeper, folder, request_):
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE)
        line.connect(str(sleeper.dormant.file))
        line.sendall(request_)
        line.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):  # it need not read all of it
            assert line.recv(10) == b""
    assert sleeper.made == []


def test_the_thread_ends_before_a_fork_and_sleeps_again_after_it(sleeper, folder):
    sleeper.arm.before_fork()
    assert not sleeper.arm.running
    sleeper.arm.after_in_parent()
    wake(os.getpid(), WHERE, 5.0, folder=folder)
    assert sleeper.woken.wait(PATIENCE)


def test_a_fork_while_it_watches_continues_with_the_same_probe(sleeper, folder):
    wake(os.getpid(), WHERE, 5.0, folder=folder)
    assert sleeper.woken.wait(PATIENCE)
    sleeper.arm.before_fork()
    sleeper.arm.after_in_parent()
    assert len(sleeper.made) == 1


def test_at_the_exit_the_socket_goes_and_the_probe_says_goodbye(folder):
    sleeper = Sleeper(folder)
    wake(os.getpid(), WHERE, 5.0, folder=folder)
    assert sleeper.woken.wait(PATIENCE)
    sleeper.arm.last_words()
    assert list(folder.iterdir()) == []
    assert (sleeper.made[0].closed, sleeper.made[0].abandoned) == (1, 1)


def shut(pid, script):
    raise ConfigError("the door is shut")


def test_without_a_probe_the_process_is_entered_or_the_error_says_why_not(folder):
    entered = []
    wake(
        os.getpid(), WHERE, 5.0, now=True, folder=folder, remote_exec=None,
        enter=lambda *call: entered.append(call),
    )  # fmt: skip
    ((pid, script),) = entered
    assert pid == os.getpid()
    assert f"_floodline_arm.wake('{WHERE}', 5.0, True)" in script
    with pytest.raises(ConfigError, match="has no probe that sleeps: the door is shut"):
        wake(os.getpid(), WHERE, 5.0, folder=folder, remote_exec=None, enter=shut)


def test_an_old_python_is_not_entered(folder, monkeypatch):
    old = Seen(1, 0, "python3.9 app.py", NoProbe.OLD, "Python 3.9; the probe needs 3.11 or later")
    monkeypatch.setattr(attaching, "look", lambda *_: old)
    with pytest.raises(ConfigError, match=r"cannot be watched: Python 3\.9; the probe needs"):
        wake(os.getpid(), WHERE, 5.0, folder=folder, enter=shut)


def test_a_process_under_run_is_watched_already(folder, monkeypatch):
    monkeypatch.setattr(attaching, "environment_of", lambda pid: {"FLOODLINE_PROBE": WHERE})
    with pytest.raises(ConfigError, match="already watched by floodline run"):
        wake(os.getpid(), WHERE, 5.0, folder=folder)


def test_a_socket_that_a_killed_process_left_is_no_probe(folder):
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(socket_of(os.getpid(), folder)))
    with pytest.raises(ConfigError, match="no probe that sleeps"):
        wake(os.getpid(), WHERE, 5.0, folder=folder, remote_exec=None, enter=shut)


def test_a_process_of_another_user_is_told_as_such(folder, monkeypatch):
    other = os.getuid() + 12345
    monkeypatch.setattr(attaching, "owner_of", lambda pid: other)
    with pytest.raises(ConfigError, match=rf"belongs to user {other}, not \d+"):
        wake(os.getpid(), WHERE, 5.0, folder=folder, remote_exec=None, enter=shut)


def test_a_process_that_is_not_python_is_told(folder):
    sleeping = subprocess.Popen(["sleep", "600"])
    try:
        while not Path(f"/proc/{sleeping.pid}/cmdline").read_bytes():  # in the middle of its exec
            pass
        with pytest.raises(ConfigError, match=r"\(sleep 600\) is not a Python program"):
            wake(sleeping.pid, WHERE, 1, folder=folder, remote_exec=None, enter=shut)
    finally:
        sleeping.kill()
        sleeping.wait()


def test_one_that_should_have_a_probe_and_has_none_is_told_what_is_missing(folder, monkeypatch):
    told = {"FLOODLINE_PROBE": "dormant"}
    monkeypatch.setattr(attaching, "environment_of", lambda pid: told)
    with pytest.raises(ConfigError, match=r"=dormant \(is floodline installed there\?.*is shut"):
        wake(os.getpid(), WHERE, 1, folder=folder, remote_exec=None, enter=shut)


def test_a_process_that_does_not_exist_is_told():
    with pytest.raises(ConfigError, match="no process 4194311"):
        wake(2**22 + 7, WHERE, 5.0)


@pytest.fixture
def later(monkeypatch):
    monkeypatch.setattr(attaching, "python_of", lambda pid: 14)


def test_a_later_python_needs_no_preparation(folder, tmp_path, later):
    """What would be run in the process is run here: it arms a probe of its own at once."""
    entered = []
    wake(os.getpid(), WHERE, 5.0, folder=folder, remote_exec=lambda *call: entered.append(call))
    ((pid, script),) = entered
    assert pid == os.getpid()
    text = Path(script).read_text(encoding="utf-8")
    Path(script).unlink()
    check = text.replace("_floodline_arm.wake(", "print(")
    run = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert run.stdout == f"{WHERE} 5.0 False\n"


def test_a_later_python_that_refuses_is_told(folder, later):
    def refused(pid, script):
        raise PermissionError("operation not permitted")

    with pytest.raises(ConfigError, match="not permitted"):
        wake(os.getpid(), WHERE, 5.0, folder=folder, remote_exec=refused)


def test_the_socket_is_looked_for_where_the_environment_of_the_process_says(monkeypatch):
    environ = {"XDG_RUNTIME_DIR": "/run/other", "TMPDIR": "/var/tmp"}
    monkeypatch.setattr(attaching, "environment_of", lambda pid: environ)
    folders = _folders(5)
    assert Path("/run/other/floodline") in folders
    assert Path(f"/var/tmp/floodline-{os.getuid()}") in folders
    assert folders[0] == runtime_folder()
    monkeypatch.setattr(attaching, "environment_of", lambda pid: None)
    assert len(_folders(5)) < len(folders)


def test_without_a_temporary_folder_the_others_are_looked_at(monkeypatch, tmp_path):
    def none():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "gettempdir", none)
        assert tmp_path / "floodline" in _folders(os.getpid())


def test_where_the_system_tells_no_user_the_folder_must_do(monkeypatch):
    monkeypatch.delattr(socket, "SO_PEERCRED", raising=False)
    assert peer(None) is None


def test_the_engine_is_imported_only_when_it_is_wanted(folder):
    code = (
        "import sys; from floodline.recorder._probe.dormant import Dormant, make_probe; "
        "from pathlib import Path; "
        f"dormant = Dormant(Path({str(folder)!r})); "
        "print('floodline.leaks' in sys.modules); "
        "make_probe('h:1:t', 1.0); print('floodline.leaks' in sys.modules); dormant.close()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]
    assert dormant_module.make_probe("h:1:t", 1.0) is not None


def test_a_process_that_cannot_be_attached_to_says_so(capsys):
    dormant_module._cannot(OSError("read-only file system"))
    assert "read-only" in capsys.readouterr().err


def test_the_answer_names_the_python(sleeper, folder):
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE)
        line.connect(str(sleeper.dormant.file))
        line.sendall(json.dumps({"where": WHERE}).encode() + b"\n")
        assert json.loads(line.recv(1000))["python"] == sys.version.split()[0]


def test_a_request_that_makes_no_sense_ends_nothing(sleeper, folder):
    for request in ({"where": WHERE, "seconds": "soon"}, [WHERE], {"where": WHERE, "seconds": []}):
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(PATIENCE)
            line.connect(str(sleeper.dormant.file))
            line.sendall(json.dumps(request).encode() + b"\n")
            assert line.recv(1000) == b""
    wake(os.getpid(), WHERE, 1.0, folder=folder)
    assert sleeper.woken.wait(PATIENCE)


def test_without_a_descriptor_a_sleeping_probe_waits_and_does_not_spin(folder):
    naps = []
    dormant = Dormant(folder)
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(dormant.file))
            with no_descriptors():
                dormant.run(lambda seconds: naps.append(seconds) or len(naps) > 2)
        assert naps == [0, dormant_module.PAUSE, 0]
    finally:
        dormant.close()
