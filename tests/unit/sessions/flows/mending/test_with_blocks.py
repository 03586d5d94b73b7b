"""A body is called over only when it is: whatever stands in it, and while `__exit__` begins."""

from __future__ import annotations

import asyncio
import contextlib
import dis
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from floodline import Sessions
from floodline.errors import SessionBusy
from floodline.sessions._flows.mending.with_blocks import has_left
from floodline.stores import MemoryStore

# between a body and the call of its __exit__ no other thread can run
ON_THE_WAY = {"LOAD_CONST", "PRECALL", "SWAP", "NOP", "PUSH_EXC_INFO", "GET_AWAITABLE", "SEND"}


class Block:
    """A context manager that knows whether its body runs."""

    def __init__(self, blocks: list[Block]) -> None:
        self.inside = False
        blocks.append(self)

    def _enter(self, frame: FrameType) -> None:
        self.frame, self.site, self.inside = frame, frame.f_lasti, True

    def __enter__(self) -> None:
        self._enter(sys._getframe(1))

    def __exit__(self, *_: object) -> None:
        self.inside = False

    async def __aenter__(self) -> None:
        self._enter(sys._getframe(1))

    async def __aexit__(self, *_: object) -> None:
        self.inside = False


def handlers_and_loops(new: Callable[[], Any]) -> None:
    with new():
        for i in range(2):
            try:
                if i:
                    raise ValueError(i)
                [j + 1 for j in range(2)]
            except ValueError as error:
                str(error)
            except (TypeError, KeyError):
                pass
            else:
                str(i)
            finally:
                str(i)
        while True:
            try:
                break
            finally:
                str(i)


def statements_in_statements(new: Callable[[], Any]) -> int:
    with new(), new():
        with contextlib.suppress(ValueError):
            raise ValueError
        match [1, 2]:
            case [first, _]:
                assert first
            case _:
                pass
        {k: -v for k, v in [(1, 2)]}
    return 1


def ways_out(new: Callable[[], Any]) -> int:
    for i in range(3):
        with new():
            if i == 1:
                continue
            try:
                try:
                    str(1 / 0)
                except ZeroDivisionError:
                    with contextlib.suppress(KeyError):
                        raise KeyError from None
            finally:
                str(i)
            if i == 2:
                break
    with new():
        try:
            return sum(x for x in range(3))
        finally:
            str(new)


def yielding(new: Callable[[], Any]) -> Iterator[int]:
    with new():
        try:
            yield 1
            yield from range(2)
        finally:
            str(new)


def generators(new: Callable[[], Any]) -> None:
    list(yielding(new))
    early = yielding(new)
    next(early)
    early.close()


def groups(new: Callable[[], Any]) -> None:
    with contextlib.suppress(KeyError), new():
        try:
            raise ExceptionGroup("all", [ValueError()])
        except* ValueError:
            str(new)
        raise KeyError


async def _items(new: Callable[[], Any]) -> Any:
    with new():
        yield 0
        yield 1


async def _waiting(new: Callable[[], Any]) -> None:
    async with new():
        await asyncio.sleep(0)
        async for item in _items(new):
            if item:
                break
        with new():
            await asyncio.sleep(0)
            async for item in _items(new):
                str(item)
        async with new(), new():
            async with asyncio.timeout(60):
                await asyncio.sleep(0)


def coroutines(new: Callable[[], Any]) -> None:
    asyncio.run(_waiting(new))


@pytest.mark.parametrize(
    "shape",
    [handlers_and_loops, statements_in_statements, ways_out, generators, groups, coroutines],
)
def test_a_body_that_runs_is_never_called_over(shape: Callable[..., Any]) -> None:
    blocks: list[Block] = []
    looked, wrong = 0, set()

    def trace(frame: FrameType, _event: str, _argument: object) -> Any:
        nonlocal looked
        frame.f_trace_opcodes = True
        for block in blocks:
            if block.inside and block.frame is frame:
                looked += 1
                if has_left(frame, block.site):
                    steps = {step.offset: step for step in dis.get_instructions(frame.f_code)}
                    wrong.add((frame.f_lineno, steps[frame.f_lasti].opname))
        return trace

    def run() -> None:  # on a thread of its own, so that nobody else's tracer is replaced
        sys.settrace(trace)
        try:
            shape(lambda: Block(blocks))
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert looked > 10
    assert {(line, name) for line, name in wrong if name not in ON_THE_WAY} == set()
    assert not any(block.inside for block in blocks)


def test_a_body_that_was_left_is_called_over() -> None:
    blocks: list[Block] = []
    ways_out(lambda: Block(blocks))
    groups(lambda: Block(blocks))
    assert all(has_left(block.frame, block.site) for block in blocks)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("on_error", ["save", "discard"])
def test_an_exit_that_is_just_beginning_is_left_alone(on_error: Any, fails: bool) -> None:
    """[S16] A thread may be switched out before the first line of `__exit__`."""
    sessions: Sessions[Any] = Sessions(dict, store=MemoryStore(), on_error=on_error)
    with sessions.use("a") as state:
        state["turns"] = 0
    at_exit, go_on = threading.Event(), threading.Event()

    def trace(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and (code.co_name, "threads" in code.co_filename) == ("__exit__", True):
            at_exit.set()
            assert go_on.wait(60)

    def work() -> None:
        sys.settrace(trace)
        try:
            with contextlib.suppress(ValueError), sessions.use("a") as state:
                state["turns"] = 1
                if fails:
                    raise ValueError
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=work)
    thread.start()
    assert at_exit.wait(60)
    with pytest.raises(SessionBusy), sessions.use("a", wait=0):
        pass
    go_on.set()
    thread.join()
    with sessions.use("a") as state:
        assert state == {"turns": 0 if fails and on_error == "discard" else 1}
    sessions.shutdown()
