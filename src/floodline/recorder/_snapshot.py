"""The snapshot: what the recorder writes and serves, and everything else reads.

It is plain JSON, so a recording holds exactly what `Recorder.state()` returned.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NotRequired, TypedDict

from floodline.leaks._suspect_record import HoldingRecord, SplitRecord, SuspectRecord
from floodline.leaks._vocabulary import Outcome, Where
from floodline.recorder._probe.messages import ContainerRecord, Needed, SessionsRecord

Points = list[list[float]]  # of `[at, bytes]`


class ProcessStatus(StrEnum):
    """The state of a process: running, ended cleanly or as asked, or lost."""

    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"


class EventKind(StrEnum):
    """What the recorder itself adds to the event log; probes add the kinds of telemetry."""

    PROGRAM_STARTED = "program_started"
    PROGRAM_ENDED = "program_ended"
    PROCESS_STARTED = "process_started"
    PROCESS_ENDED = "process_ended"
    PROCESS_LOST = "process_lost"
    LEFT_RUNNING = "left_running"
    GROWING = "growing"
    LINE_CROSSED = "line_crossed"
    LINE_CLEARED = "line_cleared"
    OOM_KILL = "oom_kill"
    NOT_COVERED = "not_covered"
    RECORDING_ERROR = "recording_error"


class ExitKind(StrEnum):
    """How a process ended; `_exit_cause` puts it into words."""

    ENDED = "ended"  # by itself, with status 0
    FAILED = "failed"  # by itself, with another status
    SIGNALLED = "signalled"  # by a signal that asks it to end, or any other
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out of memory"  # the kernel says so
    NEAR_THE_LIMIT = "near the limit"  # killed while close to the memory limit
    KILLED = "killed"
    GONE = "gone"
    BACKGROUND = "background"  # the program ended, its processes continued
    UNCLOSED = "unclosed"  # the recorder was killed as well


class Exit(TypedDict):
    """The end of a process; `status` or `signal` is None, or both if it was not seen."""

    status: int | None
    signal: str | None
    oom: bool
    cause: str
    kind: ExitKind


class SuspectState(SuspectRecord):
    """A suspect, with the processes of one command that have it."""

    command: str
    pids: list[int]


class SessionsState(SessionsRecord):
    """The sessions of one name in a process."""

    pid: int


class ContainerState(ContainerRecord):
    """A container in a process."""

    pid: int


class HoldingState(HoldingRecord):
    """A place that holds memory in a process."""

    pid: int


class MemoryState(TypedDict):
    """Resident memory of all processes together."""

    points: Points
    now: float
    peak: float
    limit: int | None
    rate: float
    crosses_in: float | None


class ProcessFacts(TypedDict):
    """One process without its end; what only a probe knows is None without one."""

    pid: int
    parent: int | None
    command: str
    state: ProcessStatus
    python: str | None
    started: float
    ended: float | None
    rss: float
    peak: float
    series: int
    points: Points
    objects: int | None
    watched_seconds: float | None
    threads: int | None
    tasks: int | None
    fds: int | None
    gc: list[int]
    verdict: Outcome
    cost_seconds: float
    own_bytes: int
    blind_spots: list[str]
    recycled: int
    split: SplitRecord | None


class ProcessState(ProcessFacts):
    """One process."""

    exit: Exit | None


class EventState(TypedDict):
    """An event of the log; `count` is present if it occurred more than once."""

    at: float
    pid: int | None
    kind: str
    text: str
    count: NotRequired[int]


class RecorderState(TypedDict):
    """The recorder itself."""

    pid: int
    boot: str
    rss: int
    file: str | None
    file_bytes: int | None


class VerdictState(TypedDict):
    """A verdict and since when it stands."""

    at: float
    verdict: Outcome
    where: Where


class Cut(TypedDict):
    """Since when a recording could not be written, and why."""

    at: float
    why: str


class Snapshot(TypedDict):
    """All that is known at one time; `cut` is present if its recording was cut short."""

    schema: int
    tool: str
    python: str
    errors: list[str]
    command: str
    started: float
    now: float
    closed: bool
    line: int | None
    verdict: Outcome
    where: Where
    needed: Needed | None
    unit: str
    suspects: list[SuspectState]
    history: list[VerdictState]
    memory: MemoryState
    processes: list[ProcessState]
    sessions: list[SessionsState]
    containers: list[ContainerState]
    holders: list[HoldingState]
    events: list[EventState]
    exit: Exit | None
    not_covered: list[str]
    recorder: RecorderState
    cut: NotRequired[Cut]
