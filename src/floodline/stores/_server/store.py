"""The base of the stores on a server: a few connections, each with its thread and its batches."""

from __future__ import annotations

import asyncio
import weakref
from abc import abstractmethod
from asyncio import _get_running_loop
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakMethod
from zlib import crc32

from floodline.stores._calls import AwaitedCalls, BlockingCalls
from floodline.stores._forks import writers
from floodline.stores._server.link import Link
from floodline.stores._server.listening import Bell, Listener
from floodline.stores._server.on_loop import OnLoop, WriterOf
from floodline.stores._writer import Split, Writer

_OF_ONE_ID = {
    *("acquire", "release", "save", "written", "load", "delete", "quarantine"),
    *("append_rows", "get_rows", "rows", "logs", "count_rows", "delete_rows"),
}
_OF_MANY = {"purge", "ids", "names", "count", "stats", "conflicts", "quarantined"}


class ServerCalls(AwaitedCalls):
    """The coroutine twin of a store on a server."""

    __slots__ = ()
    _store: ServerStore

    def bell(self, name: str, id: str) -> Bell:
        """See `ServerStore.bell`."""
        return self._store.bell(name, id)

    def on_wanted(self, owner: str, told: WeakMethod[Callable[[], None]]) -> None:
        """See `ServerStore.on_wanted`."""
        self._store.on_wanted(owner, told)

    async def wanted(self, name: str, owner: str) -> set[str]:
        """See `ServerStore.wanted`."""
        ids: set[str] = await self._ask("wanted", name, owner)
        return ids


class ServerStore(BlockingCalls):
    """Calls about one session share a connection, and those about many have the last.

    Sessions have all but the last, over which they are spread: fewer and larger batches cost less.
    See `Writer` for `split`.
    """

    def __init__(
        self,
        address: str,
        links: Sequence[Link],
        listener: Listener,
        *,
        split: Split | None = None,
        on_loop: Callable[[WriterOf], OnLoop] | None = None,
    ) -> None:
        self.address = address
        if _get_running_loop() is None:  # which would stand still; there the first call connects
            links[0].open()
        self._writers, self._listener = [Writer(link, address, split) for link in links], listener
        self._writer_of = writer_of = _spread_over(self._writers)
        self._on_loop = on_loop(writer_of) if on_loop else None
        connected: list[OnLoop | Writer | Listener] = [*self._writers, listener]
        if self._on_loop is not None:
            connected.insert(0, self._on_loop)
        self._finalizer = weakref.finalize(self, _abandon, connected)
        self._finalizer.atexit = False  # sessions save at exit
        for one in connected:
            writers.add(one)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r})"

    @property
    def aio(self) -> ServerCalls:
        """The coroutine twin; both close together."""
        return ServerCalls(self, self._ask_soon, self._close_soon)

    def is_writer_thread(self) -> bool:
        """Return True if this thread is working for the store, so that a call would be refused."""
        return any(writer.is_writer_thread() for writer in self._writers)

    def wanted(self, name: str, owner: str) -> set[str]:
        """Return the sessions leased by `owner` that others have asked for in vain."""
        ids: set[str] = self._ask("wanted", name, owner)
        return ids

    def bell(self, name: str, id: str) -> Bell:
        """Return a bell that rings when a session which is held elsewhere may be free."""
        return self._listener.bell(self._lease_token(name, id))

    def on_wanted(self, owner: str, told: WeakMethod[Callable[[], None]]) -> None:
        """Call `told` from now on when `wanted` has something new to say to this owner."""
        self._listener.tell(owner, self._owner_token(owner), told)

    @abstractmethod
    def _lease_token(self, name: str, id: str) -> bytes:
        """Return how the server names a lease to those who listen."""

    @abstractmethod
    def _owner_token(self, owner: str) -> bytes:
        """Return how the server names an owner to those who listen."""

    def close(self) -> None:
        """Finish pending calls and release threads and connections; idempotent."""
        self._finalizer.detach()
        self._listener.close()
        if self._on_loop is not None:
            self._on_loop.close()
        for writer in self._writers:
            writer.close()

    async def _close_soon(self) -> None:
        await asyncio.to_thread(self.close)

    def _ask(self, what: str, /, *args: Any) -> Any:
        return self._writer_of(what, args).ask(what, *args)

    def _ask_soon(self, what: str, /, *args: Any) -> asyncio.Future[Any]:
        if self._on_loop is not None and what in _OF_ONE_ID:
            return self._on_loop.ask(what, args)
        return self._writer_of(what, args).ask_soon(what, *args)


def _spread_over(writers: Sequence[Writer]) -> WriterOf:
    """Return the choice of a writer for a call; the store itself can be collected meanwhile."""
    spread = max(1, len(writers) - 1)

    def writer_of(what: str, args: tuple[Any, ...]) -> Writer:
        if what in _OF_MANY:
            return writers[-1]
        if what not in _OF_ONE_ID or spread == 1:
            return writers[0]
        key = f"{args[0]}\0{args[1]}".encode("utf-8", "surrogatepass")
        return writers[crc32(key) % spread]

    return writer_of


def _abandon(abandoned: Sequence[OnLoop | Writer | Listener]) -> None:
    for one in abandoned:
        with suppress(Exception):  # the other connections are closed nevertheless
            one.abandon()
