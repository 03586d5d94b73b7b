from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from floodline.stores import _owner, new_owner, owner_is_dead


def parts(owner: str) -> dict[str, str]:
    names = ("machine", "boot", "namespace", "pid", "start", "nonce")
    return dict(zip(names, owner.rpartition(" fl1:")[2].split(":"), strict=True))


def owner(**changes: str) -> str:
    return "x fl1:" + ":".join((parts(new_owner("x")) | changes).values())


@pytest.fixture
def gone() -> str:
    """The pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return str(process.pid)


def test_no_two_owners_are_the_same() -> None:
    assert len({new_owner("a") for _ in range(100)}) == 100
    assert new_owner("my sessions").startswith("my sessions fl1:")


def test_a_name_imports_nothing_while_others_may_fork() -> None:
    program = """if True:
        import sys
        from floodline.stores import new_owner, owner_is_dead
        known = set(sys.modules)
        assert not owner_is_dead(new_owner("a"))
        print(sorted(set(sys.modules) - known))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_an_owner_of_this_process_lives() -> None:
    assert not owner_is_dead(new_owner("any: label \n with fl1: inside"))


def test_an_owner_whose_process_is_gone_is_dead(gone: str) -> None:
    assert owner_is_dead(owner(pid=gone))


def test_a_pid_that_another_process_has_now_is_dead() -> None:
    assert owner_is_dead(owner(pid=str(os.getppid()), start="1"))
    assert owner_is_dead(owner(start="1"))


def test_a_living_process_is_not_dead() -> None:
    start = _owner._start_of(os.getppid())
    assert start
    assert not owner_is_dead(owner(pid=str(os.getppid()), start=start))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no zombies")
def test_a_zombie_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert owner_is_dead(owner(pid=str(process.pid)))
    process.wait()


@pytest.mark.parametrize("name", ["", "somebody", "a:b:c", "x fl1:1:2", "x fl2:a:b:1:2:3:4"])
def test_a_foreign_form_of_name_is_never_dead(name: str) -> None:
    assert not owner_is_dead(name)


def test_nothing_is_said_of_another_pid_namespace(gone: str) -> None:
    assert not owner_is_dead(owner(pid=gone, namespace="123"))


def test_another_boot_of_this_machine_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_owner, "_machine", lambda: "abc")
    mine = owner(boot="0000-1111")
    assert owner_is_dead(mine)
    monkeypatch.setattr(_owner, "_machine", lambda: "def")
    assert not owner_is_dead(mine), "another machine may share the file"
    monkeypatch.setattr(_owner, "_machine", lambda: "")
    assert not owner_is_dead(owner(boot="0000-1111")), "it cannot be told which machine it was"


def test_nothing_is_said_without_a_start_time(gone: str) -> None:
    assert not owner_is_dead(owner(pid=gone, start=""))


def test_a_process_that_cannot_be_looked_at_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    other = owner(pid=str(os.getppid()), start="1")
    monkeypatch.setattr(_owner, "_start_of", lambda pid: None)
    assert not owner_is_dead(other)


def test_systems_without_proc_ask_psutil(monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    monkeypatch.setattr(_owner, "_LINUX", False)
    _owner._machine.cache_clear()
    mine = new_owner("x")
    assert parts(mine)["boot"] == parts(mine)["namespace"] == ""
    assert parts(mine)["machine"]
    assert not owner_is_dead(mine)
    assert owner_is_dead(owner(pid=gone))
    assert owner_is_dead(owner(start="1"))
    assert not owner_is_dead(owner(pid=gone, machine="abc"))
    assert _owner._start_of(int(gone)) is None
    monkeypatch.setattr(psutil.Process, "status", lambda self: psutil.STATUS_ZOMBIE)
    assert _owner._start_of(os.getpid()) == ""
    _owner._machine.cache_clear()


def test_a_main_thread_that_ended_is_not_a_dead_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stat(state: str, threads: int) -> Any:
        fields = [state, *("0" * 16), str(threads), "0", "4711"]
        return lambda path: f"12 (odd) name)) {' '.join(fields)}".encode()

    monkeypatch.setattr(Path, "read_bytes", stat("Z", 3))
    assert _owner._start_in_proc(12) == "4711"
    monkeypatch.setattr(Path, "read_bytes", stat("Z", 1))
    assert _owner._start_in_proc(12) == ""
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"nonsense")
    assert _owner._start_in_proc(12) is None


def test_a_system_that_tells_nothing_gets_empty_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise OSError

    monkeypatch.setattr(Path, "stat", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    _owner._machine.cache_clear()
    assert _owner._here() == _owner._Place("", "", "")
    _owner._machine.cache_clear()
