"""Worker processes that read files side by side, each asked by a thread of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import NamedTuple

from floodline.scan._sources.worker import Answer, receive, send

MANY_READERS = 4  # by default: each takes some 30 MB, and linking the files takes one core anyway
ENOUGH = 512 * 1024  # bytes of source per reader: below that, starting it takes longer
BATCH = 192 * 1024  # bytes of source per request
AHEAD = 2  # requests per worker, so that none waits for the next one
PIPE = 1024 * 1024  # bytes: a worker that is done may go on while the scan is busy
HOME = str(Path(__file__).parents[3])
START = """\
import sys
sys.path += sys.argv[1:]
from floodline.scan._sources.worker import main
main()
"""


class Job(NamedTuple):
    """One file to read, with its number among all files."""

    number: int
    path: Path
    size: int


Done = tuple[Job, Answer | None]


def available_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


def worker_count(jobs: int | None, size: int) -> int:
    """Return how many workers should help this process to read so many bytes."""
    if not sys.executable or hasattr(sys, "frozen"):
        return 0  # inside another program: starting that again would not give a worker
    readers = min(available_cores(), MANY_READERS) if jobs is None else jobs
    return max(min(readers, size // ENOUGH) - 1, 0)


class Workers:
    """Some worker processes; use as a context manager. They end with it, whatever they do."""

    def __init__(self, count: int, python: str = sys.executable) -> None:
        self._count = count
        self._python = python
        self._processes: list[subprocess.Popen[bytes]] = []
        self._threads: list[Thread] = []

    def __enter__(self) -> Workers:
        with suppress(OSError):  # out of processes: those that there are do it
            for _ in range(self._count):
                self._processes.append(_started(self._python))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):  # what was not sent is lost with its reader
                    stream.close()  # type: ignore[union-attr]  # both are pipes

    def read(
        self, jobs: Sequence[Job], salt: bytes | None, *, helped: bool = False
    ) -> Iterator[Done]:
        """Yield each file with its answer as it comes, `None` if its worker died.

        With `helped`, the caller reads what comes with `None`: files that no worker has begun too.
        """
        batches, lock = iter(_batches(jobs)), Lock()
        done: SimpleQueue[tuple[list[Job], Sequence[Answer | None]] | None] = SimpleQueue()

        def following() -> list[Job]:
            with lock:
                return next(batches, [])

        def ask(process: subprocess.Popen[bytes], first: list[list[Job]]) -> None:
            waiting = deque(first)
            stdin, stdout = process.stdin, process.stdout
            assert stdin is not None
            assert stdout is not None
            try:
                receive(stdout)  # type: ignore[arg-type]  # both are binary
                for batch in first:
                    _send(process, batch, salt)
                while waiting:
                    answers = [Answer(*told) for told in receive(stdout)]  # type: ignore[arg-type]  # same
                    done.put((waiting.popleft(), answers))  # before a dead worker is noticed
                    if batch := following():
                        waiting.append(batch)
                        _send(process, batch, salt)
            except (OSError, EOFError, ValueError, TypeError):
                pass  # it was killed, or is not a worker: what it was asked is still waiting
            finally:
                for batch in waiting:
                    done.put((batch, [None] * len(batch)))
                done.put(None)

        for process in self._processes:
            first = [batch for _ in range(AHEAD) if (batch := following())]
            self._threads.append(Thread(target=ask, args=(process, first), daemon=True))
        for thread in self._threads:
            thread.start()
        alive = len(self._threads)
        while alive:
            if helped and done.empty() and (batch := following()):
                yield from ((job, None) for job in batch)
            elif (found := done.get()) is not None:
                yield from zip(*found, strict=True)
            else:
                alive -= 1
        for batch in batches:  # all workers died
            yield from ((job, None) for job in batch)


def _send(process: subprocess.Popen[bytes], batch: list[Job], salt: bytes | None) -> None:
    paths = [os.fsencode(job.path) for job in batch]
    send(process.stdin, (salt, paths))  # type: ignore[arg-type]  # it is a pipe


def _batches(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    batch: list[Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += job.size
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _started(python: str) -> subprocess.Popen[bytes]:
    """Start a worker without the user's environment and packages: it needs none but structs."""
    structs = find_spec("msgspec") if python == sys.executable else None  # built for this Python
    packages = (structs and structs.submodule_search_locations) or ()
    folders = [HOME, *(str(Path(package).parent) for package in packages)]
    command = [python, "-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
    process = subprocess.Popen(
        [*command, "-c", START, *folders],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(process.stdout.fileno(), fcntl.F_SETPIPE_SZ, PIPE)  # type: ignore[union-attr]  # a pipe
    return process
