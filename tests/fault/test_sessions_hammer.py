"""Sixteen threads on fifty ids, with a store and hooks that fail at random: nothing is lost."""

from __future__ import annotations

import contextlib
import gc
import random
import threading
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from floodline import Reason, Sessions, SessionScope
from floodline.errors import SaveFailed, SessionBusy, SessionClosed, SessionsFull
from floodline.stores import MemoryStore, SQLiteStore
from worker_threads import Worker, assert_balanced, until

THREADS, IDS, SECONDS, LIMIT = 16, 50, 2.5, 20


class Injected(Exception):
    """What hooks and stores raise here."""


class Flaky:
    """A store that raises at random, before the work or after it."""

    def __init__(self, store: Any, chance: random.Random) -> None:
        self._store, self._chance = store, chance
        self.odds = 0.02

    def __getattr__(self, method: str) -> Any:
        real = getattr(self._store, method)
        if not callable(real) or method == "is_writer_thread":
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            dice = self._chance.random()
            if dice < self.odds:
                raise Injected(f"before {method}")
            answer = real(*args, **kwargs)
            if dice > 1 - self.odds:
                raise Injected(f"after {method}")
            return answer

        return call


class Hammer:
    """The threads, and the book of what they were told."""

    def __init__(self, store: Any, durability: Any, seed: int) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        self.store = Flaky(store, random.Random(seed + 1))
        self.lock = threading.Lock()
        self.alive: Counter[str] = Counter()
        self.acknowledged: dict[tuple[str, str], list[int]] = {}
        self.closes: Counter[str] = Counter()
        self.surprises: list[str] = []
        self.calm = False
        self.scope = SessionScope()
        self.notes: Any = self.scope.map("notes")
        self.sessions: Sessions[dict[str, Any]] = Sessions(
            self.make,
            store=self.store,
            durability=durability,
            max_sessions=LIMIT,
            scope=self.scope,
            on_open=self.opened,
            on_leave=self.left,
            wait="50 ms",
            busy_wait="1 s",
            sweep_every="20 ms",
            name="hammer",
        )

    def dice(self, odds: float) -> bool:
        return not self.calm and random.random() < odds

    def make(self, id: str) -> dict[str, Any]:
        if self.dice(0.02):
            raise Injected("factory")
        return {"life": uuid.uuid4().hex, "n": 0}

    def opened(self, id: str, state: dict[str, Any]) -> None:
        if self.dice(0.02):
            raise Injected("on_open")
        with self.lock:
            self.alive[id] += 1
            if self.alive[id] != 1:
                self.surprises.append(f"{self.alive[id]} live objects for {id}")

    def left(self, id: str, state: dict[str, Any], reason: Reason) -> None:
        with self.lock:
            self.alive[id] -= 1
        if self.dice(0.05):
            raise Injected("on_leave")

    def use(self, one: str, chance: random.Random) -> None:
        with self.sessions.use(one, wait=chance.choice([None, 0, 0.01, 0.2])) as state:
            state["n"] += 1
            said = (one, state["life"]), state["n"]
            self.notes[one] = state["n"]
            if chance.random() < 0.05:
                raise Injected("body")
            if chance.random() < 0.05:
                time.sleep(0.001)  # others queue up
        with self.lock:
            self.acknowledged.setdefault(said[0], []).append(said[1])

    def enough(self) -> bool:
        """However slow the machine and its disk: so much must have happened."""
        return len(self.acknowledged) > IDS and self.sessions.stats().hook_errors > 0

    def work(self, seed: int, until: float) -> None:
        chance = random.Random(seed)
        while time.monotonic() < until or not self.enough():
            one, dice = f"id{chance.randrange(IDS)}", chance.random()
            try:
                if dice < 0.80:
                    self.use(one, chance)
                elif dice < 0.87:
                    with self.sessions.use(one, shared=True, create=chance.random() < 0.5):
                        pass
                elif dice < 0.93:
                    (self.sessions.park, self.sessions.complete)[dice < 0.9](one)
                elif dice < 0.97:
                    with self.lock:
                        self.closes[one] += 1
                    self.sessions.close(one)
                else:
                    self.sessions.sweep()
            except (Injected, SessionBusy, SessionsFull, SessionClosed, SaveFailed, KeyError):
                continue
            if self.sessions.stats().items > LIMIT:
                self.surprises.append("above the bound")

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        workers = [Worker(self.work, self.seed + n, end) for n in range(THREADS)]
        for worker in workers:
            worker.result()
        assert self.enough()

    def settle(self) -> None:
        """Stop the faults, and let what failed be saved."""
        self.store.odds, self.calm = 0.0, True
        until(lambda: self.sessions.sweep() == 0 and self.sessions.stats().unsaved == 0)

    def check(self) -> None:
        lives: dict[str, set[str]] = {}
        for (one, life), numbers in self.acknowledged.items():
            assert len(set(numbers)) == len(numbers), (self.seed, one, "an update was overwritten")
            lives.setdefault(one, set()).add(life)
        for one, known in lives.items():
            with self.sessions.use(one) as state:
                numbers = self.acknowledged.get((one, state["life"]), [0])
                assert state["n"] >= max(numbers), (self.seed, one)
                ended = len(known - {state["life"]})
            assert ended <= self.closes[one], (self.seed, one, "a session was lost")


@pytest.mark.parametrize("durability", ["use", "park"])
@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_threads_that_hammer_a_failing_store_lose_nothing(
    kind: str, durability: str, tmp_path: Path
) -> None:
    gc.collect()  # what earlier tests left is no file of ours
    threads, files = set(threading.enumerate()), open_files()
    store: Any = SQLiteStore(tmp_path / "s.db") if kind == "sqlite" else MemoryStore()
    hammer = Hammer(store, durability, random.randrange(10**9))
    hammer.run(SECONDS if kind == "sqlite" else SECONDS / 2)
    hammer.settle()
    assert hammer.surprises == [], hammer.seed
    assert_balanced(hammer.sessions)
    assert hammer.sessions.stats().conflicts == 0, hammer.seed
    hammer.check()
    assert hammer.sessions.shutdown() == 0
    assert +hammer.alive == Counter(), hammer.seed
    assert -hammer.alive == Counter(), hammer.seed
    assert len(hammer.notes) == 0
    assert store.stats().leases == 0
    store.close()
    until(lambda: set(threading.enumerate()) <= threads)
    assert not open_files() - files


def open_files() -> set[str]:
    """Return what is open and where it leads: the folder that is being listed is not among it."""
    found, folder = set(), Path("/proc/self/fd")
    for fd in folder.iterdir() if folder.exists() else ():
        with contextlib.suppress(OSError):
            found.add(f"{fd.name} {fd.readlink()}")
    return found
