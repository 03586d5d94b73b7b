"""Runs the calls of an event loop on the loop itself: to wake a thread costs more than a call.

What its tasks ask for in one turn of the loop is sent together, while an earlier batch may be on
its way. If none is, a batch leaves as soon as half of the callers are there, so that the server
works for them while the loop works for the others.

Only what is quick and regular happens here. Connecting is left to a thread, and so is every call
whose reply is an error or whose connection broke: a `Writer` does it again, or says why not.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import AbstractEventLoop, _get_running_loop
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from time import monotonic
from typing import Any, NamedTuple

from floodline.errors import FloodlineError, StoreClosed
from floodline.stores._server.link import REPEATABLE, Operation
from floodline.stores._server.talk import Talk
from floodline.stores._writer import Call, Writer

_WORTH = 16  # calls of a loop before a connection is opened for it
_FLIGHTS = 2
_APART = 8  # calls that are worth a batch of their own
_MOST = 256
_AGAIN = 1.0  # seconds until another try to connect


WriterOf = Callable[[str, tuple[Any, ...]], Writer]


class _Begun(NamedTuple):
    """A call, and how far it got."""

    call: Call
    operation: Operation
    request: Any


class _Flight(NamedTuple):
    """A batch that was sent."""

    begun: list[_Begun]
    sent: Any
    at: float


class OnLoop:
    """Brings the calls of one event loop to a connection of its own."""

    def __init__(
        self,
        connect: Callable[[], Talk | None],
        operate: Callable[[Call], Operation],
        writer_of: WriterOf,
        patience: float,
    ) -> None:
        self._connect, self._operate, self._writer_of = connect, operate, writer_of
        self._patience = patience
        self._adopting = threading.Lock()
        self._closed = self._impossible = False
        self._reset()

    def _reset(self) -> None:
        self._loop: AbstractEventLoop | None = None
        self._talk: Talk | None = None
        self._pending: deque[Call] = deque()
        self._begun: list[_Begun] = []  # those with another request, ahead of what is pending
        self._flights: deque[_Flight] = deque()
        self._unsent: deque[memoryview] = deque()
        self._elsewhere = self._asked = 0
        self._scheduled = self._opening = self._watched = self._blocked = False
        self._next_try = 0.0
        self._enough = _APART

    def ask(self, what: str, args: tuple[Any, ...]) -> asyncio.Future[Any]:
        """Begin an operation; it is done even if the await is cancelled."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        call = Call(what, args, future)
        if self._closed or self._impossible or (loop is not self._loop and not self._adopt(loop)):
            self._writer_of(what, args).submit(call)
        elif self._talk is None:
            self._hand_over(call)
            self._open(loop)
        else:
            self._pending.append(call)
            if not self._scheduled:
                self._scheduled = True
                loop.call_soon(self._end_turn)
            elif len(self._pending) >= self._enough and not self._flights:
                self._flush()
        return future

    def close(self) -> None:
        """Finish what was sent and leave the rest to the threads, which are closed later."""
        self._closed = True
        loop = self._loop
        if loop is None or loop is _get_running_loop() or not loop.is_running():
            self._end()
            return
        ended = threading.Event()

        def end() -> None:
            self._end()
            ended.set()

        try:
            loop.call_soon_threadsafe(end)
            ended.wait(2 * self._patience)
        except RuntimeError:  # the loop was closed in the meantime
            self._end()

    def abandon(self) -> None:
        """Close without waiting: the store was collected, so nobody waits for an answer."""
        self._closed = True
        loop, error = self._loop, StoreClosed("the store was collected")
        if loop is None or loop is _get_running_loop() or not loop.is_running():
            self._leave(error, again=False)
            return
        with suppress(RuntimeError):  # the loop was closed in the meantime
            loop.call_soon_threadsafe(lambda: self._leave(error, again=False))

    def suspend(self, patience: float) -> bool:  # noqa: ARG002 - as others that have connections
        """Stay open in a process that forks: only the child lets go."""
        return False

    def resume(self) -> None:
        """Nothing was suspended."""

    def start_anew(self, *, inherited: bool) -> None:  # noqa: ARG002 - as others do
        """Forget in a forked child what belongs to its parent, whose selector it shares."""
        talk = self._talk
        self._adopting = threading.Lock()
        self._reset()
        if talk is not None:
            talk.disown()

    def _end(self) -> None:
        """Wait for the answers to what was sent, without the loop."""
        until = monotonic() + self._patience
        while self._flights and self._talk is not None and (left := until - monotonic()) > 0:
            with DefaultSelector() as ready:
                events = EVENT_READ | (EVENT_WRITE if self._unsent else 0)
                ready.register(self._talk.fileno(), events)
                for _, what in ready.select(left):
                    if what & EVENT_WRITE:
                        self._write()
                    if what & EVENT_READ:
                        self._readable()
        self._leave(StoreClosed("the store was closed"), again=True)

    # -- the connection

    def _adopt(self, loop: AbstractEventLoop) -> bool:
        """Work for this loop if there is no other one that may still run."""
        with self._adopting:
            if self._loop is not None and not self._loop.is_closed():
                return False
            talk = None if self._flights else self._talk
            if talk is not None:
                self._talk = None
            self._leave(StoreClosed("the event loop was closed"), again=True)
            self._reset()
            self._loop = loop
        if talk is not None:
            self._arrived(talk)
        return True

    def _open(self, loop: AbstractEventLoop) -> None:
        self._asked += 1
        if self._opening or self._asked < _WORTH or loop.time() < self._next_try:
            return
        self._opening = True

        def connect() -> None:
            talk: Talk | None = None
            try:
                talk = self._connect()
                self._impossible = talk is None
            except Exception:  # the thread that has the call meets it too, and says so
                pass
            try:
                loop.call_soon_threadsafe(self._opened, loop, talk)
            except RuntimeError:  # the loop was closed in the meantime
                if talk is not None:
                    talk.close()

        try:
            threading.Thread(target=connect, name="floodline-connect", daemon=True).start()
        except RuntimeError:  # at exit, or no more threads available
            self._opening = False

    def _opened(self, loop: AbstractEventLoop, talk: Talk | None) -> None:
        self._opening, self._next_try = False, loop.time() + _AGAIN
        if talk is not None and (self._closed or loop is not self._loop):
            talk.close()
        elif talk is not None:
            self._arrived(talk)

    def _arrived(self, talk: Talk) -> None:
        assert self._loop is not None
        try:
            self._loop.add_reader(talk.fileno(), self._readable)
        except NotImplementedError:  # of a loop that cannot
            self._impossible = True
            talk.close()
            return
        self._talk = talk

    def _leave(self, error: Exception, *, again: bool) -> None:
        """Let go of the connection; a thread does what has no reply, where that may be repeated."""
        talk, self._talk = self._talk, None
        loop = self._loop
        if talk is not None and loop is not None:
            if not loop.is_closed():
                loop.remove_reader(talk.fileno())
                loop.remove_writer(talk.fileno())
                self._next_try = loop.time() + _AGAIN
            talk.close()
        flights, self._flights = self._flights, deque()
        begun, self._begun = self._begun, []
        pending, self._pending = self._pending, deque()
        self._unsent.clear()
        self._blocked = False
        for flight in flights:
            for one in flight.begun:
                if again and one.call.what in REPEATABLE:
                    self._hand_over(one.call)
                elif talk is not None:
                    one.call.error = talk.unknown(error)
                    one.call.settle()
        for call in [*(one.call for one in begun), *pending]:
            self._hand_over(call)

    def _hand_over(self, call: Call) -> None:
        """Let a thread do it, and send nothing until that is done: it might overtake it."""
        caller = call.future
        assert caller is not None
        call.future = ended = caller.get_loop().create_future()  # cancelling undoes nothing

        def back(ended: asyncio.Future[Any]) -> None:
            ended.exception()  # has been seen: the call has it too
            self._elsewhere -= 1
            call.future = caller
            call.settle()
            if not self._elsewhere and self._talk is not None:
                self._flush()

        self._elsewhere += 1
        ended.add_done_callback(back)
        try:
            self._writer_of(call.what, call.args).submit(call)
        except FloodlineError as error:
            call.error = error
            call.settle()

    # -- sending

    def _end_turn(self) -> None:
        self._scheduled = False
        self._flush()

    def _flush(self) -> None:
        if self._talk is None:
            while self._pending:
                self._hand_over(self._pending.popleft())
            return
        while (self._begun or self._pending) and not self._elsewhere:
            if len(self._flights) >= _FLIGHTS:
                return
            self._send(self._talk, self._some())

    def _some(self) -> list[_Begun]:
        """Return what to send together."""
        batch, self._begun = self._begun, []
        for _ in range(min(len(self._pending), _MOST)):
            call = self._pending.popleft()
            self._advance(call, self._operate(call), None, batch)
        return batch

    def _send(self, talk: Talk, batch: list[_Begun]) -> None:
        if not batch:
            return
        assert self._loop is not None
        try:
            data, sent = talk.packed([one.request for one in batch])
        except Exception:  # of one that cannot be sent: a thread finds out which
            for one in batch:
                self._hand_over(one.call)
            return
        now = self._loop.time()
        last = len(self._flights[-1].begun) if self._flights else 0
        self._enough = max(_APART, (last + len(batch)) // 2)
        self._flights.append(_Flight(batch, sent, now))
        if not self._watched:
            self._watched = True
            self._loop.call_at(now + self._patience, self._watch)
        self._unsent.append(memoryview(data))
        if len(self._unsent) == 1:
            self._write()

    def _write(self) -> None:
        talk, loop = self._talk, self._loop
        if talk is None or loop is None:
            return
        try:
            while self._unsent:
                data = self._unsent[0]
                gone = talk.send(data)
                if gone < len(data):
                    self._unsent[0] = data[gone:]
                    if not self._blocked:
                        self._blocked = True
                        loop.add_writer(talk.fileno(), self._write)
                    return
                self._unsent.popleft()
            if self._blocked:
                self._blocked = False
                loop.remove_writer(talk.fileno())
        except OSError as error:
            self._leave(error, again=True)

    # -- receiving

    def _readable(self) -> None:
        talk = self._talk
        if talk is None:
            return
        try:
            talk.receive()
            while self._flights and (replies := talk.replies(self._flights[0].sent)) is not None:
                self._answer(talk, self._flights.popleft(), replies)
        except Exception as error:  # whatever it is, this connection is of no use any more
            self._leave(error, again=True)
        if not self._scheduled:
            self._flush()

    def _answer(self, talk: Talk, flight: _Flight, replies: Sequence[Any]) -> None:
        refused: Exception | None = None
        for one, reply in zip(flight.begun, replies, strict=True):
            if isinstance(reply, Exception):
                self._hand_over(one.call)
                if talk.moves_on(reply):
                    refused = reply
            else:
                self._advance(one.call, one.operation, reply, self._begun)
        if refused is not None:
            raise ConnectionError(str(refused))

    def _advance(self, call: Call, operation: Operation, reply: Any, begun: list[_Begun]) -> None:
        try:
            begun.append(_Begun(call, operation, operation.send(reply)))
            return
        except StopIteration as done:
            call.result = done.value
        except Exception as error:
            call.error = error
        call.settle()

    def _watch(self) -> None:
        """End the wait for an answer that does not come."""
        self._watched = False
        if not self._flights or self._talk is None or self._loop is None:
            return
        due = self._flights[0].at + self._patience
        if due <= self._loop.time():
            self._leave(TimeoutError("no answer for too long"), again=False)
        else:
            self._watched = True
            self._loop.call_at(due, self._watch)
