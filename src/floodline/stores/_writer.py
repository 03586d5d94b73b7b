"""The one thread that works on a file, and how calls reach it and answers return.

While a batch is being committed the calls of other threads and loops queue up, and are the next
batch. Threads that were served together wake each other, one after the other, and the last wakes
this thread: all at once they would only queue for the interpreter's lock, which costs each of them
a second switch, and this thread too as often as it gives the lock up. Whoever comes back until then
is in the next batch. A lone caller runs its call itself, which saves a trip to the thread.
If no thread can be started (at interpreter exit, or at the system's limit) the caller runs all
pending calls.

Where calls of two kinds would need a round trip each, `split` puts one kind off: the callers of the
other do not wait for it, and what they ask for next joins what was put off.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from _thread import allocate_lock, get_ident
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from floodline.errors import StoreClosed, StoreUnavailable

_BATCH = 256
_PATIENCE = 200e-6  # for callers that wake each other, one of which may have lost its processor
_LAST_PATIENCE = 2.0


class Call:
    """One pending operation: what to do, then its result or its error."""

    __slots__ = ("args", "done", "error", "future", "next", "result", "what")

    def __init__(
        self, what: str, args: tuple[Any, ...], future: asyncio.Future[Any] | None = None
    ) -> None:
        self.what, self.args, self.future = what, args, future
        self.result: Any = None
        self.error: BaseException | None = None
        self.next: Call | None = None
        if future is None:
            self.done = allocate_lock()
            self.done.acquire()

    def wait(self) -> None:
        """Block until it is done, and wake the next that was done in the same batch."""
        self.done.acquire()
        following, self.next = self.next, None
        if following is not None:
            following.wake()

    def settle(self) -> None:
        """End the await, on its loop; harmless if it is over."""
        future = self.future
        if future is None or future.done():  # cancelled
            return
        if self.error is not None:
            future.set_exception(self.error)
        else:
            future.set_result(self.result)

    def wake(self) -> None:
        """End the wait; harmless if it is over."""
        try:
            self.done.release()
        except RuntimeError:  # by another one, who was faster
            return


Split = Callable[[list[Call]], tuple[list[Call], list[Call]]]  # what to run, and what to put off


class Runner(Protocol):
    """What the thread works for."""

    def run(self, batch: Sequence[Call]) -> None:
        """Give every call a result or an error; raise nothing."""

    def shut(self) -> None:
        """Close what is open; `run` opens it again."""

    def disown(self) -> None:
        """Forget what is open without touching it: it belongs to the parent process."""


class Writer:
    """Brings calls to a runner, one batch at a time."""

    def __init__(
        self,
        runner: Runner,
        path: str,
        split: Split | None = None,
    ) -> None:
        self._runner, self._path, self._split = runner, path, split
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        self._queue: SimpleQueue[Call | None] = SimpleQueue()  # C, so a finalizer may use it
        self._thread: threading.Thread | None = None
        self._ident = 0
        self._waiting = self._crowded = False
        self._starting, self._running = threading.Lock(), threading.Lock()
        self._helpers: set[int] = set()

    def is_writer_thread(self) -> bool:
        """Return True if this thread is working for the store, so that it cannot wait for it."""
        me = get_ident()
        return me == self._ident or me in self._helpers

    def ask(self, what: str, /, *args: Any) -> Any:
        """Run an operation and wait for it; it is done even if the wait is interrupted."""
        call = Call(what, args)
        if not self._run_alone(call):
            self.submit(call)
            call.wait()
        if call.error is not None:
            try:
                raise call.error
            finally:
                del call  # the traceback would keep it, and its bytes, in a cycle
        return call.result

    def ask_soon(self, what: str, /, *args: Any) -> asyncio.Future[Any]:
        """Begin an operation, to be awaited; it is done even if the await is cancelled."""
        future = asyncio.get_running_loop().create_future()
        self.submit(Call(what, args, future))
        return future

    def close(self) -> None:
        """Finish pending calls, refuse the rest, end the thread; idempotent."""
        self._stop()
        if not self.is_writer_thread():
            self._finish()

    def abandon(self) -> None:
        """Close without waiting: the store was collected, so no caller waits for an answer."""
        self._stop()
        if self._thread is None:
            self._runner.shut()

    def _stop(self) -> None:
        self._closed = True
        self._queue.put(None)

    def suspend(self, patience: float) -> bool:
        """Keep the runner from work, with nothing open, until `resume`: a fork is coming."""
        if self.is_writer_thread() or not self._running.acquire(timeout=patience):
            return False
        self._runner.shut()
        return True

    def resume(self) -> None:
        """End what `suspend` began, in the process that called it."""
        self._running.release()

    def start_anew(self, *, inherited: bool) -> None:
        """Forget in a forked child what belongs to its parent: the thread, the pending calls."""
        if inherited:
            self._runner.disown()
        self._reset()

    def submit(self, call: Call) -> None:
        """Bring a call to the thread, which ends its wait or its await."""
        if self._closed:
            raise StoreClosed(f"{call.what} was called after close(); open {self._path!r} again")
        if self.is_writer_thread():
            raise StoreUnavailable(
                f"{call.what} was called by a finalizer on the thread that works for "
                f"{self._path!r}; ask is_writer_thread() first, and call again later"
            )
        self._queue.put(call)
        if self._thread is None or sys.is_finalizing():
            self._help()
        if self._closed:
            self._finish()  # the call may stand behind the last that the thread took

    def _run_alone(self, call: Call) -> bool:
        """Run a call on this thread if the writer is idle and nothing waits: two switches fewer."""
        if self._waiting or self._crowded or self._running.locked() or not self._queue.empty():
            return False
        if self._closed or self.is_writer_thread():
            return False
        me = get_ident()
        try:
            self._helpers.add(me)
            with self._running:  # `acquire` and then `try` would lose the lock to a Ctrl-C
                if self._closed:
                    return False
                self._runner.run((call,))
            return True
        finally:
            self._helpers.discard(me)

    def _help(self) -> None:
        me = get_ident()
        try:
            self._helpers.add(me)
            with self._starting:
                if self._thread is not None and not sys.is_finalizing():
                    return
                if not sys.is_finalizing() and self._start():
                    return
            self._run_here()
        finally:
            self._helpers.discard(me)

    def _start(self) -> bool:
        thread = threading.Thread(target=self._work, name="floodline-store", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # at exit, or no more threads available
            return False
        self._thread = thread
        return True

    def _run_here(self) -> None:
        """Run pending calls on this thread; a thread frozen at exit may hold the lock forever."""
        if not self._running.acquire(timeout=_patience()):
            self._refuse(StoreUnavailable(f"{self._path!r} can no longer be used at exit"))
            return
        try:
            while batch := self._take([], block=False):
                self._runner.run(batch)
                _settle(batch)
        finally:
            self._running.release()

    def _work(self) -> None:
        self._ident = get_ident()
        later: list[Call] = []  # leads the next batch, so that nothing is put off twice
        while batch := self._take(later, block=not later):
            self._crowded = len(batch) > 1
            batch, later = self._split(batch) if self._split else (batch, [])
            self._waiting = True  # or a busy caller might take its turn again and again
            with self._running:
                self._waiting = False
                self._runner.run(batch)
            _settle_in_turn(batch)
            del batch  # an idle thread holds no caller's bytes
        self._shut()
        self._ident = 0

    def _take(self, batch: list[Call], *, block: bool) -> list[Call]:
        """Return these and pending calls, at most a batch; empty at the end."""
        get = self._queue.get_nowait
        try:
            call = self._queue.get(block)
            while call is not None:
                batch.append(call)
                if len(batch) >= _BATCH:
                    return batch
                call = get()
            if batch:
                self._queue.put(None)  # the end is for the next time
        except Empty:
            pass
        return batch

    def _finish(self) -> None:
        """Wait for the thread to end, close, and refuse what came too late."""
        me = get_ident()
        try:
            self._helpers.add(me)
            with self._starting:
                thread = self._thread
            if thread is not None and not sys.is_finalizing():
                thread.join()
            else:
                self._run_here()
            self._shut()
        finally:
            self._helpers.discard(me)
        self._refuse(StoreClosed(f"{self._path!r} was closed in the meantime; open it again"))

    def _shut(self) -> None:
        if self._running.acquire(timeout=_patience()):
            self._runner.shut()
            self._running.release()

    def _refuse(self, error: Exception) -> None:
        late: list[Call] = []
        while True:
            try:
                call = self._queue.get_nowait()
            except Empty:
                break
            if call is not None:
                call.error = type(error)(*error.args)
                late.append(call)
        _settle(late)


def _patience() -> float:
    return _LAST_PATIENCE if sys.is_finalizing() else -1


def _settle_in_turn(batch: Sequence[Call]) -> None:
    """Wake the callers one by one, and wait for the last or for as long as that should take."""
    threads = [call for call in batch if call.future is None]
    if len(threads) < 2:
        _settle(batch)
        return
    last = Call("", ())
    for call, following in zip(threads, [*threads[1:], last], strict=True):
        call.next = following
    _settle([*threads[:1], *(call for call in batch if call.future is not None)])
    if not last.done.acquire(timeout=_PATIENCE):
        for call in threads:
            call.wake()


def _settle(batch: Sequence[Call]) -> None:
    """Wake the callers: a lock for a thread, one message for each event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[Call]] = {}
    for call in batch:
        if call.future is None:
            call.wake()
        else:
            loops.setdefault(call.future.get_loop(), []).append(call)
    for loop, calls in loops.items():
        try:
            loop.call_soon_threadsafe(_settle_futures, calls)
        except RuntimeError:  # the loop was closed in the meantime: nothing waits
            continue


def _settle_futures(calls: Sequence[Call]) -> None:
    for call in calls:
        call.settle()
