"""The two processes of a demo, and what is measured of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import click
import psutil

from floodline.leaks._vocabulary import Outcome
from floodline.soak import _child
from floodline.soak._answer import ChildRecord
from floodline.web._words.phrases import DASHBOARD_AT

VERSIONS = ("leaky", "bounded")
RUN = ("-m", "floodline", "run", "--port", "0")
EVERY = 0.2  # seconds between two measurements
PATIENCE = 5.0  # seconds that a process gets to end


class Player:
    """A version of the system that is soaked in a process of its own."""

    def __init__(self, folder: Path, version: str, rounds: int, scratch: Path) -> None:
        self.folder, self.version = folder, version
        self.curve: list[tuple[float, int]] = []
        self.record: ChildRecord | None = None
        self.status: int | None = None
        self.done = 0  # rounds
        self._out = scratch / f"{version}.json"
        self._progress = scratch / f"{version}.progress"
        self._began = time.monotonic()
        request = {
            "scenario": str(folder / "scenario.py"),
            "rounds": rounds,
            "out": str(self._out),
            "progress": str(self._progress),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-B", _child.__file__, json.dumps(request)],
            env={**os.environ, "VERSION": version},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the demo alone, which then ends it
        )

    @property
    def verdict(self) -> Outcome | None:
        """The verdict, once there is one."""
        return None if self.record is None else Outcome(self.record["answer"]["verdict"])

    def measure(self) -> bool:
        """Add a point to the curve; return False once the process has ended."""
        with suppress(OSError, ValueError, IndexError):  # nothing yet, or half a line
            self.done = int(self._progress.read_bytes()[-200:].splitlines()[-1].split()[0]) + 1
        self.status = self.process.poll()
        if self.status is None:
            with suppress(psutil.Error):
                if size := psutil.Process(self.process.pid).memory_info().rss:  # 0 as it ends
                    self.curve.append((round(time.monotonic() - self._began, 2), size))
            return True
        if self.record is None and self._out.exists():
            self.record = json.loads(self._out.read_text(encoding="utf-8"))
        return False


class Drawing(Protocol):
    """Whatever shows the players while they run."""

    def draw(self, players: list[Player]) -> None:
        """Show the current curves."""


def play_until_done(folder: Path, rounds: int, drawing: Drawing) -> list[Player]:
    """Run both versions at the same time; none is left running, whatever happens."""
    with tempfile.TemporaryDirectory(prefix="floodline-demo-") as scratch, _ending() as processes:
        players = []
        for version in VERSIONS:
            players.append(Player(folder, version, rounds, Path(scratch)))
            processes.append(players[-1].process)
        running = players
        while running:
            drawing.draw(players)
            time.sleep(EVERY)
            running = [player for player in running if player.measure()]
        drawing.draw(players)
        return players


def watch_on_dashboards(folder: Path) -> int:
    """Run both versions under `floodline run` until Ctrl-C, and print what it says about each."""
    try:
        from floodline.web._dashboard.server_thread import listen  # noqa: F401  # to fail before anything is started
    except ImportError:
        raise click.UsageError(
            "--web needs the extra web; run: pip install 'floodline[web]'"
        ) from None
    told: dict[str, list[str]] = {version: [] for version in VERSIONS}
    click.echo("Both run until Ctrl-C. Their dashboards:")
    with _ending() as processes:
        readers = []
        with suppress(KeyboardInterrupt):
            for version in VERSIONS:
                process = subprocess.Popen(
                    [sys.executable, *RUN, str(folder.parent / "play.py"), folder.name, version],
                    stdin=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
                processes.append(process)
                reader = threading.Thread(
                    target=_follow, args=(process, version, told[version]), daemon=True
                )
                reader.start()
                readers.append(reader)
            for process in processes:
                process.wait()
        for process in processes:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
        for reader in readers:
            reader.join(PATIENCE)
    for version, lines in told.items():
        click.echo(f"\n{version}.py\n" + "".join(lines).strip())
    return 0


def _follow(process: subprocess.Popen[str], version: str, lines: list[str]) -> None:
    assert process.stderr is not None
    with process.stderr as said:
        for line in said:
            _, announced, address = line.partition(DASHBOARD_AT)
            if announced:
                click.echo(f"{version:<8} {address.strip()}")
            elif not line.startswith("floodline:"):
                lines.append(line)


@contextmanager
def _ending() -> Iterator[list[subprocess.Popen[Any]]]:
    """Yield a list for processes; all of them have ended when the block is left."""
    processes: list[subprocess.Popen[Any]] = []
    try:
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
