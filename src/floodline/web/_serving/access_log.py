"""The access log: written by a thread, so that a reader that stalls never stalls the service."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Full, Queue
from threading import Thread
from typing import TextIO

ACCESS = "floodline.serve.access"
MAX_WAITING = 10_000  # lines; beyond that they are dropped
PATIENCE = 1.0  # seconds that the last lines get to be read


class _Lines(logging.Handler):
    """Puts lines into a queue, unless it is full; a daemon thread writes them."""

    def __init__(self, access: TextIO, words: TextIO) -> None:
        super().__init__()
        self._access, self._words = access, words
        self._queue: Queue[tuple[TextIO, str] | None] = Queue(MAX_WAITING)
        self._thread = Thread(target=self._write, name="floodline-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line, from any thread."""
        text = self.format(record)
        line = (
            (self._access, f"{text}\n")
            if record.name == ACCESS
            else (self._words, f"floodline: {text}\n")
        )
        with suppress(Full):
            self._queue.put_nowait(line)

    def close(self) -> None:
        """Write what is left, if something reads it."""
        with suppress(Full):
            self._queue.put(None, timeout=PATIENCE)
            self._thread.join(PATIENCE)
        super().close()

    def _write(self) -> None:
        while (line := self._queue.get()) is not None:
            stream, text = line
            with suppress(OSError, ValueError):  # nothing reads it any more
                stream.write(text)
                stream.flush()


@contextmanager
def logging_lines(*, access: bool, stream: TextIO | None = None) -> Iterator[None]:
    """Write access lines to standard output, and warnings to standard error, inside the block."""
    handler = _Lines(stream or sys.stdout, sys.stderr)
    own = logging.getLogger("floodline")
    logging.getLogger(ACCESS).setLevel(logging.INFO if access else logging.CRITICAL)
    own.addHandler(handler)
    own.propagate = False
    try:
        yield
    finally:
        own.removeHandler(handler)
        own.propagate = True
        handler.close()
