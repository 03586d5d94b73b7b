"""What the table knows of one session, and of one caller that holds or wants it."""

from __future__ import annotations

from collections import deque
from types import FrameType, TracebackType
from typing import Any, Final

from floodline.telemetry import Reason

# the phases of an entry; an absent session has no entry
OPENING: Final = 0
LIVE: Final = 1
PARKING: Final = 2
GONE: Final = 3  # no longer in the table, though a caller may still hold a pin

# what a hold is told to do next
HELD: Final = 0  # it has the session
OPEN: Final = 1  # it must find a seat and open the session for all callers
LEAVE: Final = 2  # it must first see the expired entry out, and is queued until then
WAIT: Final = 3  # it is queued, and will be woken

# how far a hold has come
ENTERING: Final = 0
IN_BODY: Final = 1
LEAVING: Final = 2
ENTER_FAILED: Final = 3  # only its `work` will continue it
EXIT_FAILED: Final = 4

CLOSED: Final = Reason.closed
BURIED: Final = object()  # the state of an entry whose row is all that is left to delete


class Work:
    """A call that works on sessions; `ended` says that it is over, however it ended."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended = False


class Entry:
    """One session in memory: who uses it, since when it is idle, and what the store has of it."""

    __slots__ = (
        "asking",
        "checked",
        "closed_by",
        "digest",
        "dirty",
        "failed",
        "fence",
        "holder",
        "id",
        "leave",
        "opened_at",
        "owners",
        "phase",
        "pins",
        "reported",
        "rows",
        "runner",
        "said",
        "seat_for",
        "seated",
        "state",
        "used_at",
        "version",
        "waiters",
        "weight",
        "work",
        "write_id",
    )

    def __init__(self, id: str) -> None:
        self.id = id
        self.phase = OPENING
        self.state: Any = None
        self.holder: Hold | None = None
        self.runner: object = None  # the thread or task that runs user code for this entry
        self.work: Work | None = None  # who sees it out
        self.said = 0  # how many of the finalizers have been called
        self.pins = 0
        self.waiters: deque[Hold] | None = None
        self.leave: Reason | None = None  # wanted, or being done, or done
        self.closed_by: object = None  # the caller whose `close` this was
        self.seated = False
        self.seat_for: Hold | None = None  # the hold that gets the seat once nothing can be lost
        self.opened_at = self.used_at = 0.0
        self.weight = 0
        self.reported = False  # as one whose finalizer hangs
        self.owners: dict[int, object] | None = None  # weak references, by identity
        # the store's side
        self.dirty = False  # may differ from what is stored
        self.failed = False  # the last try to save failed
        self.checked = False  # a save of it was decoded and found equal
        self.version = 0
        self.fence = 0  # 0: no lease
        self.asking = False  # for a lease; the store may have given one that we do not know
        self.digest = b""
        self.rows: list[Any] = []  # appends to row logs that wait for the next save
        self.write_id: str | None = None  # a write that may or may not have reached the store

    def is_untended(self) -> bool:
        """Return True if no caller is seeing out a parking entry."""
        return self.work is None or self.work.ended


class Hold:
    """One caller that has, or waits for, a session; each driver adds how it is woken."""

    __slots__ = (
        "create",
        "discarded",
        "entry",
        "error",
        "error_from",
        "frame",
        "id",
        "outcome",
        "queue",
        "reported",
        "shared",
        "since",
        "site",
        "step",
        "victim",
        "who",
        "work",
    )

    def __init__(self, id: str, shared: bool = False, create: bool = True) -> None:
        self.id = id
        self.shared = shared
        self.create = create
        self.entry: Entry | None = None
        self.who: object = None  # see `who` in _core
        self.outcome = WAIT
        self.error: BaseException | None = None
        self.error_from: TracebackType | None = None  # of one that several get: `Waiting.refuse`
        self.victim: Entry | None = None  # whose seat it will get
        self.discarded = False
        self.reported = False
        self.frame: FrameType | None = None
        self.site = -1  # where `frame` entered the `with` statement
        self.queue: deque[Any] | None = None  # of the ExitStack that entered it
        self.step = ENTERING
        self.work: Work | None = None  # what continues it, in addition to its caller
        self.since = 0.0

    def wake(self) -> None:
        """Make the waiting driver look at `outcome` and `error`; never blocks."""
