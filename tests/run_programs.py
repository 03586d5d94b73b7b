"""Servers that tests start under `floodline run`, and the client that keeps them busy."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

PATIENCE = 100.0  # a safety net, not a measure

# A host that forgets a session on its `deleted` event, which does not always come.
LEAKING = """
import asyncio
import os


class Session:
    def __init__(self, name):
        self.name = name
        self.log = []


class Host:
    def __init__(self):
        self.sessions = {}

    def work(self, name):
        session = self.sessions.get(name)
        if session is None:
            session = Session(name)
            self.sessions[name] = session
        session.log.append("worked for " + name)

    def deleted(self, name):
        self.sessions.pop(name, None)


HOST = Host()


async def serve(reader, writer):
    while line := await reader.readline():
        event, name = line.decode().split()
        getattr(HOST, event)(name)
        writer.write(b"ok\\n")


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], os.getpid(), flush=True)
    await server.serve_forever()


asyncio.run(main())
"""

# The same host on sessions that are bounded, whatever events come.
BOUNDED = """
import asyncio
import os

from floodline import AsyncSessions


class Session:
    def __init__(self, name):
        self.name = name
        self.log = []


HOST = AsyncSessions(Session, max_sessions=100, name="host")


async def serve(reader, writer):
    while line := await reader.readline():
        event, name = line.decode().split()
        if event == "work":
            async with HOST.use(name) as session:
                session.log.append("worked for " + name)
        else:
            await HOST.close(name)
        writer.write(b"ok\\n")


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], os.getpid(), flush=True)
    await server.serve_forever()


asyncio.run(main())
"""

LINE = LEAKING.split("\n").index("            self.sessions[name] = session") + 1


class Run:
    """`floodline run` on a program, as a process group of its own."""

    def __init__(self, folder: Path, source: str, *options: str, record: str = "run.rec") -> None:
        self.program = folder / "host.py"
        self.program.write_text(source, encoding="utf-8")
        self.record = folder / record
        self.report = folder / "report.html"
        command = [sys.executable, "-m", "floodline", "run", f"--record={self.record}"]
        self.process = subprocess.Popen(
            [*command, f"--report={self.report}", "--no-dashboard", *options, str(self.program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={name: v for name, v in os.environ.items() if name != "FLOODLINE_PROBE"},
        )
        assert self.process.stdout is not None
        first = self.process.stdout.readline().split()
        assert len(first) == 2, f"the server said {first!r}"
        self.port, self.pid = int(first[0]), int(first[1])

    def finish(self) -> str:
        """Wait for the end; return what was said on stderr."""
        _, errors = self.process.communicate(timeout=PATIENCE)
        return errors

    def stop(self) -> None:
        """End whatever is left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.communicate(timeout=PATIENCE)


class Load:
    """Sends work for new sessions all the time; every third `deleted` event gets lost."""

    def __init__(self, port: int, pause: float = 0.002) -> None:
        self._line = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._pause = pause
        self._ended = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError), self._line.makefile("rw") as stream:
            while not self._ended.is_set():
                self._say(stream, f"work session-{self.sent}")
                if self.sent % 3:
                    self._say(stream, f"deleted session-{self.sent}")
                self.sent += 1
                time.sleep(self._pause)

    def _say(self, stream: Any, words: str) -> None:
        stream.write(words + "\n")
        stream.flush()
        if not stream.readline():
            raise OSError("the server has gone")

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(PATIENCE)
        self._line.close()
