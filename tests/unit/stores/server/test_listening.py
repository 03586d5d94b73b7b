"""Hearing from other processes, without a server."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any
from weakref import WeakMethod

import pytest

from floodline.stores._server import listening
from floodline.stores._server.listening import Listener
from worker_threads import PATIENCE, Worker


class FakeEar:
    """Says what a test puts into `said`; an exception among it is raised."""

    def __init__(self) -> None:
        self.said: deque[Any] = deque()
        self.spoken, self.closed = threading.Semaphore(0), threading.Event()

    def say(self, word: Any) -> None:
        self.said.append(word)
        self.spoken.release()

    def hear(self, _: float) -> list[bytes]:
        assert self.spoken.acquire(timeout=PATIENCE)
        word = self.said.popleft()
        if isinstance(word, Exception):
            raise word
        return [word] if word else []

    def interrupt(self) -> None:
        self.say(OSError("interrupted"))

    def close(self) -> None:
        self.closed.set()

    disown = close


class Ears:
    """Hands out ears, or refuses to."""

    def __init__(self) -> None:
        self.made: list[FakeEar] = []
        self.refuse = 0
        self.new = threading.Semaphore(0)

    def __call__(self) -> FakeEar:
        if self.refuse:
            self.refuse -= 1
            raise OSError("nobody there")
        self.made.append(FakeEar())
        self.new.release()
        return self.made[-1]

    def next(self) -> FakeEar:
        assert self.new.acquire(timeout=PATIENCE)
        return self.made[-1]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_FIRST_PAUSE", 0.001)


def ended(listener: Listener) -> None:
    listener.close()
    assert listener._thread is None


def test_a_bell_rings_for_its_own_lease_and_once() -> None:
    ears = Ears()
    listener = Listener(ears)
    mine, other = listener.bell(b"a"), listener.bell(b"b")
    ear = ears.next()
    for bell in (mine, other):
        assert bell.wait(PATIENCE)  # what was said before we listened is not known
    assert listener.bell(b"c").wait(0)  # nor what was said before there was a bell
    assert not mine.wait(0)
    ear.say(b"fa")
    assert mine.wait(PATIENCE)
    assert not other.wait(0)
    ended(listener)
    assert ear.closed.is_set()


def test_a_bell_rings_for_a_task_too() -> None:
    async def main() -> None:
        ears = Ears()
        listener = Listener(ears)
        bell = listener.bell(b"a")
        assert await bell.wait_soon(PATIENCE)
        asyncio.get_running_loop().call_soon(ears.next().say, b"fa")
        assert await bell.wait_soon(PATIENCE)
        assert not await bell.wait_soon(0)
        bell.close()
        await asyncio.to_thread(ended, listener)

    asyncio.run(main())


def test_a_bell_whose_loop_is_over_is_rung_in_vain() -> None:
    bell = listening.Bell(b"a", {})
    loop = asyncio.new_event_loop()
    bell._future = loop.create_future()
    loop.close()
    bell.ring()
    assert bell.wait(0)


class Owner:
    def __init__(self) -> None:
        self.calls = threading.Semaphore(0)

    def told(self) -> None:
        self.calls.release()


def test_an_owner_hears_who_wants_its_sessions_as_long_as_it_lives() -> None:
    ears, owner = Ears(), Owner()
    listener = Listener(ears)
    listener.tell("me", b"me", WeakMethod(owner.told))
    assert listener.tells("me")
    ear = ears.next()
    assert owner.calls.acquire(timeout=PATIENCE)  # for what was said before
    ear.say(b"wyou")
    ear.say(b"wme")
    assert owner.calls.acquire(timeout=PATIENCE)
    assert not owner.calls.acquire(blocking=False)
    del owner
    for _ in range(3):
        ear.say(b"")  # silence
    assert ear.closed.wait(PATIENCE)
    assert not listener.tells("me")
    ended(listener)


def test_a_connection_that_breaks_or_is_refused_is_opened_again() -> None:
    ears = Ears()
    listener = Listener(ears)
    bell = listener.bell(b"a")
    first = ears.next()
    assert bell.wait(PATIENCE)
    ears.refuse = 3
    first.say(OSError("cut"))
    assert ears.next() is not first
    assert bell.wait(PATIENCE)
    assert ears.refuse == 0
    assert listener._pause == listening._FIRST_PAUSE
    ended(listener)


def test_a_thread_that_nobody_needs_ends_and_another_begins() -> None:
    ears = Ears()
    listener = Listener(ears)
    bell = listener.bell(b"a")
    ear = ears.next()
    assert bell.wait(PATIENCE)
    bell.close()
    for _ in range(3):
        ear.say(b"")
    assert ear.closed.wait(PATIENCE)
    assert listener.bell(b"a").wait(PATIENCE)
    assert ears.next() is not ear
    ended(listener)
    listener.bell(b"a")
    assert listener._thread is None  # it is closed


def test_a_thread_that_cannot_start_leaves_everybody_to_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    listener = Listener(Ears())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert not listener.bell(b"a").wait(0)
    assert listener._thread is None
    with listener._starting:
        assert not listener.bell(b"a").wait(0)
    assert Worker(listener.bell, b"a").result().wait(PATIENCE)
    ended(listener)


def test_a_child_starts_with_nothing_and_says_nothing() -> None:
    ears = Ears()
    listener = Listener(ears)
    bell = listener.bell(b"a")
    ear = ears.next()
    assert bell.wait(PATIENCE)
    assert not listener.suspend(1.0)
    listener.resume()
    thread = listener._thread
    listener.start_anew(inherited=True)
    assert ear.closed.is_set()
    assert listener._thread is None
    assert thread is not None
    ear.interrupt()
    thread.join(PATIENCE)
