"""The watched program: one child that gets our signals and whose end becomes ours."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping

from floodline.errors import ConfigError
from floodline.recorder._exit_cause import signal_name

FROM_KEYS = frozenset(
    getattr(signal, name, 0) for name in ("SIGINT", "SIGQUIT", "SIGWINCH", "SIGTTIN", "SIGTTOU")
)
STOPS = frozenset({signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGQUIT", signal.SIGTERM)})
FROM_KERNEL = 1  # si_code from here on: not sent by a process, but for example by the terminal
PATIENCE = 5.0
KIB = 1 if sys.platform == "darwin" else 1024  # the unit of `ru_maxrss`
# what a service manager, a container or a person may send; others are for us alone
PASSED_ON = frozenset(
    getattr(signal, name)
    for name in (
        "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGTTIN",
        "SIGTTOU",
    )
    if hasattr(signal, name)
)  # fmt: skip


def hold_signals() -> set[int]:
    """Block what will be passed on, before any thread exists; return the previous mask."""
    if not hasattr(signal, "pthread_sigmask"):
        raise ConfigError(f"floodline run works on Linux and macOS, not on {sys.platform} yet")
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON))


class Program:
    """The watched program: one child process that keeps our terminal, files and process group.

    `mask` is what `hold_signals` returned: only our waiting thread may receive signals.
    """

    def __init__(self, words: list[str], environ: Mapping[str, str], mask: set[int]) -> None:
        self._asked: set[int] = set()
        self._typed: set[int] = set()
        self._ended, self._over = threading.Event(), threading.Event()
        self._heirs: Callable[[int], list[int]] | None = None
        self.stopped = threading.Event()  # the program or we were asked to end
        self.code: int | None = None
        self.peak = 0  # peak resident bytes of the program or of a child it waited for
        self._ours = 1.1 * _most_resident()
        try:
            self.pid = os.posix_spawn(
                words[0], words, dict(environ), setsigmask=mask,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores these by default
                file_actions=[(os.POSIX_SPAWN_CLOSE, number) for number in _closed()],
            )  # fmt: skip
        except OSError as error:
            raise ConfigError(f"{words[0]} cannot be run: {error}") from error
        self._signals = threading.Thread(
            target=self._pass_on, name="floodline-signals", daemon=True
        )
        self._signals.start()
        threading.Thread(target=self._wait, name="floodline-wait", daemon=True).start()

    @property
    def asked(self) -> str | None:
        """The signal we passed on to end it, if any; preferably the one it died of."""
        if self.code is not None and -self.code in self._asked:
            return signal_name(-self.code)
        return next((signal_name(number) for number in STOPS & self._asked), None)

    @property
    def typed(self) -> str | None:
        """The signal that the terminal sent it and us, if any: Ctrl-C is not passed on."""
        return next((signal_name(number) for number in self._typed), None)

    def wait(self, timeout: float) -> bool:
        """Wait for the end; return True if it has come."""
        return self._ended.wait(timeout)

    def leave_to(self, heirs: Callable[[int], list[int]]) -> None:
        """After the end: pass a signal on to the processes that `heirs(number)` returns."""
        self._heirs = heirs

    def finish(self) -> None:
        """Stop passing signals on."""
        self._over.set()
        if self._signals.is_alive():
            signal.pthread_kill(self._signals.ident or 0, signal.SIGUSR1)  # it waits for one
            self._signals.join(PATIENCE)

    def _wait(self) -> None:
        everybody = os.getpid() == 1  # in a container, orphans become ours and must be reaped
        while everybody or not self._ended.is_set():
            try:
                pid, status, used = os.wait4(-1 if everybody else self.pid, 0)
            except ChildProcessError:  # the last of them
                return
            if pid == self.pid:
                self.code = os.waitstatus_to_exitcode(status)
                # before exec it shared our memory, which the kernel counts as its own
                self.peak = used.ru_maxrss * KIB if used.ru_maxrss > self._ours else 0
                self._ended.set()

    def _pass_on(self) -> None:
        while not self._over.is_set():
            self.pass_on(*next_signal())

    def pass_on(self, number: int, from_terminal: bool) -> bool:
        """Pass a signal on, unless the terminal has sent it to the program as well.

        After the end of the program its heirs get it; one from a terminal they left stops us.
        """
        if self._over.is_set():
            return False
        if number in STOPS and (self._heirs is None or from_terminal):
            self.stopped.set()
        if from_terminal:
            if number in STOPS and not self._ended.is_set():
                self._typed.add(number)
            return False
        if self._ended.is_set():
            heirs = [] if self._heirs is None else self._heirs(number)
            reached = [pid for pid in heirs if _sent(pid, number)]
            if number in STOPS and not reached:
                self.stopped.set()  # then we are meant
            return bool(reached)
        self._asked.add(number)
        return _sent(self.pid, number)


def _most_resident() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _sent(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it ended first
        return False
    return True


def _closed() -> list[int]:
    """Return the standard streams we were started without; SQLite reuses their numbers."""
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return [number for number, stream in enumerate(streams) if stream is None]


def next_signal() -> tuple[int, bool]:
    """Wait for a signal; return it, and whether the terminal has sent it.

    If the system does not say who sent it (macOS), a signal that a terminal can send counts as
    sent by it.
    """
    if hasattr(signal, "sigwaitinfo"):
        info = signal.sigwaitinfo(PASSED_ON)
        return info.si_signo, info.si_code >= FROM_KERNEL
    number = signal.sigwait(PASSED_ON)
    return number, number in FROM_KEYS


def end_as(code: int, *, kill: Callable[[int, int], object] = os.kill) -> int:
    """End by the signal that the program died of, or return its status."""
    if code >= 0:
        return code
    number = -code
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    _no_core()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    kill(os.getpid(), number)
    return 128 + number  # process 1 of a container cannot be killed from inside


def _no_core() -> None:
    """Write no core dump: the program left its own, and ours would hide it."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
