"""The leaking chat under `floodline run`, with load: for tests, and for the README's picture."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVER = Path(__file__).with_name("leaking_chat.py")
CULPRIT = "PlanService._services"


class Load(threading.Thread):
    """Users who come, talk, and go; every third tells that it goes."""

    def __init__(self, port: int, pause: float) -> None:
        super().__init__(daemon=True)
        self._port, self._pause = port, pause
        self._end = threading.Event()

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=100)
        number = 0
        while not self._end.wait(self._pause):
            number += 1
            paths = [f"/user-{number}"] + [f"/user-{number}/close"] * (number % 3 == 0)
            for path in paths:
                try:
                    connection.request("GET", path)
                    connection.getresponse().read()
                except (OSError, http.client.HTTPException):
                    return  # the server has been ended

    def stop(self) -> None:
        self._end.set()
        self.join(100)


class Watched:
    """A run under way: `url` of the dashboard, `pid` of `floodline run`."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url, self.process = url, process

    def end(self) -> int:
        """End the program as a terminal or a service manager would."""
        self.process.terminate()
        return self.process.wait(100)


@contextmanager
def watched_chat(recording: Path, *options: str, pause: float = 0.01) -> Iterator[Watched]:
    """Start recorder, server and load; end all of them."""
    words = [sys.executable, "-m", "floodline", "run", "--port", "0", "--record", str(recording)]
    # not measured for coverage, which would slow the server and what watches it
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    with subprocess.Popen(
        [*words, *options, str(SERVER)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean,
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        load = None
        try:
            url = next(line for line in process.stderr if "dashboard at" in line).split()[-1]
            # nobody must wait for us to read what it says
            threading.Thread(target=process.stderr.read, daemon=True).start()
            load = Load(int(process.stdout.readline()), pause)
            load.start()
            yield Watched(url, process)
        finally:
            process.terminate()
            if load is not None:
                load.stop()
