"""`Batch`: items that wait to be handed over together."""

from __future__ import annotations

import atexit
import inspect
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from itertools import islice
from threading import RLock, get_ident
from types import TracebackType
from typing import Any, Generic, TypeVar

from floodline import telemetry
from floodline._clock import Clock, sweeper
from floodline._units import Duration, Size, parse_count
from floodline.bounded import _arguments as bounds
from floodline.bounded._registry import enrol, name_of, refuse_copy
from floodline.bounded._stats import BatchStats
from floodline.errors import BatchClosed, BatchFull, ConfigError

T = TypeVar("T")

TIMES = 10  # how many batches are kept for a sink that fails, unless `retain` says otherwise


class Batch(Generic[T]):
    """Collects items and hands them to `sink(items)` in order, at most `max_items` at a time.

    It flushes when `max_items` or `max_bytes` wait, when the oldest has waited for `max_wait`
    (seen at the next `add`, or by a timer), at `flush()` and when the `with` block is left. The
    sink runs outside every lock, one call at a time. If it fails, its items stay in order:
    `flush()` raises its error, an automatic flush counts and reports it, and is tried again after
    that many more items. At the hard limit, `retain` items, each `add` tries once and then raises
    `BatchFull` without accepting the item. The sink itself may add items.
    """

    def __init__(
        self,
        sink: Callable[[list[T]], object],
        *,
        max_items: int = 50,
        max_bytes: Size | None = None,
        max_wait: Duration | None = None,
        retain: int | None = None,
        weigh: bounds.Weigh | None = None,
        name: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        _check_sink(sink)
        self.name = name_of("batch", name)
        self._sink = sink
        self._max_items = parse_count(max_items, "max_items")
        self._max_bytes = bounds.size(max_bytes, "max_bytes")
        self._max_wait = bounds.span(max_wait, "max_wait")
        self._retain = _retain(retain, self._max_items)
        self._scale = bounds.scale(self.name, weigh, self._max_bytes)
        self._clock = bounds.forward(clock)
        self._start_anew()
        enrol(self)
        _open[id(self)] = weakref.ref(self, _forget(id(self)))

    def _start_anew(self) -> object:
        inherited = getattr(self, "_pending", None)
        # a finalizer may re-enter both on the same thread: see `_take` and `_flush`
        self._adding, self._flushing = RLock(), RLock()
        self._flusher: int | None = None
        self._pending: deque[tuple[T, int, float]] = deque()
        self._bytes = self._flushed = self._flushes = self._failed = 0
        self._next_try = self._max_items
        self._closed = False
        return inherited

    def add(self, item: T) -> None:
        """Add an item, and flush if it is time; raise `BatchFull` at the hard limit."""
        weight = 0 if self._scale is None else self._scale(item)
        entry = (item, weight, self._clock())
        while not self._take(entry):
            self._push_back()
        if self._due():
            self._flush_quietly()
        elif self._max_wait != bounds.INFINITE and len(self._pending) == 1:
            sweeper.want(self._tick, self._max_wait)

    def flush(self) -> int:
        """Hand over everything that waits now and return how many; raise what the sink raises."""
        with self._flushing:
            if self._flusher == get_ident():
                return 0  # called by the sink itself; the flush around it continues
            return self._flush(len(self._pending))

    def close(self) -> None:
        """Flush, and accept no more items; if the sink fails, raise and stay open."""
        while not self._closed:
            self.flush()
            with self._adding:
                self._closed = not self._pending
        telemetry.unregister(self)
        _open.pop(id(self), None)

    def stats(self) -> BatchStats:
        """Return the current figures."""
        return BatchStats(
            kind="batch",
            name=self.name,
            items=len(self._pending),
            max_items=self._max_items,
            bytes=None if self._scale is None else self._bytes,
            max_bytes=bounds.shown(self._max_bytes),
            retain=self._retain,
            max_wait=bounds.shown_span(self._max_wait),
            flushed=self._flushed,
            flushes=self._flushes,
            failed=self._failed,
        )

    def __len__(self) -> int:
        return len(self._pending)

    def __bool__(self) -> bool:
        return True

    __reduce_ex__ = refuse_copy

    def __repr__(self) -> str:
        return f"<Batch {self.name!r}: {len(self._pending)} items waiting>"

    def __enter__(self) -> Batch[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(
                f"{self.name} could not flush {len(self._pending)} items, which are still waiting: "
                f"{telemetry.describe(failure)}"
            )

    def __del__(self) -> None:
        pending = getattr(self, "_pending", ())
        if pending:
            telemetry.emit("batch_lost", self.name, items=len(pending))
            warnings.warn(
                f"{self.name} was dropped with {len(pending)} unflushed items; use it in a "
                "with block or call close()",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    # inside

    def _take(self, entry: tuple[T, int, float]) -> bool:
        with self._adding:
            if self._closed:
                raise BatchClosed(f"{self.name} is closed; create a new Batch for more items")
            if len(self._pending) >= self._retain:
                return False
            self._pending.append(entry)
            self._bytes += entry[1]
            return True

    def _due(self) -> bool:
        if len(self._pending) >= self._next_try:
            return True
        if self._next_try > self._max_items:
            return False  # the sink has just failed
        return self._bytes >= self._max_bytes or self._waited() >= self._max_wait

    def _waited(self) -> float:
        try:
            return self._clock() - self._pending[0][2]
        except IndexError:
            return -bounds.INFINITE

    def _push_back(self) -> None:
        """Make room, or refuse; a caller that arrives while another thread flushes waits for it."""
        with self._flushing:
            if self._flusher == get_ident():
                raise BatchFull(self._full("its sink is adding to it"))
            if len(self._pending) < self._retain:
                return
            try:
                self._flush(len(self._pending))
            except Exception as error:
                raise BatchFull(self._full("the sink is failing")) from error

    def _full(self, why: str) -> str:
        return (
            f"{self.name} holds {len(self._pending)} items, its limit is retain={self._retain}, "
            f"and {why}; the item was not accepted: try again later, or fix the sink"
        )

    def _flush_quietly(self) -> None:
        """Flush as long as it is due; a flush already under way continues for us."""
        me = get_ident()
        while self._due() and self._flusher != me and self._flushing.acquire(blocking=False):
            try:
                self._flush(len(self._pending))
            except Exception:
                return  # counted and reported; the items stay
            finally:
                self._flushing.release()

    def _flush(self, number: int) -> int:
        self._flusher = get_ident()
        done = 0
        try:
            while done < number and (items := self._chunk(number - done)):
                self._sink(list(items))
                self._take_off(len(items))
                done += len(items)
        except BaseException as error:
            self._failed += 1
            self._next_try = len(self._pending) + self._max_items
            telemetry.emit("flush_failed", self.name, error=telemetry.describe(error))
            raise
        finally:
            self._flusher = None
        self._next_try = self._max_items
        return done

    def _take_off(self, number: int) -> None:
        for _ in range(number):
            weight = self._pending.popleft()[1]
            self._bytes -= weight
        self._flushed += number
        self._flushes += 1

    def _chunk(self, limit: int) -> list[T]:
        items: list[T] = []
        size = 0
        for item, weight, _ in list(islice(self._pending, min(limit, self._max_items))):
            size += weight
            if items and size > self._max_bytes:
                break
            items.append(item)
        return items

    def _tick(self) -> float | None:
        left = self._max_wait - self._waited()
        if self._pending and left <= 0:
            self._next_try = len(self._pending)
            self._flush_quietly()
            left = self._max_wait
        return left if self._pending else None


_open: dict[int, weakref.ref[Batch[Any]]] = {}


def _forget(key: int) -> Callable[[object], None]:
    def forget(_: object) -> None:
        _open.pop(key, None)

    return forget


def _flush_all() -> None:
    """Hand over what still waits, on the thread that ends the process."""
    for ref in list(_open.values()):
        batch = ref()
        if batch is not None:
            batch._next_try = 1
            batch._flush_quietly()


atexit.register(_flush_all)


def _retain(retain: int | None, max_items: int) -> int:
    if retain is None:
        return TIMES * max_items
    if parse_count(retain, "retain") < max_items:
        raise ConfigError(
            f"retain={retain} is below max_items={max_items}; a batch could never fill, so give "
            "at least max_items"
        )
    return retain


def _check_sink(sink: object) -> None:
    if not callable(sink):
        raise ConfigError(f"sink={sink!r} cannot be called; give a function that takes a list")
    if inspect.iscoroutinefunction(sink):
        raise ConfigError(
            f"sink={sink!r} is a coroutine function, which nothing would await; give a plain "
            "function, such as one that puts the items on a queue"
        )
