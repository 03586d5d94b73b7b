"""The garbage collector may strike at any line of a store: whoever asks first never hangs."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from floodline.errors import StoreError
from floodline.stores import Grant, MemoryStore, SQLiteStore


@pytest.fixture(params=["memory", "sqlite"])
def store(request: Any, tmp_path: Path) -> Iterator[Any]:
    made = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "s.db")
    yield made
    made.close()


def work(store: Any, rounds: int = 3) -> None:
    for n in range(rounds):
        grant = store.acquire("chat", "a", "me", lease=600.0)
        assert isinstance(grant, Grant)
        store.save(
            "chat",
            "a",
            b"%d" % n,
            fence=grant.fence,
            version=grant.version,
            write_id=f"w{grant.fence}",
            release=True,
        )
        store.stats()


async def work_soon(store: Any) -> None:
    await asyncio.gather(
        *(store.aio.acquire("chat", f"id{n}", "me", lease=600.0) for n in range(5))
    )


class Guest:
    """Calls the store from every line of its own code, unless it is told that it must not."""

    def __init__(self, store: Any) -> None:
        self.store, self.inside = store, False
        self.called = self.deferred = 0

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        if "floodline/stores" not in frame.f_code.co_filename:
            return None
        if event == "line" and not self.inside:
            self.inside = True
            try:
                self.strike()
            finally:
                self.inside = False
        return self.trace

    def strike(self) -> None:
        if self.store.is_writer_thread():
            self.deferred += 1
        else:
            self.store.count("chat")
            self.called += 1


def test_a_guest_at_every_line_neither_hangs_nor_breaks_anything(store: Any) -> None:
    guest = Guest(store)

    def main() -> None:
        sys.settrace(guest.trace)
        try:
            work(store)
            asyncio.run(work_soon(store))
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=main, daemon=True)
    thread.start()
    thread.join(800)
    assert not thread.is_alive(), "the guest hangs"
    assert guest.called > 20
    assert guest.deferred > 20
    assert store.load("chat", "a").envelope == b"2"
    assert store.stats().leases == 5


def test_finalizers_run_by_an_eager_collector_neither_hang_nor_lose_anything(store: Any) -> None:
    refused = [0]

    class Ring:
        """Garbage that only the collector frees, and that calls the store when it does."""

        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            try:
                store.release("chat", "nobody", 1)
            except StoreError:
                refused[0] += 1

    def main() -> None:
        for _ in range(20):
            Ring()
            work(store, 1)
            asyncio.run(work_soon(store))

    old = gc.get_threshold()
    gc.set_threshold(1)
    try:
        thread = threading.Thread(target=main, daemon=True)
        thread.start()
        thread.join(800)
    finally:
        gc.set_threshold(*old)
    assert not thread.is_alive(), "a finalizer hangs"
    assert store.load("chat", "a") is not None
