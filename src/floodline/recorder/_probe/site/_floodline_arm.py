"""Wakes the probe a second after the start of a process, unless the process only forks.

Only a second thread can wake up in a program that computes and never calls anything, so one is
started at once: a raw thread that sleeps and that `threading` does not know. Forking with more
than one thread is a warning since 3.12 and may hang the child, so the thread ends before each
fork. The child gets its own. The parent gets a new one at the first garbage collection a second
after its last fork: a master or fork server only forks and waits, and so never has one.

Standard library only, and as little of it as possible: every Python that starts runs this.
"""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import sys

# if our thread imported it first, it would be taken for the main thread
import threading  # noqa: F401
import time

TYPE_CHECKING = False  # `typing` takes longer to import than all of the above
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_floodline_engine = True  # the walk leaves this module out

VARIABLE = "FLOODLINE_PROBE"
DELAY = 1.0
PATIENCE = 5.0  # seconds for the thread to end before a fork; it may be importing
AT_EXIT = 1.0  # the same when the program ends, which must not wait for us
HELPERS = ("multiprocessing.resource_tracker",)
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120  # see above


class Arm:
    """The thread of the probe: started after a delay, ended before a fork, started again after it.

    With `eager` it starts again in the parent at once, for a probe that only waits for requests.
    With `once`, forked children are left alone, and when the probe is over nothing stays.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        *,
        delay: float = DELAY,
        eager: bool = False,
        once: bool = False,
        failed: Callable[[Exception], object] = bool,
    ) -> None:
        self._make, self._delay, self._eager, self._failed = make, delay, eager, failed
        self._once, self._over = once, False
        self.probe: Any = None
        self._reset()

    def _reset(self) -> None:
        self._stop, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._native = 0
        self.running = False
        self._forked_at: float | None = None

    def begin(self) -> None:
        """Start the thread, which sleeps first."""
        if self._over:
            return
        self._stop, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()
        self._done.acquire()
        self._native = 0
        self.running = True
        try:
            _thread.start_new_thread(self._run, (self._stop, self._done))
        except RuntimeError:  # no more threads here: not watched then
            self.running = False

    def end(self, patience: float | None = None) -> bool:
        """End the thread and wait until it is gone; return False if it takes longer."""
        if not self.running:
            return True
        self.running = False
        self._stop.release()
        if self.probe is not None:
            self.probe.interrupt()
        if not self._done.acquire(timeout=PATIENCE if patience is None else patience):
            return False
        self._until_gone(f"/proc/self/task/{self._native}")
        return True

    def _until_gone(self, task: str) -> None:
        # the thread is done, but the kernel counts it for some microseconds more
        for _ in range(500):
            if not self._native or not os.path.exists(task):  # noqa: PTH110  # no pathlib here
                return
            time.sleep(0.0001)

    def _run(self, stop: Any, done: Any) -> None:
        self._native = _thread.get_native_id()

        def nap(seconds: float) -> bool:
            if not stop.acquire(timeout=max(seconds, 0.0)):
                return False
            stop.release()  # for the next caller
            return True

        try:
            if not nap(self._delay):
                if self.probe is None:
                    self.probe = self._make()
                    self._ask_multiprocessing()
                self.probe.run(nap)
                if self._once and not nap(0):
                    self._retire()
        except Exception as error:  # the program continues without us
            self._failed(error)
        finally:
            done.release()

    def _retire(self) -> None:
        """Leave nothing behind but hooks at forks, which cannot be taken back and do nothing."""
        self._over, self.running = True, False
        self.probe = None
        atexit.unregister(self.last_words)

    def _ask_multiprocessing(self) -> None:
        """Register with it: its forked children end by `os._exit` and run only its finalizers."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            util.Finalize(None, self.last_words, exitpriority=-1000)

    # ---- forks

    def before_fork(self) -> None:
        """Leave the process with no thread of ours."""
        self.end()

    def after_in_parent(self) -> None:
        """Wait for work (see `on_collection`), or start again at once."""
        if self._eager or self._over:
            self.begin()
            return
        self._forked_at = time.monotonic()
        if self.on_collection not in gc.callbacks:
            gc.callbacks.append(self.on_collection)

    def after_in_child(self) -> None:
        """Start over: what was inherited belongs to the parent."""
        self._over = self._over or self._once
        probe, self.probe = self.probe, None
        self._reset()
        if probe is not None:
            probe.abandon()
        self.begin()

    def on_collection(self, phase: str, _: object) -> None:
        """Start again in a process that has forked and now does work."""
        if self._forked_at is None or phase != "stop" or self.running:
            return
        if time.monotonic() - self._forked_at >= self._delay:
            self._forked_at = None
            self.begin()

    def last_words(self) -> None:
        """At a clean exit, send the final figures; only a goodbye if the thread is still busy."""
        over = self.end(AT_EXIT)
        probe, self.probe = self.probe, None
        if probe is not None:
            (probe.close if over else probe.leave)()


def take_package(home: str = HOME) -> None:
    """Make `floodline` importable: the program's own if it has one, else the one we belong to."""
    import importlib.util

    if "floodline" in sys.modules or importlib.util.find_spec("floodline") is not None:
        return
    spec = importlib.util.spec_from_file_location(
        "floodline",
        f"{home}/__init__.py",
        submodule_search_locations=[home],
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["floodline"] = package
    spec.loader.exec_module(package)


def make_probe(where: str) -> Any:
    """Import the engine and return a probe that reports to `where`."""
    take_package()
    from floodline.recorder._probe.probe import Probe

    return Probe(where)


def tell_failure(where: str, error: Exception) -> None:
    """Report why this process is not watched; simple, so that little can fail."""
    import json
    import socket

    host, port, token = where.split(":", 2)
    hello = {"kind": "hello", "token": token, "pid": os.getpid(), "error": repr(error)[:500]}
    try:
        with socket.create_connection((host, int(port)), timeout=1) as line:
            line.sendall(json.dumps(hello).encode() + b"\n")
    except OSError:  # the recorder is gone
        pass


def enlist(arm: Arm) -> None:
    """Stop and restart the thread around forks, and let it say its last words at exit."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=arm.before_fork,
            after_in_parent=arm.after_in_parent,
            after_in_child=arm.after_in_child,
        )
    atexit.register(arm.last_words)
    arm.begin()


def arm() -> None:
    """Watch this process if the environment says so, unless it is one of Python's helpers."""
    where = os.environ.get(VARIABLE, "")
    if any(name in word for word in sys.orig_argv for name in HELPERS):
        return
    if where == "dormant":
        sleep()
    elif ":" in where:
        enlist(Arm(lambda: make_probe(where), failed=lambda error: tell_failure(where, error)))


def sleep() -> None:
    """Wait to be woken by `floodline attach`."""
    take_package()
    from floodline.recorder._probe.dormant import watch

    watch()


def wake(where: str, seconds: float | None, now: bool = False) -> None:
    """Watch this process from now on; `floodline attach` has it run this."""

    def make() -> Any:
        take_package()
        from floodline.recorder._probe.probe import Probe

        if now:  # which an older floodline of the program itself does not know
            return Probe(where, seconds=seconds, now=True)
        return Probe(where, seconds=seconds)

    failed = lambda error: tell_failure(where, error)  # noqa: E731  # as above
    enlist(Arm(make, delay=0.0, eager=True, once=True, failed=failed))
