"""Several workers on one socket: forked before anything is opened, replaced when they die."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from floodline._service._app import make_board
from floodline._service._metrics import Board
from floodline.errors import FloodlineError
from floodline.web._serving.options import Options
from floodline.web._serving.worker import serve_here

WATCHED = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM}
CANNOT_START = 3
SHORT_LIFE = 1.0
MOST_SHORT_LIVES = 5
LATE = 2.0  # seconds beyond grace and drain before a worker is killed

Say = Callable[[str], None]


@dataclass(slots=True, frozen=True)
class _Worker:
    number: int
    since: float


class Supervisor:
    """Starts workers and waits for signals; it serves nothing itself."""

    def __init__(self, options: Options, sock: socket.socket, say: Say) -> None:
        self._options, self._sock, self._say = options, sock, say
        self._board: Board = make_board(options.tenants, options.workers)
        self._workers: dict[int, _Worker] = {}
        self._ending = False
        self._short_lives = 0
        self._status = 0

    def run(self) -> int:
        """Supervise until told to end; return the exit status."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        try:
            for number in range(self._options.workers):
                self._start(number)
            while self._workers:
                self._heed(signal.sigwait(WATCHED))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return self._status

    def _start(self, number: int) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self._workers[pid] = _Worker(number, time.monotonic())
            return
        status = CANNOT_START
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
            self._board.take_row(number)
            status = serve_here(self._options, self._sock, self._board, parent=parent)
        except FloodlineError as error:
            print(f"floodline: {error}", file=sys.stderr)  # noqa: T201 - there is no caller left
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _heed(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._reap()
        elif number == signal.SIGALRM:
            self._tell_all(signal.SIGKILL)
        else:
            self._end()

    def _end(self) -> None:
        if not self._ending:
            limits = self._options.limits
            # all steps of a worker: not ready, requests in progress, saving
            patience = limits.drain + 2 * limits.grace + LATE
            signal.setitimer(signal.ITIMER_REAL, patience)
        self._ending = True
        self._tell_all(signal.SIGTERM)

    def _tell_all(self, number: int) -> None:
        for pid in self._workers:
            os.kill(pid, number)

    def _reap(self) -> None:
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            worker = self._workers.pop(pid, None)
            if worker is not None:
                self._replace(worker, pid, os.waitstatus_to_exitcode(status))

    def _replace(self, worker: _Worker, pid: int, code: int) -> None:
        self._board.clear_gauges(worker.number)
        if self._ending:
            # one that had only begun dies of the signal, with nothing to save
            self._status = self._status or int(code not in (0, -signal.SIGTERM))
            return
        short = time.monotonic() - worker.since < SHORT_LIFE
        self._short_lives = self._short_lives + 1 if short else 0
        if code == CANNOT_START or self._short_lives >= MOST_SHORT_LIVES:
            self._say(f"worker {pid} cannot start (status {code}); shutting down")
            self._status = 2
            self._end()
            return
        self._say(f"worker {pid} ended with status {code}; starting another")
        self._start(worker.number)
