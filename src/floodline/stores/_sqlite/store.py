"""The store in a SQLite file."""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from functools import cached_property
from typing import Any, get_args

from floodline._clock import Clock, checked
from floodline._units import Duration, parse_choice, parse_duration
from floodline.stores._calls import AwaitedCalls, BlockingCalls
from floodline.stores._forks import writers
from floodline.stores._lease_clock import machine_clock
from floodline.stores._sqlite.archive import SQLiteArchive
from floodline.stores._sqlite.database import Database
from floodline.stores._sqlite.inspection import inspect_beside
from floodline.stores._sqlite.paths import checked_path
from floodline.stores._sqlite.schema import Synchronous
from floodline.stores._writer import Writer


class SQLiteStore(BlockingCalls):
    """Sessions in a SQLite file, which any number of processes on one machine may share.

    The file is created if it is missing, its directory is not. A damaged file, a newer schema and a
    path that cannot work raise here; a file that is only locked is tried again at the first
    call. `synchronous="normal"` survives a killed process, `"full"` a power cut too. `busy_timeout`
    is how long to wait for other processes. All calls run on one daemon thread, in batches; `aio`
    is the coroutine twin on the same thread. `clock` times the leases and must be common to all
    processes, `wall` times the retention. A store that is collected without `close()` releases its
    thread and file by itself.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Synchronous = "normal",
        clock: Clock | None = None,
        wall: Clock | None = None,
        busy_timeout: Duration = "5 s",
    ) -> None:
        self.path = checked_path(path)
        self._synchronous = synchronous
        database = Database(
            self.path,
            synchronous=parse_choice(synchronous, "synchronous", get_args(Synchronous)),
            timeout=parse_duration(busy_timeout, "busy_timeout", zero=True),
            clock=checked(clock or machine_clock()),
            wall=checked(wall or time.time, "wall"),
        )
        database.open()
        self._database = database
        self._writer = writer = Writer(database, self.path)
        self._finalizer = weakref.finalize(self, writer.abandon)
        self._finalizer.atexit = False  # sessions save at exit; the file need not be closed
        writers.add(writer)
        if database.unclean:
            inspect_beside(database, writer)

    @property
    def aio(self) -> AwaitedCalls:
        """The coroutine twin, on the same thread; both close together."""
        return AwaitedCalls(self, self._writer.ask_soon, self._close_soon)

    def is_writer_thread(self) -> bool:
        """Return True if this thread is working for the store, so that a call would be refused.

        A finalizer may run there; it must put off its call.
        """
        return self._writer.is_writer_thread()

    @cached_property
    def archive(self) -> SQLiteArchive:
        """An archive of conversations in the same file, closed with the store."""
        return SQLiteArchive(self.path, synchronous=self._synchronous)

    @property
    def older_archive(self) -> SQLiteArchive | None:
        """The archive in the same file, if there has ever been one."""
        return self.archive if self._ask("has_archive") else None

    def close(self) -> None:
        """Finish pending calls and release thread and file; idempotent."""
        self._finalizer.detach()
        self._writer.close()
        if "archive" in self.__dict__:
            self.archive.close()

    async def _close_soon(self) -> None:
        await asyncio.to_thread(self.close)

    def _ask(self, what: str, /, *args: Any) -> Any:
        return self._writer.ask(what, *args)
