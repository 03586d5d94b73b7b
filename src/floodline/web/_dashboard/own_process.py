"""The dashboard of the process that shows it, for programs that no recorder watches."""

from __future__ import annotations

import os
import threading
import weakref

from starlette.applications import Starlette

from floodline.recorder import Recorder
from floodline.recorder._probe.probe import Probe, command_line
from floodline.recorder._snapshot import Snapshot
from floodline.web._dashboard.app import make_app

TICK = 1.0


class OwnProcess:
    """A source for the dashboard: a recorder in memory and a probe, each on a daemon thread.

    They start with the first visit, and again in a forked child; `close()` ends them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watch: _Watch | None = None

    @property
    def version(self) -> int:
        """The number of the newest state."""
        return self.start().recorder.version

    def state(self) -> Snapshot:
        """Return the newest state."""
        return self.start().recorder.state()

    def wait(self, version: int, timeout: float) -> int:
        """Wait for a state after `version`."""
        return self.start().recorder.wait(version, timeout)

    def start(self) -> _Watch:
        """Watch from now on, if that has not begun in this process."""
        watch = self._watch
        if watch is not None and watch.pid == os.getpid():
            return watch
        if watch is not None:  # a fork, perhaps while another thread held the lock
            self._lock, self._watch = threading.Lock(), None
        with self._lock:
            if self._watch is None:
                self._watch = _Watch()
                weakref.finalize(self, self._watch.end)
            return self._watch

    def close(self) -> None:
        """Stop watching; the next visit starts it again."""
        watch, self._watch = self._watch, None
        if watch is not None and watch.pid == os.getpid():
            watch.end()


class _Watch:
    """The threads of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.recorder = Recorder(command_line())
        self.recorder.program(self.pid)
        self.recorder.tick()
        self._ended = threading.Event()
        probe = Probe(self.recorder.address)
        self._threads = [
            threading.Thread(target=self._probe, args=(probe,), name="floodline-probe"),
            threading.Thread(target=self._tick, name="floodline-recorder"),
        ]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def _probe(self, probe: Probe) -> None:
        probe.run(self._ended.wait)
        if self._ended.is_set():
            probe.close()

    def _tick(self) -> None:
        while not self._ended.wait(TICK):
            self.recorder.tick()

    def end(self, patience: float = 5.0) -> None:
        """End the threads and close the recorder; harmless in a forked child."""
        if self.pid != os.getpid():
            return
        self._ended.set()
        for thread in self._threads:
            thread.join(patience)
        self.recorder.close()


def create_dashboard(*, token: str | None = None, max_readers: int = 16) -> Starlette:
    """Return the dashboard of this process, to mount: `Mount("/memory", create_dashboard())`.

    It watches from now on, for about 1 % of one CPU; `app.state.live.source.close()` stops it.
    Without a token it answers to loopback names only; with one, open `/memory/?token=…` once.
    """
    source = OwnProcess()
    source.start()
    return make_app(source, token=token, max_readers=max_readers)
