"""Runs a flow: performs each request, and sends its result or error back."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from floodline.sessions._flows.guarded_table import Core, who
from floodline.sessions._flows.requests import Flow, Request
from floodline.sessions._table.entry import Work

T = TypeVar("T")


class _Pump:
    """One flow under way, between two requests."""

    __slots__ = ("_error", "_flow", "answer", "result")

    def __init__(self, flow: Flow[Any]) -> None:
        self._flow = flow
        self._error: BaseException | None = None
        self.answer: Any = None
        self.result: Any = None

    def step(self) -> Request | None:
        """Return what the flow wants next, or None when it has ended."""
        error, self._error = self._error, None
        try:
            if error is None:
                return self._flow.send(self.answer)
            return self._flow.throw(error)
        except StopIteration as stop:
            self.result = stop.value
            return None
        finally:
            error = None  # its traceback refers to this frame

    def failed(self, error: BaseException) -> None:
        """Raise the error inside the flow, at the place of the request."""
        self._error = error
        self.answer = None


def run(core: Core, flow: Flow[T], perform: Callable[[Request], Any]) -> T:
    """Run a flow to its end by blocking."""
    acting, me = core.acting, who()
    outer = acting.get(me)
    acting[me] = work = Work()
    try:
        result: T = _run_on(_Pump(flow), perform)
    finally:  # no call, so that nothing can prevent it
        work.ended = True
        if outer is not None:
            acting[me] = outer
        elif me in acting:
            del acting[me]
    return result


def _run_on(pump: _Pump, perform: Callable[[Request], Any]) -> Any:
    while (request := pump.step()) is not None:
        try:
            pump.answer = perform(request)
        except BaseException as error:
            pump.failed(error)
    return pump.result


async def run_async(
    core: Core,
    flow: Flow[T],
    perform: Callable[[Request], Awaitable[Any]],
    perform_blocking: Callable[[Request], Any],
) -> T:
    """Run a flow to its end by awaiting, or by blocking once its coroutine is destroyed."""
    acting, me = core.acting, who()
    outer = acting.get(me)
    acting[me] = work = Work()
    try:
        result: T = await _run_awaiting(_Pump(flow), perform, perform_blocking)
    finally:  # as above
        work.ended = True
        if outer is not None:
            acting[me] = outer
        elif me in acting:
            del acting[me]
    return result


async def _run_awaiting(
    pump: _Pump,
    perform: Callable[[Request], Awaitable[Any]],
    perform_blocking: Callable[[Request], Any],
) -> Any:
    while (request := pump.step()) is not None:
        try:
            pump.answer = await perform(request)
        except GeneratorExit:
            pump.failed(CancelledError())  # the same one would ignore what inner generators want
            with suppress(CancelledError):
                _run_on(pump, perform_blocking)
            raise
        except BaseException as error:
            pump.failed(error)
    return pump.result
