"""What the probe reads in its process: memory, the collector, and floodline's holders."""

from __future__ import annotations

import gc
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar, cast

from floodline import memory, telemetry
from floodline.memory._measuring.probes import asyncio_tasks, open_files, threads

if TYPE_CHECKING:
    from floodline.recorder._probe.messages import (
        ContainerRecord,
        EventRecord,
        Figures,
        HolderRecord,
        HolderRecords,
        SessionsRecord,
    )

_floodline_engine = True  # the walk leaves this module out

SESSIONS = "sessions"  # the kind of a holder
SELDOM = 5  # ticks between two readings that list a folder
MAX_HOLDERS = 200  # of one kind, reported by name
MANY_HOLDERS = 2000  # above this they are read less often
MAX_EVENTS = 200
LIMIT_AGE = 10.0
# event fields that are numbers, places or types; never ids, labels or text of the program
SAFE = frozenset({
    "breaker_open", "count", "items", "limit", "path", "rounds", "seconds", "sessions", "shed",
    "target", "times", "used", "waiting",
})  # fmt: skip


class _Limit:
    """The memory limit of this process, read seldom because it takes many small files."""

    def __init__(self) -> None:
        self._asked = -LIMIT_AGE
        self.value: int | None = None

    def read(self) -> int | None:
        now = time.monotonic()
        if now - self._asked >= LIMIT_AGE:
            self._asked = now
            found = memory.cgroup()
            self.value = None if found is None else found.limit
        return self.value


_limit = _Limit()


def limit_of() -> tuple[int, int | None]:
    """Return resident memory and its limit, for the engine's own caution."""
    return memory.rss(), _limit.read()


class Readings:
    """Figures of the process; expensive ones are read seldom and repeated."""

    def __init__(self) -> None:
        self._threads: int | None = None
        self._files: int | None = None

    def read(self, tick: int) -> Figures:
        """Return the figures of this tick."""
        if tick % SELDOM == 0:
            self._threads, self._files = threads(), open_files()
        return {
            "rss": memory.rss(),
            "limit": _limit.read(),
            "gc": [generation["collections"] for generation in gc.get_stats()],
            "tasks": asyncio_tasks(),
            "threads": self._threads,
            "fds": self._files,
        }


class Holders:
    """Sessions and containers by name, from the registry of floodline in this process."""

    def __init__(self) -> None:
        self._told: HolderRecords = {"sessions": [], "containers": []}

    def read(self, tick: int) -> HolderRecords:
        """Return `sessions` and `containers`; the largest first if there are very many."""
        holders = telemetry.holders()
        if len(holders) > MANY_HOLDERS and tick % SELDOM:
            return self._told
        told = [record for holder in holders if (record := _record(holder)) is not None]
        sessions = [_session(one) for one in told if one["kind"] == SESSIONS]
        containers = [_container(one) for one in told if one["kind"] != SESSIONS]
        self._told = {"sessions": _largest(sessions), "containers": _largest(containers)}
        return self._told

    def last(self) -> HolderRecords:
        """Return the same at exit, with what was there a tick ago and has been closed since."""
        before, now = self._told, self.read(0)
        return {
            "sessions": [*now["sessions"], *_gone(before["sessions"], now["sessions"])],
            "containers": [*now["containers"], *_gone(before["containers"], now["containers"])],
        }


Told = TypeVar("Told", bound="HolderRecord")


def _gone(before: list[Told], now: list[Told]) -> list[Told]:
    names = {one["name"] for one in now}
    return [one for one in before if one["name"] not in names]


def _record(holder: Any) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = holder.stats().as_dict()
        record["left"] = {str(reason): count for reason, count in record["left"].items()}
        return record if isinstance(record["kind"], str) else None
    except Exception:  # a holder's code may not be ours
        return None


def _session(record: dict[str, Any]) -> SessionsRecord:
    return cast("SessionsRecord", {**record, "live": record["items"]})


def _container(record: dict[str, Any]) -> ContainerRecord:
    return cast("ContainerRecord", {**record, "evicted": record["left"]})


def _largest(records: list[Told]) -> list[Told]:
    if len(records) <= MAX_HOLDERS:
        return records
    return sorted(records, key=lambda one: one["items"], reverse=True)[:MAX_HOLDERS]


class Events:
    """The last events, bounded, in words without any of the program's data."""

    def __init__(self) -> None:
        self._waiting: deque[EventRecord] = deque(maxlen=MAX_EVENTS)

    def add(self, event: telemetry.Event) -> None:
        """Accept an event of the telemetry."""
        self._waiting.append(
            {"at": event.at, "kind": event.kind, "text": in_words(event.source, event.fields)}
        )

    def note(self, kind: str, text: str) -> None:
        """Add an event of the probe itself."""
        self._waiting.append({"at": time.time(), "kind": kind, "text": text})

    def take(self) -> list[EventRecord]:
        """Return the events since the last call."""
        taken = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken


def in_words(source: str, fields: Any) -> str:
    """Write an event in one line: numbers, places and the types of errors, and nothing else."""
    words: list[str] = []
    for name, value in fields.items():
        if name == "error":  # "KeyError: …": the text may be user data
            words.append(str(value).partition(":")[0])
        elif name in SAFE:
            words.append(f"{name}={_short(value)}")
    return f"{source}: {', '.join(words)}" if words else source


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)[:300]
