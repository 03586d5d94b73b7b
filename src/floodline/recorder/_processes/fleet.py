"""All processes of a run, as seen by their probes and from outside."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from floodline.leaks._suspect_record import SuspectRecord
from floodline.leaks._vocabulary import Outcome
from floodline.recorder._exit_cause import end_state
from floodline.recorder._probe.messages import (
    ContainerRecord,
    Hello,
    LiveRecord,
    Sample,
    SessionsRecord,
)
from floodline.recorder._proc import NoProbe, Seen
from floodline.recorder._recording.journal import Journal
from floodline.recorder._recording.series import FEWER, Points
from floodline.recorder._snapshot import (
    ContainerState,
    EventKind,
    Exit,
    HoldingState,
    ProcessState,
    ProcessStatus,
    SessionsState,
)

MOST_HOLDERS = 30
MOST_ENDED = 50
GOING_DOWN = 10.0  # seconds that a program and its workers take to end
TOTAL = 0  # the series of all processes together


@dataclass(slots=True)
class Watched:
    """One process; `sample` is the last message of its probe, None without one.

    A `quiet` one carries a probe that has not reported yet.
    """

    pid: int
    parent: int | None
    command: str
    started: float
    points: Points
    python: str | None = None
    state: ProcessStatus = ProcessStatus.RUNNING
    ended: float | None = None
    exit: Exit | None = None
    sample: Sample | None = None
    blind: str | None = None
    quiet: bool = False
    said_goodbye: bool = False
    connected: bool = False
    unread: bool = False
    recycled: int = 0
    before: LiveRecord | None = None
    suspected: bool = False  # its predecessor had a suspect when it ended

    @property
    def answer(self) -> LiveRecord | None:
        """The last answer of its leak engine; for a recycled worker, its predecessor's at first.

        Otherwise workers that are recycled early would never be reported.
        """
        own = self._own_answer
        undecided = own is None or own["verdict"] == Outcome.UNDECIDED
        return self.before if self.before and undecided else own

    @property
    def _own_answer(self) -> LiveRecord | None:
        return self.sample["answer"] if self.sample else None

    @property
    def grew(self) -> bool:
        """Return True if its leak engine said that something grows."""
        answer = self.answer
        return answer is not None and answer["verdict"] == Outcome.GROWING

    @property
    def rss(self) -> float:
        """Its resident bytes; 0 after its end."""
        return self.points.last if self.state == ProcessStatus.RUNNING else 0.0

    def answered(self) -> tuple[int, str, ProcessStatus, LiveRecord | None, int, bool]:
        """Return what its answer needs to be merged with the others."""
        return self.pid, self.command, self.state, self.answer, self.recycled, self.suspected

    def as_record(self) -> ProcessState:
        """Return the process for the snapshot."""
        sample, own, answer = self.sample, self._own_answer, self.answer
        blind = [self.blind] if self.blind else []
        return {
            "pid": self.pid,
            "parent": self.parent,
            "command": self.command,
            "state": self.state,
            "python": self.python,
            "started": self.started,
            "ended": self.ended,
            "rss": self.rss,
            "peak": self.points.peak,
            "series": self.points.series,
            "points": [list(point) for point in self.points.all],
            "objects": own["objects"] if own else None,
            "watched_seconds": own["watched_seconds"] if own else None,
            "threads": sample["threads"] if sample else None,
            "tasks": sample["tasks"] if sample else None,
            "fds": sample["fds"] if sample else None,
            "gc": sample["gc"] if sample else [],
            "exit": self.exit,
            "verdict": answer["verdict"] if answer else Outcome.UNDECIDED,
            "cost_seconds": sample["cost"] if sample else 0.0,
            "own_bytes": own["own_bytes"] if own else 0,
            "blind_spots": [*blind, *(own["blind_spots"] if own else ())],
            "recycled": self.recycled,
            "split": own["split"] if own else None,
        }


class Fleet:
    """Processes by pid; a worker that replaces one of its command continues its series."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._series = count(TOTAL + 1)
        self.main: int | None = None
        self.went_on = False  # the program has ended, but not all of its processes
        self.asked: str | None = None  # the signal that those were sent then
        self.stopping = False  # the program was asked to end, and so its workers
        self.running: dict[int, Watched] = {}
        self.ended: list[Watched] = []
        self.not_covered: dict[str, int | None] = {}  # the text, and for which process
        self._named: set[tuple[str, str]] = set()

    def start(self, pid: int, command: str, at: float, *, main: bool = False) -> Watched:
        """Record a process that we started, or whose probe we woke."""
        one = Watched(pid, None, command, at, Points(next(self._series), FEWER))
        self.running[pid] = one
        if main:
            self.main = pid
        return one

    # ---- what probes say

    def hello(self, pid: int, message: Hello, at: float) -> None:
        """Accept the first message of a connection; a probe that could not start says why in it."""
        if "error" in message:
            self.uncover(f"process {pid}: the probe could not start: {message['error']}", pid, at)
            return
        command, parent = message["command"], message["parent"]
        one = self.running.get(pid)
        if one is None:
            one = self._succeed(command, parent) or Watched(
                pid, parent, command, at, Points(next(self._series), FEWER)
            )
            one.pid, one.parent, one.started = pid, parent, at
            self.running[pid] = one
            self._journal.add(at, pid, EventKind.PROCESS_STARTED, command)
        elif pid != self.main:
            one.command = command
        one.parent, one.python = parent, message["python"]
        one.connected, one.blind, one.quiet = True, None, False
        # it was only slow: withdraw what was said about it
        self.not_covered = {text: of for text, of in self.not_covered.items() if of != pid}

    def _succeed(self, command: str, parent: int | None) -> Watched | None:
        """Return a new record on the series of the last ended worker of this command."""
        for old in reversed(self.ended):
            if (old.command, old.parent) == (command, parent) and old.pid != self.main:
                self.ended.remove(old)
                return Watched(
                    0, None, command, 0.0, old.points, recycled=old.recycled + 1,
                    before=old.answer if old.grew else None,
                    suspected=bool(old.answer and old.answer["suspects"]),
                )  # fmt: skip
        return None

    def sample(self, pid: int, message: Sample, at: float) -> None:
        """Accept a sample of a probe that has said hello."""
        one = self.running.get(pid)
        if one is None:
            return
        for event in message["events"]:
            self._journal.add(event["at"], pid, event["kind"], event["text"])
        one.sample = {**message, "events": []}
        for suspect in one.answer["suspects"] if one.answer else ():
            self._tell_growth(one, suspect, at)

    def _tell_growth(self, one: Watched, suspect: SuspectRecord, at: float) -> None:
        key = (one.command, suspect["owner"])
        if suspect["verdict"] != Outcome.GROWING or key in self._named or len(self._named) > 1000:
            return
        self._named.add(key)
        fed = f", fed at {suspect['file']}:{suspect['line']}" if suspect["file"] else ""
        self._journal.add(at, one.pid, EventKind.GROWING, f"{suspect['owner']} grows{fed}")

    def goodbye(self, pid: int) -> None:
        """Record that a process, or its probe, ends cleanly."""
        if pid in self.running:
            self.running[pid].said_goodbye = True

    def hung_up(self, pid: int) -> None:
        """Record that a probe is gone; whether its process is too is seen from outside."""
        if pid in self.running:
            self.running[pid].connected = False

    # ---- what the outside shows

    def seen(self, found: Seen, at: float) -> None:
        """Record a process without a probe."""
        one = self.running.get(found.pid)
        if one is None:
            one = Watched(
                found.pid, found.parent, found.command, at, Points(next(self._series), FEWER)
            )
            self.running[found.pid] = one
        one.quiet = found.key == NoProbe.QUIET
        one.blind = f"no probe{' yet' if one.quiet else ''}: {found.why}"
        if found.key not in (NoProbe.QUIET, NoProbe.OTHER):
            self.uncover(f"`{found.command}` (process {found.pid}): {found.why}", found.pid, at)

    def uncover(self, text: str, pid: int | None, at: float) -> None:
        """Say once that something is not watched."""
        if text not in self.not_covered and len(self.not_covered) < 100:
            self.not_covered[text] = pid
            self._journal.add(at, pid, EventKind.NOT_COVERED, text)

    def measured(self, pid: int, rss: float | None, at: float) -> None:
        """Add a point, or end a process that is gone."""
        one = self.running.get(pid)
        if one is None:
            return
        if rss is not None:
            one.points.add(at, rss)
        elif self._alone(pid) and one.connected and not (one.said_goodbye or one.unread):
            one.unread = True  # its last words may be on their way: wait until the next look
        elif pid != self.main:  # the status says how the program itself ended
            self.end(pid, None, at)

    def end(self, pid: int, exit: Exit | None, at: float, *, asked: str | None = None) -> None:
        """Move a process to the ended ones: exited cleanly, by the signal `asked`, or lost."""
        one = self.running.pop(pid, None)
        if one is None:
            return
        # without a probe it is unknown
        wanted = self.stopping or self.asked is not None
        orderly = one.said_goodbye or not self._alone(pid) or wanted or bool(one.blind)
        one.state = ProcessStatus.EXITED if orderly else ProcessStatus.LOST
        if exit is not None:
            one.state = end_state(exit, asked)
        one.ended, one.exit, one.connected = at, exit, False
        self.ended.append(one)
        if pid != self.main:
            kind = EventKind.PROCESS_ENDED if orderly else EventKind.PROCESS_LOST
            self._journal.add(at, pid, kind, one.command)
        self._forget_old()

    def _alone(self, pid: int) -> bool:
        """Return True if it ended alone: after the program, its children end too, by any signal."""
        return self.main in (None, pid, *self.running) or self.went_on

    def _forget_old(self) -> None:
        while len(self.ended) > MOST_ENDED:
            old = next(
                (one for one in self.ended if one.pid != self.main and not one.grew),
                None,
            )
            self.ended.remove(old or next(one for one in self.ended if one.pid != self.main))

    # ---- all together

    def all(self) -> list[Watched]:
        """Return the program first, then running processes, then ended ones."""
        every = [*self.running.values(), *self.ended]
        return sorted(
            every, key=lambda one: (one.pid != self.main, one.state != ProcessStatus.RUNNING)
        )

    def after(self, at: float) -> list[tuple[int, ProcessStatus]]:
        """Return pid and state of those with a probe that ran after this time."""
        return [
            (one.pid, one.state)
            for one in self.all()
            if (one.ended is None or one.ended > at or one.state == ProcessStatus.RUNNING)
            and one.pid != self.main and (one.python or one.quiet)
        ]  # fmt: skip

    def began_to_end(self) -> float:
        """Return when the first of the processes ended that went down together with the last."""
        those = [one for one in self.ended if not (self.went_on and one.pid == self.main)]
        ends = [one.ended for one in those if one.ended is not None]
        last = max(ends, default=0.0)
        return min((at for at in ends if last - at <= GOING_DOWN), default=last)

    def resident(self) -> float:
        """Return the resident bytes of all running processes."""
        return sum(one.rss for one in self.running.values())

    def limit(self) -> int | None:
        """Return the lowest limit that a probe has reported."""
        limits = [one.sample["limit"] for one in self.all() if one.sample]
        return min((int(limit) for limit in limits if limit), default=None)

    def _told(self) -> list[tuple[int, Sample]]:
        """Return the last samples of all running processes, else of those that ran last."""
        those = list(self.running.values()) or self.ended
        return [(one.pid, one.sample) for one in those if one.sample]

    def sessions(self) -> list[SessionsState]:
        """Return the sessions of all running processes, else of the last."""
        return [
            {**_with_filling(one, told), "pid": pid}
            for pid, told in self._told()
            for one in told["sessions"]
        ]

    def containers(self) -> list[ContainerState]:
        """Return the containers of all running processes, else of the last."""
        return [
            {**_with_filling(one, told), "pid": pid}
            for pid, told in self._told()
            for one in told["containers"]
        ]

    def holders(self) -> list[HoldingState]:
        """Return what holds memory in all running processes, else in the last; largest first."""
        found: list[HoldingState] = [
            {**one, "pid": pid}
            for pid, told in self._told()
            for one in (told["answer"] or {"holders": []})["holders"]
        ]
        return sorted(found, key=lambda one: -one["bytes"])[:MOST_HOLDERS]

    def own_bytes(self) -> int:
        """Return what the probes of the running processes take themselves."""
        answers = [one.sample["answer"] for one in self.running.values() if one.sample]
        return sum(answer["own_bytes"] for answer in answers if answer)


Holder = TypeVar("Holder", SessionsRecord, ContainerRecord)


def _with_filling(one: Holder, sample: Sample) -> Holder:
    """Add to a holder when it will be full, if it fills."""
    for known in sample["answer"]["filling"] if sample["answer"] else ():
        if (known["kind"], known["name"]) == (one["kind"], one["name"]):
            return {**one, "filling": {"limit": known["limit"], "full_in": known["full_in"]}}
    return one
