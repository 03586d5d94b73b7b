"""Processes on one store, stopped beyond their leases and killed: no acknowledged use is lost."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

import appending_process
from appending_process import IDS
from floodline import Sessions

Entry = tuple[int, int]  # the token of a process, and its counter
PROCESSES = 4
LOCKED = ("SaveFailed", "StoreUnavailable")  # what a process gets while the file is locked


def complaints(entries: Sequence[Entry], acknowledged: Mapping[Entry, int]) -> list[str]:
    """What is wrong with the entries of one id; `acknowledged` has the place of each entry."""
    found = [
        f"{entry} is there {times} times" for entry, times in Counter(entries).items() if times > 1
    ]
    found += [f"{entry} is lost" for entry in acknowledged.keys() - set(entries)]
    found += [
        f"{entry} was acknowledged at {acknowledged[entry]} and is at {place}"
        for place, entry in enumerate(entries)
        if acknowledged.get(entry, place) != place
    ]
    latest: dict[int, int] = {}
    for token, counter in entries:
        if counter < latest.get(token, 0):
            found.append(f"{token, counter} comes after {token, latest[token]}")
        latest[token] = counter
    return found


class Appender:
    """One process that appends, and what it has written to its log."""

    def __init__(self, folder: Path, token: int) -> None:
        self.token = token
        self.lines: list[list[str]] = []
        self._rest = b""
        self.errors = folder / f"{token}.err"
        log = folder / f"{token}.log"
        log.touch()
        self._log = log.open("rb")
        with self.errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, appending_process.__file__),
                    *(f"sqlite:///{folder / 'sessions.db'}", log, str(token)),
                ],
                stdin=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
            )

    def read(self) -> None:
        *whole, self._rest = (self._rest + self._log.read()).split(b"\n")
        self.lines += [line.decode().split() for line in whole]

    def ended(self) -> bool:
        return self._process.poll() is not None

    def tell(self, order: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(order)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self._process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), (status, self.errors.read_text())

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        assert self._process.wait(400) == -signal.SIGKILL, self.errors.read_text()
        self._close()

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(400) == 0, self.errors.read_text()
        self._close()

    def _close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self.read()
        self._log.close()


class Campaign:
    """Four processes that append, and the blows that hit them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.seen: Counter[str] = Counter()
        self.appenders: list[Appender] = []
        self.running = [self.start() for _ in range(PROCESSES)]

    def start(self) -> Appender:
        self.appenders.append(Appender(self.folder, len(self.appenders) + 1))
        return self.appenders[-1]

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 300  # for what hangs
        while not condition():
            assert time.monotonic() < deadline, [one.lines[-1:] for one in self.running]
            threading.Event().wait(0.005)
            for one in self.running:
                assert not one.ended(), one.errors.read_text()
                one.read()

    def wait_for_uses(self, number: int) -> None:
        """Wait until the processes have left so many more uses; refused ones count."""
        goal = sum(len(one.lines) for one in self.running) + number
        self.wait_until(lambda: sum(len(one.lines) for one in self.running) >= goal)

    def replace(self, victim: Appender) -> None:
        victim.kill()
        self.seen["kills"] += 1
        self.running[self.running.index(victim)] = self.start()

    def kill(self, victim: Appender) -> None:
        self.replace(victim)

    def stop_anywhere(self, victim: Appender) -> None:
        self.stop(victim)
        others = {one: len(one.lines) for one in self.running if one is not victim}

        def went_on() -> bool:
            new = [line for one, number in others.items() for line in one.lines[number:]]
            # if it was stopped with the lock of the file, the others get nothing but refusals
            return len(new) >= 60 or any(line[0] == "refused" for line in new)

        self.wait_until(went_on)
        victim.go_on()

    def stop_in_a_use(self, victim: Appender) -> None:
        """Stop it in a use until another process has used the session: its lease is gone."""
        since = self.stop_until_its_session_was_used(victim)
        victim.go_on()
        victim.tell(b"g")
        self.wait_until(lambda: len(victim.lines) > since)
        outcome = victim.lines[since]
        assert (outcome[0], outcome[-1]) == ("refused", "SessionConflict")

    def kill_in_a_stopped_use(self, victim: Appender) -> None:
        self.stop_until_its_session_was_used(victim)
        self.replace(victim)

    def stop(self, victim: Appender) -> None:
        victim.stop()
        self.seen["stops"] += 1

    def stop_until_its_session_was_used(self, victim: Appender) -> int:
        """Return how many lines the victim had written when it was stopped."""
        known = {one: len(one.lines) for one in self.running}
        victim.tell(b"h")
        self.wait_until(lambda: victim.lines[-1:] != [] and victim.lines[-1][0] == "held")
        self.stop(victim)
        _, held, _, place = victim.lines[-1]

        def new() -> list[list[str]]:
            return [line for one, number in known.items() for line in one.lines[number:]]

        def was_used() -> bool:
            # The line of an earlier use may come late, so the place decides.
            return any(line[:2] == ["done", held] and int(line[3]) >= int(place) for line in new())

        def count(*last: str) -> int:
            return sum(line[0] in last or line[-1] in last for line in new())

        while not was_used():
            self.wait_until(partial(lambda n: was_used() or count(*LOCKED) > n, count(*LOCKED)))
            if not was_used():  # its renewal was stopped with the lock of the file: let it finish
                done = count("done")
                victim.go_on()
                self.wait_until(partial(lambda n: count("done") > n, done))
                self.stop(victim)
        return len(victim.lines)

    def end(self) -> None:
        for one in self.running:
            one.end()

    def abandon(self) -> None:
        """Leave no process behind when the test has failed."""
        for one in self.running:
            if not one.ended():
                one.kill()

    def check(self) -> list[str]:
        acknowledged: dict[str, dict[Entry, int]] = {one: {} for one in IDS}
        for appender in self.appenders:
            for what, one, counter, *more in appender.lines:
                self.seen[more[0] if what == "refused" else what] += 1
                if what == "done":
                    acknowledged[one][appender.token, int(counter)] = int(more[0])
        found = []
        store = f"sqlite:///{self.folder / 'sessions.db'}"
        sessions: Sessions[dict[str, list[list[int]]]] = Sessions(dict, store=store)
        with sessions:
            for one, places in acknowledged.items():
                with sessions.use(one) as state:
                    entries = [(token, counter) for token, counter in state.get("entries", [])]
                found += [f"{one}: {complaint}" for complaint in complaints(entries, places)]
        return found


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
@pytest.mark.parametrize(
    ("blows", "seed"),
    [
        pytest.param(2, 1, id="short"),
        pytest.param(60, 2, id="long", marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_no_acknowledged_use_is_lost_doubled_or_moved(
    tmp_path: Path, blows: int, seed: int
) -> None:
    campaign = Campaign(tmp_path, seed)
    try:
        plan = [
            campaign.kill,
            campaign.stop_anywhere,
            campaign.stop_in_a_use,
            campaign.kill_in_a_stopped_use,
        ] * blows
        campaign.chance.shuffle(plan)
        for blow in plan:
            campaign.wait_for_uses(campaign.chance.randrange(1, 60))
            blow(campaign.chance.choice(campaign.running))
        campaign.end()
        assert campaign.check() == []
    finally:
        campaign.abandon()
    logging.getLogger(__name__).info("seen: %s", dict(campaign.seen))  # with --log-cli-level=INFO
    assert campaign.seen["SessionConflict"] >= blows
    assert campaign.seen["done"] > 10 * len(plan)


ENTRIES: list[Entry] = [(1, 1), (2, 1), (1, 2), (2, 5), (1, 3)]
ACKNOWLEDGED = {entry: place for place, entry in enumerate(ENTRIES) if entry != (2, 5)}


def test_the_checker_accepts_what_is_whole() -> None:
    assert complaints(ENTRIES, ACKNOWLEDGED) == []
    assert complaints([], {}) == []


def test_the_checker_allows_an_unacknowledged_entry_to_be_missing() -> None:
    acknowledged = {(1, 1): 0, (1, 2): 1}
    assert complaints([(1, 1), (1, 2)], acknowledged) == []
    assert complaints([(1, 1), (1, 2), (1, 3)], acknowledged) == []


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        (ENTRIES[:-1], "(1, 3) is lost"),
        ([], "(1, 1) is lost"),
        ([*ENTRIES, (1, 3)], "(1, 3) is there 2 times"),
        ([*ENTRIES, (2, 5)], "(2, 5) is there 2 times"),  # never acknowledged
        ([(1, 2), (2, 1), (1, 1), (2, 5), (1, 3)], "(1, 1) comes after (1, 2)"),
        ([(2, 1), (1, 1), *ENTRIES[2:]], "(1, 1) was acknowledged at 0 and is at 1"),
    ],
    ids=[
        "lost",
        "all lost",
        "doubled",
        "doubled unacknowledged",
        "swapped",
        "swapped with another",
    ],
)
def test_the_checker_reports(entries: list[Entry], complaint: str) -> None:
    assert complaint in complaints(entries, ACKNOWLEDGED)
