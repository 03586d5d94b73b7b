"""Starting the program, passing signals on, ending as it ended."""

from __future__ import annotations

import os
import signal
import sys
from types import SimpleNamespace

import pytest

from floodline.errors import ConfigError
from floodline.recorder._processes import program as program_module
from floodline.recorder._processes.program import Program, end_as, hold_signals, next_signal

PATIENCE = 100.0


@pytest.fixture
def mask():
    mask = hold_signals()
    yield mask
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@pytest.fixture
def start(mask):
    programs = []

    def start(code):
        programs.append(Program([sys.executable, "-c", code], dict(os.environ), mask))
        return programs[-1]

    yield start
    for program in programs:
        assert program.wait(PATIENCE)
        program.finish()
        program.finish()  # twice is harmless


def test_a_signal_that_a_program_took_as_a_wish_is_remembered(start, tmp_path):
    ready = tmp_path / "ready"
    program = start(
        "import pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: exit(3))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "while True:\n"
        "    time.sleep(0.05)\n"  # a signal just before a sleep does not shorten it
    )
    while not ready.exists():
        assert not program.wait(0.01)
    assert program.asked is None
    program.pass_on(signal.SIGTERM, False)
    assert program.wait(PATIENCE)
    assert (program.code, program.asked) == (3, "SIGTERM")


def test_ctrl_c_is_remembered_though_the_terminal_has_sent_it_to_the_program_itself(start):
    program = start("import time; time.sleep(600)")
    assert program.typed is None
    assert not program.pass_on(signal.SIGWINCH, True)
    assert program.typed is None
    assert not program.pass_on(signal.SIGINT, True)
    assert (program.typed, program.asked) == ("SIGINT", None)
    os.kill(program.pid, signal.SIGKILL)


def test_the_exit_status_is_that_of_the_program(start):
    program = start("raise SystemExit(7)")
    assert program.wait(PATIENCE)
    assert program.code == 7
    assert not program.asked


def test_the_most_that_a_program_took_is_told_if_it_is_more_than_what_we_lent_it(
    start, monkeypatch
):
    for ours, told in ((1, True), (1 << 40, False)):
        monkeypatch.setattr(program_module, "_most_resident", lambda ours=ours: ours)
        program = start("")
        assert program.wait(PATIENCE)
        assert (program.peak > 1 << 20) is told
    monkeypatch.undo()
    assert program_module._most_resident() > 1000


def test_the_program_has_the_signals_of_before_and_not_those_that_python_ignores(start):
    code = (
        "import signal; "
        "ok = not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & {signal.SIGTERM, signal.SIGINT}; "
        "raise SystemExit(3 if ok else 4)"
    )
    program = start(code)
    assert program.wait(PATIENCE)
    assert program.code == 3


def test_what_cannot_be_started_is_an_error(mask, tmp_path):
    with pytest.raises(ConfigError, match="cannot be run"):
        Program([str(tmp_path)], {}, mask)


def test_a_signal_of_a_process_is_passed_on_and_one_of_the_terminal_is_not(start, monkeypatch):
    sent = []
    program = start("import time; time.sleep(600)")
    kill = os.kill
    monkeypatch.setattr(program_module.os, "kill", lambda *call: (sent.append(call), kill(*call)))
    assert program.pass_on(signal.SIGINT, True) is False
    assert program.pass_on(signal.SIGTERM, False) is True
    assert program.wait(PATIENCE)
    assert sent == [(program.pid, signal.SIGTERM)]
    assert (program.code, program.asked) == (-signal.SIGTERM, "SIGTERM")
    assert program.pass_on(signal.SIGTERM, False) is False


@pytest.mark.parametrize(("code", "terminal"), [(128, True), (0, False), (-6, False)])
def test_the_system_tells_who_has_sent_a_signal(monkeypatch, code, terminal):
    info = SimpleNamespace(si_signo=signal.SIGINT, si_code=code)
    monkeypatch.setattr(signal, "sigwaitinfo", lambda signals: info, raising=False)
    assert next_signal() == (signal.SIGINT, terminal)


@pytest.mark.parametrize(("number", "terminal"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_where_it_does_not_tell_keys_are_of_the_terminal(monkeypatch, number, terminal):
    monkeypatch.delattr(signal, "sigwaitinfo", raising=False)
    monkeypatch.setattr(signal, "sigwait", lambda signals: number)
    assert next_signal() == (number, terminal)


def test_a_system_without_such_signals_is_told(monkeypatch):
    monkeypatch.delattr(signal, "pthread_sigmask")
    with pytest.raises(ConfigError, match="Linux and macOS"):
        hold_signals()


def test_after_the_end_a_signal_goes_to_those_who_remain(start, monkeypatch):
    program = start("")
    assert program.wait(PATIENCE)
    sent = []

    def kill(pid, number):
        if pid == 7:
            raise ProcessLookupError
        sent.append((pid, number))

    with monkeypatch.context() as patch:
        patch.setattr(program_module.os, "kill", kill)
        program.leave_to(lambda number: [7, 8, number])
        assert program.pass_on(signal.SIGTERM, False) is True
        program.leave_to(lambda number: [7])
        assert program.pass_on(signal.SIGHUP, False) is False
        assert not program.stopped.is_set()
        assert program.pass_on(signal.SIGINT, True) is False
        assert program.stopped.is_set()
        program.stopped.clear()
        assert program.pass_on(signal.SIGTERM, False) is False  # nobody is there: we are meant
    assert sent == [(8, signal.SIGTERM), (15, signal.SIGTERM)]
    assert program.stopped.is_set()
    assert not program.asked


def test_a_wish_for_the_end_is_kept_until_it_is_known_whether_somebody_remains(start):
    program = start("")
    assert program.wait(PATIENCE)
    assert program.pass_on(signal.SIGHUP, False) is False
    assert not program.stopped.is_set()
    assert program.pass_on(signal.SIGTERM, False) is False
    assert program.stopped.is_set()


def test_as_process_1_everybody_is_reaped(monkeypatch):
    """Orphans of a container end too; they are taken note of by nobody but the kernel."""
    used = SimpleNamespace(ru_maxrss=1000)
    ends = iter([(99, 0, used), (5, 256, used), (98, 0, used)])
    asked = []

    def wait4(pid, _):
        asked.append(pid)
        if (end := next(ends, None)) is None:
            raise ChildProcessError
        return end

    monkeypatch.setattr(program_module.os, "getpid", lambda: 1)
    monkeypatch.setattr(program_module.os, "wait4", wait4)
    program = Program.__new__(Program)
    program.pid, program.code, program._ours = 5, None, 999
    program._ended = program_module.threading.Event()
    program._wait()
    assert asked == [-1, -1, -1, -1]
    assert (program.code, program.peak) == (1, 1000 * program_module.KIB)
    assert program._ended.is_set()


def test_a_stream_that_we_were_started_without_is_closed_for_the_program_too(start, monkeypatch):
    monkeypatch.setattr(sys, "__stdout__", None)
    program = start("import sys; raise SystemExit(7 if sys.stdout is None else 8)")
    assert program.wait(PATIENCE)
    assert program.code == 7


def test_we_end_by_a_signal_also_without_streams(monkeypatch):
    killed = []
    monkeypatch.setattr(program_module, "_no_core", lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert end_as(-signal.SIGKILL, kill=lambda *call: killed.append(call)) == 128 + 9
    assert killed == [(os.getpid(), signal.SIGKILL)]


def test_we_end_as_the_program_did(monkeypatch):
    done = []
    monkeypatch.setattr(program_module.signal, "signal", lambda *call: done.append(call))
    monkeypatch.setattr(program_module, "_no_core", lambda: None)
    killed = []
    assert end_as(5) == 5
    assert end_as(-signal.SIGSEGV, kill=lambda *call: killed.append(call)) == 128 + 11
    assert killed == [(os.getpid(), signal.SIGSEGV)]
    assert done == [(signal.SIGSEGV, signal.SIG_DFL)]
    end_as(-signal.SIGKILL, kill=lambda *call: killed.append(call))
    assert len(done) == 1  # what happens at SIGKILL cannot be set
    assert killed[-1] == (os.getpid(), signal.SIGKILL)


def test_no_second_core_is_dumped():
    import resource

    before = resource.getrlimit(resource.RLIMIT_CORE)
    program_module._no_core()
    assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
    resource.setrlimit(resource.RLIMIT_CORE, before)
