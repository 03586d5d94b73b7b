"""A soak inside a test: the loop, and what its answer means for the test."""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from floodline.errors import ConfigError
from floodline.leaks import Suspect
from floodline.leaks._vocabulary import Outcome, Where
from floodline.pytest_plugin import SoakWarning
from floodline.pytest_plugin._records import Records
from floodline.soak import Answer, Scenario, Soak

ROUNDS = 200


@contextmanager
def in_place_of(item: pytest.Function, soaks: Soaks, options: Mapping[str, Any]) -> Iterator[None]:
    """Replace a test with its rounds, where its caller looks for it."""
    test, case = item.obj, item.instance
    item.obj = loop = looped(test, soaks, options)
    # pytest lets unittest call a coroutine function, which it looks up on the instance
    unittests = isinstance(case, unittest.TestCase) and inspect.iscoroutinefunction(test)
    try:
        if unittests:
            setattr(case, item.name, loop)
        yield
    finally:
        if unittests:
            delattr(case, item.name)
        item.obj = test


def looped(
    test: Callable[..., Any], soaks: Soaks, options: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return a function that runs the rounds of a test, async if the test is."""
    if inspect.isasyncgenfunction(test):  # no plugin runs it as a test: let pytest say so
        return test
    if inspect.iscoroutinefunction(test):

        @functools.wraps(test)
        async def loop_async(*arguments: Any, **named: Any) -> None:
            __tracebackhide__ = True
            await soaks.run(functools.partial(test, *arguments, **named), **options)

        return loop_async

    @functools.wraps(test)
    def loop(*arguments: Any, **named: Any) -> None:
        __tracebackhide__ = True
        soaks(functools.partial(test, *arguments, **named), **options)

    return loop


class Soaks:
    """Runs soaks for one test; growing fails it, undecided does what `soak_undecided` says."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self.begun = False
        self.answer: Answer | None = None  # of the last soak

    def __call__(
        self,
        work: Callable[[], Any],
        *,
        rounds: int = ROUNDS,
        warmup: int | None = None,
        allow: str | Iterable[str] = (),
    ) -> Answer:
        """Call `work()` `rounds` times, warm-up included, and return the answer."""
        __tracebackhide__ = True
        if inspect.iscoroutinefunction(work):
            raise ConfigError("soak() was given a coroutine function: use `await soak.run(...)`")
        body = _Body(work, Records(self._item))
        return self._judge(self._soak(body.call, body, rounds, warmup).run(), body, allow)

    async def run(
        self,
        work: Callable[[], Coroutine[Any, Any, Any]],
        *,
        rounds: int = ROUNDS,
        warmup: int | None = None,
        allow: str | Iterable[str] = (),
    ) -> Answer:
        """Await `work()` `rounds` times on the running event loop."""
        __tracebackhide__ = True
        body = _Body(work, Records(self._item))
        # with a plain function the engine leaves an event loop that is not asyncio's alone
        calls = body.call_async if _on_asyncio() else functools.partial(_hand_over, body)
        return self._judge(await self._soak(calls, body, rounds, warmup).arun(), body, allow)

    def rounds(
        self,
        rounds: int = ROUNDS,
        *,
        warmup: int | None = None,
        allow: str | Iterable[str] = (),
    ) -> Iterator[int]:
        """Loop over a block: `for _ in soak.rounds(200):`; a loop left early gives no verdict.

        The block may await; the event loop is not drained between rounds.
        """
        __tracebackhide__ = True
        body = _Body(_Pause, Records(self._item))
        run = self._soak(lambda _: _Pause(), body, rounds, warmup).arun()
        answer: Answer | None = None
        try:
            for number in count():
                try:
                    run.send(None)
                except StopIteration as done:
                    answer = done.value
                    break
                yield number
                body.records.put_back()
        finally:
            run.close()
        # not while the other exception is handled: pytest would show it, with the whole record
        if answer is not None:
            self._judge(answer, body, allow)

    def _soak(
        self, calls: Callable[[int], Any], body: _Body, rounds: int, warmup: int | None
    ) -> Soak:
        self.begun = True
        wanted = self._item.config.getoption("soak_rounds")
        if wanted is not None:
            warmup = None if warmup is None else warmup * wanted // max(rounds, 1)
            rounds = wanted
        own = (body.records, body.records.writer)
        return Soak(Scenario(calls), rounds=rounds, warmup=warmup, own=own)

    def _judge(self, answer: Answer, body: _Body, allow: str | Iterable[str]) -> Answer:
        __tracebackhide__ = True
        self.answer = answer
        if answer.errors:
            raise body.error or RuntimeError(answer.errors[0])
        text = answer.text()
        self._item.add_report_section("call", "soak", text)
        verdict = _verdict(answer, (allow,) if isinstance(allow, str) else tuple(allow))
        chosen = self._item.config.getini("soak_undecided")
        short = "\n".join(text.splitlines()[:2])  # the section has the full text
        if verdict == Outcome.GROWING or (verdict == Outcome.UNDECIDED and chosen == "fail"):
            pytest.fail(short, pytrace=False)
        if verdict == Outcome.UNDECIDED and chosen == "skip":
            pytest.skip(short)
        if verdict == Outcome.UNDECIDED:
            self._item.warn(SoakWarning(short))
        return answer


def _verdict(answer: Answer, allow: tuple[str, ...]) -> Outcome:
    """Return the verdict without the owners that may grow.

    Only names can be allowed: growth without one, or outside Python objects, stays.
    """
    suspects = answer.suspects
    others = [one for one in suspects if not any(_covers(name, one.owner) for name in allow)]
    if len(others) == len(suspects) or answer.where != Where.PYTHON:
        return answer.verdict
    if answer.verdict == Outcome.GROWING and answer.cause:  # what grows is not the suspects
        return Outcome.GROWING
    if not others:
        return Outcome.BOUNDED
    return Outcome.UNDECIDED if all(map(_may_fill, others)) else answer.verdict


def _covers(name: str, owner: str) -> bool:
    return owner == name or (owner.startswith(name) and owner[len(name)] in ".[{(")


def _may_fill(one: Suspect) -> bool:
    return one.capped and (one.cap is None or one.len <= one.cap)


def _on_asyncio() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _hand_over(body: _Body, number: int) -> Coroutine[Any, Any, None]:
    return body.call_async(number)


class _Pause:
    """Awaited by the engine as a round, which then continues outside it."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class _Body:
    """One round: the work, then pytest's records reset; the first error is kept for pytest."""

    def __init__(self, work: Callable[[], Any], records: Records) -> None:
        self._work, self.records = work, records
        self.error: Exception | None = None

    def call(self, _: int) -> None:
        __tracebackhide__ = True
        try:
            self._work()
        except Exception as error:
            self.error = error
            raise
        self.records.put_back()

    async def call_async(self, _: int) -> None:
        __tracebackhide__ = True
        try:
            await self._work()
        except Exception as error:
            self.error = error
            raise
        self.records.put_back()
