"""The recorder: listens to the probes, looks from outside, and writes a snapshot each tick."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodline import __version__, memory
from floodline._units import format_size
from floodline.recorder import _proc
from floodline.recorder._answers.merged_answer import Answered, History, doubted, merge_suspects
from floodline.recorder._descriptors import STARVED, Spare, descriptor_limit
from floodline.recorder._exit_cause import (
    WENT_ON,
    background_record,
    ending,
    exit_record,
    oom_kills,
    processes,
    signal_name,
)
from floodline.recorder._probe.messages import Shed, read_message
from floodline.recorder._probe_server import Intake
from floodline.recorder._processes.fleet import TOTAL, Fleet
from floodline.recorder._processes.process_tree import Family
from floodline.recorder._recording.journal import Journal, legible
from floodline.recorder._recording.replay import boot_id
from floodline.recorder._recording.series import Points, crosses_in
from floodline.recorder._recording.ticks import Tape
from floodline.recorder._snapshot import EventKind, Exit, RecorderState, Snapshot
from floodline.telemetry import describe

CLEARED = 0.95  # share of the line below which a crossing is over
MOMENT = 0.1  # seconds between two looks at what may be ending


class Recorder:
    """Watches the processes of one run; `file=None` keeps it in memory only.

    Whatever waits for the program calls `tick()` about once per second. Everything else may be
    called from any thread. `state()` is the newest snapshot, `version` its number.
    """

    def __init__(
        self,
        command: str,
        *,
        file: Path | None = None,
        line: int | None = None,
        clock: Callable[[], float] = time.time,
        kills: Callable[[], int | None] = oom_kills,
    ) -> None:
        self._command, self._line = legible(command), line
        self._clock, self._kills = clock, kills
        self._started = clock()
        self._changed = threading.Condition()
        self._journal = Journal()
        self._fleet = Fleet(self._journal)
        self._total = Points(TOTAL)
        self._theirs, self._history = Points(TOTAL), History()  # without what our probes take
        self._above = False
        self._exit: Exit | None = None
        self._left_at: float | None = None  # when the program ended before its other processes
        self._errors: list[str] = []
        self._kills_before = self._kills_told = kills()
        self._limit = _cgroup_limit()
        self._boot = boot_id()
        self._spare = Spare()
        self._tape = Tape(file, clock)
        self._intake = Intake(self, os.urandom(16).hex(), gate=self._spare.gate)
        self._family = Family(self._fleet, self._intake.address)
        self.version = 0
        self._state = self._snapshot(closed=False)

    @property
    def address(self) -> str:
        """Where a probe reports to: `HOST:PORT:TOKEN`."""
        return self._intake.address

    @property
    def unwritten(self) -> str | None:
        """Why the newest tick is not on disk."""
        return self._tape.unwritten

    # ---- what the probes say

    def heard(self, pid: int, line: dict[str, Any]) -> None:
        """Accept a message of a probe; on the thread of the intake."""
        now = self._clock()
        message = read_message(line, now)
        with self._changed:
            if message is None:
                return
            if message["kind"] == "hello":
                self._fleet.hello(pid, message, now)
            elif message["kind"] == "tick":
                self._fleet.sample(pid, message, now)
            else:
                self._fleet.goodbye(pid)

    def hung_up(self, pid: int) -> None:
        """Record the end of a connection; on the thread of the intake."""
        with self._changed:
            self._fleet.hung_up(pid)
            self._changed.notify_all()

    def starved(self) -> None:
        """Note that a probe has to wait for a descriptor; on the thread of the intake."""
        with self._changed:
            self._journal.add(
                self._clock(), None, EventKind.RECORDING_ERROR,
                f"the recorder has used up its {descriptor_limit()} file descriptors, and new "
                "probes wait until one is free; raise the limit with ulimit -n",
            )  # fmt: skip

    # ---- the program

    def record_to(self, file: Path) -> None:
        """Record to this file from now on; for a recorder created without one."""
        with self._changed:
            self._tape = Tape(file, self._clock)

    def program(self, pid: int) -> None:
        """Record the process of the program itself."""
        with self._changed:
            self._fleet.start(pid, self._command, self._clock(), main=True)
            self._journal.add(self._clock(), pid, EventKind.PROGRAM_STARTED, self._command)

    def outlived(self, code: int, *, patience: float = 1.0) -> list[int]:
        """Record the end of a program whose processes continue, as a daemon's do; return them.

        If there are none, nothing is recorded. Workers and helpers may only need a moment longer.
        """
        self._hear_out(patience)
        until = time.monotonic() + patience
        while self._outlives() and time.monotonic() < until:
            self.wait_for_news(MOMENT)
        with self._changed:
            now, main = self._clock(), self._fleet.main
            self._look(now)  # the first of two forks is gone by now
            left = self._family.remaining() if self._fleet.went_on else []
            if left and main is not None:
                self._left_at = now
                record = exit_record(code, oom=False, last=self._total.last, limit=None)
                self._fleet.end(main, record, now)
                text = f"{ending(record)}, and {WENT_ON} {processes(left)}"
                self._journal.add(now, main, EventKind.PROGRAM_ENDED, text)
            return left

    def _outlives(self) -> bool:
        with self._changed:
            return self._family.outlives(self._clock())

    def _dead(self) -> bool:
        """Look; return True if a process has ended whose last words may still arrive."""
        with self._changed:
            self._look(self._clock())
            return not all(map(_proc.alive, self._fleet.running))

    def remaining(self) -> list[int]:
        """Return the processes of an ended program that are still running."""
        with self._changed:
            return self._family.left(self._clock())

    def stopping(self) -> None:
        """Record that the program was asked to end: what ends from now on is not lost."""
        with self._changed:
            self._fleet.stopping = True

    def pass_on(self, number: int) -> list[int]:
        """Record that a signal is passed on to what remains; return the processes it is for."""
        with self._changed:
            heads = self._family.heads()
            name = signal_name(number)
            if heads and name in ("SIGTERM", "SIGINT"):  # on SIGHUP daemons reload their settings
                self._fleet.asked = name
            return heads

    def ended(
        self,
        code: int | None,
        *,
        asked: str | None = None,
        typed: str | None = None,
        peak: float = 0.0,
        patience: float = 1.0,
    ) -> None:
        """Record how the program ended: an exit status, or a signal as a negative number.

        `asked` is a signal passed on before, `typed` one from the terminal, `peak` the kernel's
        figure for its peak memory, which includes the time between two of our looks.
        """
        self._hear_out(patience)
        until = time.monotonic() + patience
        while self._left_at is not None and self._dead() and time.monotonic() < until:
            self.wait_for_news(MOMENT)
        kills = self._kills()
        oom = None not in (kills, self._kills_before) and (kills or 0) > (self._kills_before or 0)
        with self._changed:
            now, main = self._clock(), self._fleet.running.get(self._fleet.main or -1)
            self._total.peak = max(self._total.peak, peak)
            if main is not None and not self._fleet.ended and len(self._fleet.running) == 1:
                main.points.peak = max(main.points.peak, peak)
            last = max(main.points.last if main else 0.0, self._total.last, peak if oom else 0.0)
            limit = self._fleet.limit() or self._limit
            if self._left_at is None:
                self._exit = exit_record(
                    code, oom=oom, last=last, limit=limit, asked=asked, typed=typed
                )
            else:
                those = self._fleet.after(self._left_at)
                self._exit = background_record(
                    those, oom=oom, last=last, limit=limit, asked=self._fleet.asked
                )
            self._journal.add(now, self._fleet.main, EventKind.PROGRAM_ENDED, ending(self._exit))
            if main is not None:
                self._fleet.end(main.pid, self._exit, now, asked=asked or typed)
            for one in filter(lambda one: _proc.alive(one.pid), self._fleet.running.values()):
                self._journal.add(now, one.pid, EventKind.LEFT_RUNNING, one.command)

    def _hear_out(self, patience: float) -> None:
        """Wait until everything the program's probe has sent is read: its connection then ends."""
        until = time.monotonic() + patience
        with self._changed:
            while (left := until - time.monotonic()) > 0:
                main = self._fleet.running.get(self._fleet.main or -1)
                if main is None or not main.connected:
                    return
                self._changed.wait(left)

    # ---- ticking

    def tick(self, *, closed: bool = False) -> None:
        """Look, write, and wake waiting readers; what fails is reported and retried."""
        with self._changed, self._spare:
            now = self._clock()
            try:
                self._look(now)
                self._draw_line(now)
                self._state = self._snapshot(closed=closed)
            except Exception as error:  # the program must not suffer from what we cannot read
                self._fail(f"a tick failed: {describe(error)}")
                self._state = {**self._state, "closed": closed, "errors": list(self._errors)}
            series = [self._total, *(one.points for one in self._fleet.all())]
            if not self._tape.put(self._state, series, self._journal):
                self._fail(self._tape.unwritten or "")
            self.version += 1
            self._changed.notify_all()

    def _look(self, now: float) -> None:
        running = list(self._fleet.running)
        for pid in running:
            try:
                rss = _proc.resident(pid) if _proc.alive(pid) else None
            except OSError as error:
                if error.errno not in STARVED:
                    raise
                continue  # its last figure stands: that we cannot look is no sign of its end
            self._fleet.measured(pid, rss, now)
        if len(self._fleet.running) < len(running):
            self._tell_kills(now)
        if self._fleet.running:
            self._total.add(now, self._fleet.resident())
            self._theirs.add(now, self._fleet.resident() - self._fleet.own_bytes())
        self._family.look(now)

    def _tell_kills(self, now: float) -> None:
        """Report kernel kills: only a worker's master learns the signal."""
        kills = self._kills()
        if kills is not None and self._kills_told is not None and kills > self._kills_told:
            more, self._kills_told = kills - self._kills_told, kills
            many = "1 process" if more == 1 else f"{more} processes"
            text = f"the kernel killed {many} in this cgroup: out of memory"
            self._journal.add(now, None, EventKind.OOM_KILL, text)

    def _draw_line(self, now: float) -> None:
        if self._line is None or not self._fleet.running:  # the end is not a clearing
            return
        used = self._total.last
        if used >= self._line:
            if not self._above:
                over = f"{format_size(used)} is above the line of {format_size(self._line)}"
                self._journal.add(now, None, EventKind.LINE_CROSSED, over)
            self._above = True
            wish: Shed = {"do": "shed", "bytes": int(used - self._line)}
            self._intake.say(wish, set(self._fleet.running))
        elif self._above and used < CLEARED * self._line:
            self._above = False
            self._journal.add(now, None, EventKind.LINE_CLEARED, f"back to {format_size(used)}")

    def _fail(self, why: str) -> None:
        self._journal.add(self._clock(), None, EventKind.RECORDING_ERROR, why)
        if why not in self._errors:
            self._errors = [*self._errors[-9:], why]

    # ---- the snapshot

    def state(self) -> Snapshot:
        """Return the newest snapshot; it does not change afterwards."""
        with self._changed:
            return self._state

    def wait(self, version: int, timeout: float | None = None) -> int:
        """Wait for a snapshot after `version`; return the number of the newest."""
        with self._changed:
            self._changed.wait_for(lambda: self.version > version, timeout)
            return self.version

    def wait_for_news(self, timeout: float) -> None:
        """Wait until a probe disconnects or the time is up."""
        with self._changed:
            self._changed.wait(timeout)

    def said_goodbye(self) -> bool:
        """Return True if the program's probe has finished."""
        with self._changed:
            main = self._fleet.running.get(self._fleet.main or -1)
            return main is not None and main.said_goodbye

    def note(self, kind: str, text: str) -> None:
        """Add something to the event log."""
        with self._changed:
            self._journal.add(self._clock(), None, kind, text)

    def _snapshot(self, *, closed: bool) -> Snapshot:
        now, fleet = self._clock(), self._fleet
        watched = fleet.all()
        said = [Answered(*one.answered()) for one in watched]
        verdict = doubted(said, fleet.main, *self._theirs.rise())
        self._history.note(verdict, now)
        used, rate = self._total.last if fleet.running else 0.0, self._theirs.rate()
        limit = fleet.limit() or self._limit
        return {
            "schema": 1,
            "tool": f"floodline {__version__}",
            "python": platform.python_version(),
            "errors": list(self._errors),
            "command": self._command,
            "started": self._started,
            "now": now,
            "closed": closed,
            "line": self._line,
            "verdict": verdict["verdict"],
            "where": verdict["where"],
            "needed": verdict["needed"],
            "unit": "second",
            "suspects": merge_suspects(said),
            "history": self._history.records(),
            "memory": {
                "points": [list(point) for point in self._total.all],
                "now": self._used(),
                "peak": self._total.peak,
                "limit": limit,
                "rate": rate,
                "crosses_in": crosses_in(used, rate, self._line or limit),
            },
            "processes": [one.as_record() for one in watched],
            "sessions": fleet.sessions(),
            "containers": fleet.containers(),
            "holders": fleet.holders(),
            "events": self._journal.records(),
            "exit": self._exit,
            "not_covered": list(fleet.not_covered),
            "recorder": self._own_record(),
        }

    def _used(self) -> float:
        """Return the newest figure; for an ended program, the last one with all its workers."""
        if self._exit is None:
            return self._total.last
        return self._total.before(self._fleet.began_to_end())

    def _own_record(self) -> RecorderState:
        file, size = self._tape.file()
        return {
            "pid": os.getpid(),
            "boot": self._boot,
            "rss": memory.rss(),
            "file": file,
            "file_bytes": size,
        }

    def close(self) -> None:
        """Write the last tick, close the file, and disconnect; a second call does nothing."""
        if self._state["closed"]:
            return
        self.tick(closed=True)
        self._intake.close()
        self._tape.close()
        self._spare.close()


def _cgroup_limit() -> int | None:
    found = memory.cgroup()
    return None if found is None else found.limit
