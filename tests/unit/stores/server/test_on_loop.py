"""The calls of a loop on its own connection, where the connection or the loop misbehaves."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from floodline.errors import FloodlineError, StoreClosed, StoreUnavailable
from floodline.stores._server import on_loop
from floodline.stores._server.on_loop import OnLoop
from floodline.stores._writer import Call, Writer


class Thread:
    """A runner that says it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def run(self, batch: Sequence[Call]) -> None:
        for call in batch:
            self.asked.append(call.args[0])
            call.result = f"thread {call.args[0]}"

    def shut(self) -> None:
        pass

    disown = shut


class Wire:
    """A talk over a pair of sockets, of which a test has the other one."""

    def __init__(self) -> None:
        self.mine, self.server = socket.socketpair()
        self.mine.setblocking(False)
        self.closed = self.disowned = False
        self.most, self.come = 1 << 20, b""

    def fileno(self) -> int:
        return self.mine.fileno()

    def packed(self, requests: Sequence[Any]) -> tuple[bytes, Any]:
        return b"".join(b"%s\n" % one.encode() for one in requests), len(requests)

    def send(self, data: memoryview) -> int:
        most, self.most = self.most, 1 << 20
        return self.mine.send(data[:most])

    def receive(self) -> None:
        come = self.mine.recv(1 << 16)
        if not come:
            raise ConnectionError("closed")
        self.come += come

    def replies(self, sent: int) -> list[Any] | None:
        lines = self.come.split(b"\n")
        if len(lines) <= sent:
            return None
        self.come = b"\n".join(lines[sent:])
        return [Refused(one.decode()) if one[:1] == b"-" else one.decode() for one in lines[:sent]]

    def unknown(self, error: BaseException) -> FloodlineError:
        return StoreUnavailable(f"unknown: {error}")

    def moves_on(self, error: Exception) -> bool:
        return "MOVED" in str(error)

    def close(self) -> None:
        self.closed = True
        self.mine.close()

    def disown(self) -> None:
        self.disowned = True


class Refused(Exception):
    pass


def operate(call: Call) -> Any:
    for _ in range(2 if call.args[0] == "twice" else 1):
        reply = yield call.args[0]
    if reply == "bad":
        raise StoreUnavailable("bad")
    return reply


@pytest.fixture
def thread() -> Thread:
    return Thread()


@pytest.fixture
def wires() -> Iterator[list[Any]]:
    """What connecting brings, the next last."""
    made: list[Any] = [Wire() for _ in range(3)]
    every = made.copy()
    yield made
    for one in every:
        one.mine.close()
        one.server.close()


@pytest.fixture
def line(
    thread: Thread, wires: list[Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., OnLoop]]:
    monkeypatch.setattr(on_loop, "_WORTH", 1)
    monkeypatch.setattr(on_loop, "_AGAIN", 0.0)
    writer = Writer(thread, "here")

    def make(patience: float = 60.0) -> OnLoop:
        def connect() -> Any:
            one = wires.pop()
            if isinstance(one, Exception):
                raise one
            return one

        return OnLoop(connect, operate, lambda _what, _args: writer, patience)

    yield make
    writer.close()


async def connected(line: OnLoop) -> Wire:
    assert await line.ask("load", ("first",)) == "thread first"
    await until(lambda: line._talk is not None)
    wire: Any = line._talk
    return wire


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(60_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it does not come true")


def test_an_operation_may_ask_twice(line: Any) -> None:
    async def main() -> None:
        wire = await connected(mine)
        asked = [mine.ask("load", (one,)) for one in ("twice", "once")]
        await asyncio.sleep(0)
        assert wire.server.recv(99) == b"twice\nonce\n"
        wire.server.send(b"1\n2")
        await asyncio.sleep(0.01)
        assert not asked[0].done()
        wire.server.send(b"\n")
        assert await asked[1] == "2"
        assert wire.server.recv(99) == b"twice\n"
        wire.server.send(b"3\n")
        assert await asked[0] == "3"

    mine = line()
    asyncio.run(main())
    mine.close()


def test_an_error_of_the_operation_is_raised(line: Any) -> None:
    async def main() -> None:
        wire = await connected(mine)
        asked = mine.ask("load", ("a",))
        wire.server.send(b"bad\n")
        with pytest.raises(StoreUnavailable, match="bad"):
            await asked

    mine = line()
    asyncio.run(main())
    mine.close()


def test_the_error_of_a_thread_is_raised_and_no_more_is_heard_of_it(
    line: Any, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(batch: Sequence[Call]) -> None:
        for call in batch:
            call.error = StoreUnavailable("down")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, said: heard.append(said))
        monkeypatch.setattr(thread, "run", fail)
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="down"):
                await mine.ask("load", ("a",))
        gc.collect()

    heard: list[Any] = []
    mine = line()
    monkeypatch.setattr(on_loop, "_WORTH", 99)
    asyncio.run(main())
    mine.close()
    gc.collect()
    assert heard == []


def test_nothing_overtakes_what_a_thread_has_although_it_was_cancelled(
    line: Any, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    run = thread.run

    def wait(batch: Sequence[Call]) -> None:
        held.wait(60)
        run(batch)

    async def main() -> None:
        wire = await connected(mine)
        monkeypatch.setattr(thread, "run", wait)
        mine._leave(OSError("cut"), again=True)
        first = mine.ask("load", ("a",))
        await until(lambda: mine._talk is not None)
        first.cancel()
        second = mine.ask("load", ("b",))
        await asyncio.sleep(0.01)
        assert not mine._flights
        held.set()
        await until(lambda: bool(mine._flights))
        assert thread.asked == ["first", "a"]
        assert wire.closed
        mine._talk.server.send(b"1\n")  # type: ignore[union-attr]  # it is a `Wire`
        assert await second == "1"

    mine = line()
    asyncio.run(main())
    mine.close()


def test_what_does_not_fit_is_sent_later(line: Any) -> None:
    async def main() -> None:
        wire = await connected(mine)
        wire.most = 3
        asked = mine.ask("load", ("abcdef",))
        await until(lambda: not mine._unsent and bool(mine._flights))
        assert wire.server.recv(99) == b"abcdef\n"
        assert not mine._blocked
        wire.server.send(b"1\n")
        assert await asked == "1"

    mine = line()
    asyncio.run(main())
    mine.close()


@pytest.mark.parametrize("fails", ["send", "receive", "replies", "packed"])
def test_a_thread_does_what_the_connection_cannot(
    fails: str, line: Any, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        wire = await connected(mine)

        def fail(*_: object) -> None:
            raise OSError("broken") if fails != "replies" else ValueError("nonsense")

        monkeypatch.setattr(wire, fails, fail)
        asked = [mine.ask("load", (one,)) for one in "ab"]
        wire.server.send(b"1\n2\n")
        assert await asyncio.gather(*asked) == ["thread a", "thread b"]
        assert wire.closed == (fails != "packed")

    mine = line()
    asyncio.run(main())
    mine.close()
    assert thread.asked == ["first", "a", "b"]


def test_a_server_that_cannot_serve_is_left(line: Any) -> None:
    async def main() -> None:
        for said, left in ((b"-WRONG\n", False), (b"-MOVED\n", True)):
            wire = await connected(mine)
            asked = mine.ask("load", ("a",))
            wire.server.send(said)
            assert await asked == "thread a"
            assert wire.closed == left
            assert (mine._talk is None) == left
            if not left:
                mine._leave(OSError("cut"), again=True)

    mine = line()
    asyncio.run(main())


def test_each_answer_has_its_own_time(line: Any) -> None:
    async def main() -> None:
        wire = await connected(mine)
        first = mine.ask("load", ("a",))
        await asyncio.sleep(0)
        flight = mine._flights[0]
        mine._flights[0] = flight._replace(at=flight.at + 1000.0)  # sent later than the watch began
        mine._watch()
        assert mine._watched
        assert not first.done()
        mine._flights[0] = flight._replace(at=flight.at - 1000.0)
        mine._watch()
        with pytest.raises(StoreUnavailable, match="unknown: no answer for too long"):
            await first
        assert wire.closed
        mine._watch()
        assert not mine._watched

    mine = line()
    asyncio.run(main())


def test_a_connection_that_came_too_late_is_closed(line: Any, wires: list[Any]) -> None:
    async def main() -> None:
        late = wires[-1]
        mine._adopt(asyncio.get_running_loop())
        mine.close()
        mine._opened(asyncio.get_running_loop(), late)
        assert late.closed
        assert mine._talk is None
        await asyncio.sleep(0)

    mine = line()
    asyncio.run(main())


def test_a_connection_for_a_loop_that_is_gone_is_closed(line: Any, wires: list[Any]) -> None:
    gone = asyncio.new_event_loop()
    gone.close()
    late, mine = wires[-1], line()

    class Clock:
        def time(self) -> float:
            return 1.0

        call_soon_threadsafe = gone.call_soon_threadsafe

    mine._open(Clock())
    for one in threading.enumerate():
        if one.name == "floodline-connect":
            one.join(60)
    assert late.closed


def test_who_cannot_connect_stays_with_the_thread(line: Any, wires: list[Any]) -> None:
    async def main() -> None:
        wires.append(ConnectionError("not now"))
        assert await mine.ask("load", ("a",)) == "thread a"
        await until(lambda: not mine._opening)
        assert mine._talk is None
        await connected(mine)

    mine = line()
    asyncio.run(main())
    mine.close()


def test_without_another_thread_nothing_is_opened(
    line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        assert await mine.ask("load", ("a",)) == "thread a"  # which has its thread now
        await until(lambda: not mine._opening)
        mine._leave(OSError("cut"), again=True)

        def refuse(_: object) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert await mine.ask("load", ("b",)) == "thread b"
        assert not mine._opening

    mine = line()
    asyncio.run(main())


def test_a_loop_that_watches_nothing_stays_with_the_thread(
    line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        def refuse(*_: object) -> None:
            raise NotImplementedError

        monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", refuse)
        assert await mine.ask("load", ("a",)) == "thread a"
        await until(lambda: mine._impossible)
        assert await mine.ask("load", ("b",)) == "thread b"
        assert mine._talk is None

    mine = line()
    asyncio.run(main())


def test_what_a_closed_loop_left_behind_is_done_by_the_thread(line: Any, thread: Thread) -> None:
    async def main() -> None:
        wire = await connected(mine)
        mine.ask("load", ("a",))
        mine.ask("delete", ("b",))  # may not be repeated: nobody hears what became of it
        mine._flush()
        mine.ask("load", ("c",))
        wires.append(wire)

    wires: list[Wire] = []
    mine = line()
    asyncio.run(main())
    assert asyncio.run(again(mine)) == "thread d"
    assert wires[0].closed
    assert sorted(thread.asked) == ["a", "c", "d", "first"]
    mine.close()


async def again(line: OnLoop) -> Any:
    return await line.ask("load", ("d",))


def test_a_thread_that_is_closed_says_so(line: Any) -> None:
    async def main() -> None:
        await connected(mine)
        asked = mine.ask("load", ("a",))
        mine._writer_of("", ()).close()
        mine._leave(OSError("cut"), again=True)
        with pytest.raises(StoreClosed):
            await asked

    mine = line()
    asyncio.run(main())


def test_closing_waits_for_answers_only_so_long(line: Any) -> None:
    async def main() -> None:
        wire = await connected(mine)
        wire.most = 0
        asked = mine.ask("load", ("a",))
        await asyncio.sleep(0)
        mine.close()
        assert wire.closed
        assert await asked == "thread a"

    mine = line(patience=0.05)
    asyncio.run(main())


def test_closing_in_the_moment_a_loop_ends(line: Any) -> None:
    class Ending:
        def is_running(self) -> bool:
            return True

        def is_closed(self) -> bool:
            return True

        def call_soon_threadsafe(self, *_: object) -> None:
            raise RuntimeError("Event loop is closed")

    for way in ("close", "abandon"):
        mine = line()
        mine._loop = Ending()
        getattr(mine, way)()
        assert mine._closed


def test_a_collected_store_closes_the_connection(line: Any) -> None:
    mine = line()
    wire = asyncio.run(connected(mine))
    mine.abandon()
    assert wire.closed


def test_a_forked_child_forgets_the_connection(line: Any) -> None:
    mine = line()
    wire = asyncio.run(connected(mine))
    assert not mine.suspend(1.0)
    mine.resume()
    mine.start_anew(inherited=True)
    assert wire.disowned
    assert mine._talk is None
    mine.start_anew(inherited=True)
