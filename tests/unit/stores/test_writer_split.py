"""Batches of two kinds of calls: nobody waits for the other kind, and nothing is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from floodline.errors import StoreClosed
from floodline.stores._postgres.store import apart
from floodline.stores._writer import Call, Writer


class Server:
    """A runner whose batches are answered one after the other, when the test says so."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.sent, self.answers = threading.Semaphore(0), threading.Semaphore(0)

    def run(self, batch: Sequence[Call]) -> None:
        self.batches.append([f"{call.what} {call.args[0]}" for call in batch])
        self.sent.release()
        self.answers.acquire()
        for call in batch:
            call.result = call.args[0]

    def answer(self) -> None:
        """Answer what was sent, and wait for the next batch."""
        self.answers.release()
        self.sent.acquire()

    def shut(self) -> None:
        pass

    def disown(self) -> None:
        pass


class Caller(threading.Thread):
    def __init__(self, writer: Writer, what: str, id: str) -> None:
        super().__init__(daemon=True)
        self.writer, self.call, self.said = writer, (what, id), None
        self.start()

    def run(self) -> None:
        self.said = self.writer.ask(*self.call)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def writer(server: Server) -> Iterator[Writer]:
    made = Writer(server, "here", apart)
    yield made
    for _ in range(99):
        server.answers.release()
    made.close()


def busy(server: Server, writer: Writer, *calls: tuple[str, str]) -> list[Caller]:
    """Let these calls wait, in this order, for the answer to another one."""
    callers = [Caller(writer, "load", "first")]
    server.sent.acquire()
    for number, call in enumerate(calls):
        callers.append(Caller(writer, *call))
        if number == 0:
            while not writer._waiting:  # the thread has this one, and waits to run it
                pass
        while number and writer._queue.qsize() < number:
            pass
    return callers


def end(server: Server, callers: Sequence[Caller]) -> None:
    for _ in range(9):
        server.answers.release()
    for caller in callers:
        caller.join()
        assert caller.said == caller.call[1]


def test_who_acquires_does_not_wait_for_those_who_save(server: Server, writer: Writer) -> None:
    mixed = [("acquire", "a"), ("save", "b"), ("acquire", "c"), ("save", "d")]
    callers = busy(server, writer, ("load", "second"), *mixed)
    server.answer()
    server.answer()
    assert server.batches[2:] == [["acquire a", "acquire c"]]
    again = Caller(writer, "save", "a")
    while not writer._queue.qsize():
        pass
    more = Caller(writer, "acquire", "e")
    while writer._queue.qsize() < 2:
        pass
    server.answer()
    callers[2].join()
    assert server.batches[3:] == [["save b", "save d", "save a"]]  # and not again `acquire e`
    server.answer()
    assert server.batches[4:] == [["acquire e"]]
    end(server, [*callers, again, more])


def test_nothing_overtakes_a_save_of_its_session(server: Server, writer: Writer) -> None:
    mixed = [("acquire", "a"), ("save", "b"), ("release", "b")]
    callers = busy(server, writer, ("load", "second"), *mixed)
    server.answer()
    server.answer()
    assert server.batches[2:] == [["acquire a", "save b", "release b"]]
    end(server, callers)


def test_what_was_put_off_is_done_before_the_end(server: Server, writer: Writer) -> None:
    callers = busy(server, writer, ("load", "second"), ("acquire", "a"), ("save", "b"))
    server.answer()
    server.answer()
    closing: Any = threading.Thread(target=writer.close)
    closing.start()
    while not writer._closed:
        pass
    server.answer()
    assert server.batches[2:] == [["acquire a"], ["save b"]]
    end(server, callers)
    closing.join()
    with pytest.raises(StoreClosed):
        writer.ask("load", "late")
