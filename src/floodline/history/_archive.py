"""The way out: a message is archived before it is dropped."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from floodline import telemetry
from floodline.errors import ConfigError
from floodline.history._atoms import Entry
from floodline.history._formats.shapes import Message
from floodline.history._formats.shorten import weigh

Numbered = tuple[int, Message]


@runtime_checkable
class Archive(Protocol):
    """An archive that can also be read back, such as `floodline.stores.SQLiteArchive`."""

    def put(self, conversation: str, messages: Sequence[Numbered]) -> None:
        """Store the messages durably before returning; the same one twice counts once."""
        ...

    def page(
        self, conversation: str, *, before: int | None = None, limit: int = 1000
    ) -> list[Numbered]:
        """Return the last `limit` messages whose number is below `before`, oldest first."""
        ...


ArchiveLike = Archive | Callable[[list[Message]], object]


class Page(list[Message]):
    """Archived messages, oldest first; `before` asks for the page that precedes this one."""

    __slots__ = ("before",)

    def __init__(self, numbered: Sequence[Numbered]) -> None:
        super().__init__(message for _, message in numbered)
        self.before = numbered[0][0] if numbered else 0


def parse_archive(archive: Any) -> ArchiveLike | None:
    """Return the archive if it is one, or the one that a store has alongside its sessions.

    A coroutine function will not do, because an append waits for the archive.
    """
    if archive is None or isinstance(archive, Archive):
        return archive
    beside = getattr(archive, "archive", None)
    if isinstance(beside, Archive):
        return beside
    if not callable(archive) or inspect.iscoroutinefunction(archive):
        raise ConfigError(
            f"archive={archive!r} cannot be used; give a plain callable that takes a list of "
            "messages, a SQLiteStore, or floodline.stores.SQLiteArchive"
        )
    return archive  # type: ignore[no-any-return]  # callable, which is all that can be asked


class Outbox:
    """Hands messages to the archive, and remembers what it owes while the archive fails.

    A loaded conversation that had an archive has an outbox without one: it refuses everything
    until `configure(archive=…)`, so that nothing is dropped by mistake.
    """

    __slots__ = (
        "_call", "_store", "chose_id", "failed_in_a_row", "id", "name", "owed", "owed_bytes",
    )  # fmt: skip  # one name a line would fill the page

    def __init__(self, archive: ArchiveLike | None, id: str | None, name: str) -> None:
        self.id, self.name, self.chose_id = id or uuid.uuid4().hex, name, id is None
        self._store: Archive | None = None
        self._call: Callable[[list[Message]], object] | None = None
        if isinstance(archive, Archive):  # asked once: a protocol answers slowly
            self._store = archive
        else:
            self._call = archive
        self.owed: list[Numbered] = []
        self.owed_bytes = 0
        self.failed_in_a_row = 0

    @property
    def archive(self) -> ArchiveLike | None:
        """Where the messages go; None after a load."""
        return self._store if self._store is not None else self._call

    def owe(self, seq: int, message: Message) -> None:
        """Have a message archived with the next delivery."""
        self.owed.append((seq, message))
        self.owed_bytes += weigh(message, "$")

    def take_over(self, before: Outbox | None) -> None:
        """Take over what another outbox owed, under the same id."""
        if before is not None:
            self.chose_id = before.chose_id
            for seq, message in before.owed:
                self.owe(seq, message)

    def deliver(self, entries: Sequence[Entry]) -> bool:
        """Archive what is owed and these; return True if the archive accepted all of it."""
        if not entries and not self.owed:
            return True
        numbered = [*self.owed, *((entry.seq, entry.message) for entry in entries)]
        numbered.sort(key=lambda pair: pair[0])
        try:
            self._send(numbered)
        except Exception as error:  # users' code, disks
            self.failed_in_a_row += 1
            if self.failed_in_a_row & (self.failed_in_a_row - 1) == 0:  # 1st, 2nd, 4th, 8th …
                telemetry.emit(
                    "archive_failed",
                    self.name,
                    error=telemetry.describe(error),
                    times=self.failed_in_a_row,
                    waiting=len(numbered),
                )
            return False
        self.owed.clear()
        self.owed_bytes = self.failed_in_a_row = 0
        return True

    def _send(self, numbered: list[Numbered]) -> None:
        if self._store is not None:
            self._store.put(self.id, numbered)
            return
        if self._call is None:
            raise ConfigError(
                "this conversation was loaded and has no archive yet; call "
                "configure(archive=…), or configure(archive=None) to continue without one"
            )
        answer = self._call([message for _, message in numbered])
        if inspect.iscoroutine(answer):
            answer.close()
            raise ConfigError("the archive returned a coroutine; it must be a plain callable")

    def page(self, id: str | None, before: int | None, limit: int) -> Page:
        """Read archived messages back."""
        if self._store is None:
            raise ConfigError(
                f"archive={self._call!r} cannot be read back; use "
                "floodline.stores.SQLiteArchive, or read where the callable wrote"
            )
        return Page(self._store.page(id or self.id, before=before, limit=limit))
