"""Runs batches of calls on one connection, and says of every call how it went.

An operation is a generator: it yields a request, gets the server's reply and returns a result, or
yields again. All requests of a batch go out together and their replies come back together, so that
a batch costs one round trip however many callers it has.

If the connection breaks, the calls without a reply may or may not have been done. What is the same
done twice is done again on a new connection, once; a save is, by its write id. Of the rest the
outcome is unknown, and the error says so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol

from floodline.errors import FloodlineError, StoreUnavailable
from floodline.stores._calls import READS
from floodline.stores._writer import Call

Operation = Generator[Any, Any, Any]
# not `delete`, which would find its lease gone, nor `purge`, whose ids would be lost
REPEATABLE = READS | {"acquire", "renew", "release", "save", "quarantine", "append_rows"}


class Unanswered(Exception):
    """The connection is gone, and with it the reply; the cause says how."""

    def __init__(self, error: FloodlineError, *, again: bool) -> None:
        super().__init__(str(error))
        self.error, self.again = error, again


class Wire(Protocol):
    """One open connection."""

    def exchange(self, requests: Sequence[Any]) -> list[Any]:
        """Return the reply to each request, or the error instead of it; raise nothing of those.

        `Unanswered` stands for the replies that did not come, and the wire is then closed.
        """
        ...

    def usable(self) -> bool:
        """Return False if another connection is needed, as after `Unanswered`."""
        ...

    def close(self) -> None:
        """Say goodbye and close; harmless if it is closed."""
        ...

    def disown(self) -> None:
        """Let go of a connection of the parent process, without a word to the server."""
        ...


class Link:
    """The runner of a writer: one connection, opened when it is needed."""

    def __init__(self, connect: Callable[[], Wire], operate: Callable[[Call], Operation]) -> None:
        self._connect, self._operate = connect, operate
        self._wire: Wire | None = None

    def open(self) -> None:
        """Connect now, so that errors show early."""
        if self._wire is None:
            self._wire = self._connect()

    def run(self, batch: Sequence[Call]) -> None:
        """Give every call of the batch a result or an error."""
        try:
            again = self._attempt(batch, repeat=True)
            if again:
                self._attempt(again, repeat=False)
        except Exception as error:
            self.shut()
            for call in batch:
                call.result, call.error = None, _copied(error)
        except BaseException:  # a Ctrl-C between a request and its reply
            self.shut()
            raise

    def shut(self) -> None:
        """Close the connection; the next batch opens a new one."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def disown(self) -> None:
        """Forget the connection of the parent process."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.disown()

    def _attempt(self, batch: Sequence[Call], *, repeat: bool) -> list[Call]:
        """Run calls to their ends; return those that are worth another connection."""
        pending: list[tuple[Call, Operation, Any]] = []
        self.open()  # first: what an operation asks may depend on the server it meets
        for call in batch:
            call.result = call.error = None
            operation = self._operate(call)
            self._advance(call, operation, None, pending)
        again: list[Call] = []
        while pending:
            self.open()
            assert self._wire is not None
            replies = self._wire.exchange([request for _, _, request in pending])
            if not self._wire.usable():
                self.shut()
            answered, pending = zip(pending, replies, strict=True), []
            for (call, operation, _), reply in answered:
                if isinstance(reply, Unanswered):
                    if repeat and reply.again and call.what in REPEATABLE:
                        again.append(call)
                    else:
                        call.error = _copied(reply.error)
                else:
                    self._advance(call, operation, reply, pending)
        return again

    def _advance(self, call: Call, operation: Operation, reply: Any, pending: list[Any]) -> None:
        try:
            if isinstance(reply, Exception):
                request = operation.throw(reply)
            else:
                request = operation.send(reply)
            pending.append((call, operation, request))
        except StopIteration as done:
            call.result = done.value
        except Exception as error:
            call.error = error


def _copied(error: Exception) -> Exception:
    """Return an error of its own for each caller to raise."""
    if isinstance(error, FloodlineError):
        copy = type(error)(*error.args)
        copy.__cause__ = error.__cause__
        return copy
    mine = StoreUnavailable(f"{type(error).__name__}: {error}")
    mine.__cause__ = error
    return mine
