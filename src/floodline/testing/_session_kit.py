"""What a test does with the sessions of any program: open, abandon, count, soak."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from floodline.errors import ConfigError
from floodline.leaks._vocabulary import Outcome
from floodline.soak import run

Call = Callable[[str], Any]


class SessionKit:
    """Opens, uses, closes and counts sessions through functions of the program under test.

    `open_session(id)` begins a session, `work(id)` uses it, `close_session(id)` ends it, and
    `live()` returns how many there are; all may be coroutine functions. `run` executes a coroutine
    (`asyncio.Runner().run` of the kit's own by default).
    """

    def __init__(
        self,
        open_session: Call,
        *,
        work: Call | None = None,
        close_session: Call | None = None,
        live: Callable[[], Any] | None = None,
        run: Callable[[Coroutine[Any, Any, Any]], Any] | None = None,
    ) -> None:
        self._open, self._work, self._close, self._live = open_session, work, close_session, live
        self._run = run
        self._runner: asyncio.Runner | None = None
        self.opened = 0
        self.most_live = 0

    def abandon(self, count: int) -> None:
        """Open that many new sessions, use each once, and close none."""
        for _ in range(count):
            self._begin()

    def open_and_close(self, count: int) -> None:
        """Open that many new sessions, use each once, and close it."""
        close = self._needed(self._close, "close_session")
        for _ in range(count):
            self._call(close, self._begin())

    def check_live(self, most: int) -> None:
        """Raise `AssertionError` if more sessions than `most` were ever live at once."""
        self._needed(self._live, "live")
        if self.most_live > most:
            raise AssertionError(
                f"{self.most_live} sessions were live at once, after {self.opened} were opened; "
                f"at most {most} are allowed"
            )

    def check_flat(self, rounds: int, *, sessions: int = 5) -> None:
        """Raise `AssertionError` unless memory is bounded while sessions are abandoned.

        Each round opens `sessions` new ones. An undecided soak fails as well: it says why.
        """
        answer = run(lambda _: self.abandon(sessions), rounds=rounds)
        if answer.errors or answer.verdict != Outcome.BOUNDED:
            raise AssertionError(f"memory over {rounds} rounds: {answer}")

    def close(self) -> None:
        """Close the kit's own event loop, if it needed one."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _begin(self) -> str:
        session = f"session-{self.opened}"
        self.opened += 1
        self._call(self._open, session)
        if self._work is not None:
            self._call(self._work, session)
        if self._live is not None:
            self.most_live = max(self.most_live, int(self._call(self._live)))
        return session

    def _call(self, function: Callable[..., Any], *arguments: str) -> Any:
        result = function(*arguments)
        if not inspect.isawaitable(result):
            return result
        if self._run is None:
            self._runner = self._runner or asyncio.Runner()
            return self._runner.run(_outcome(result))
        return self._run(_outcome(result))

    def _needed(self, function: Any, name: str) -> Callable[..., Any]:
        if function is None:
            raise ConfigError(f"this needs SessionKit({name}=…); pass the function of your program")
        found: Callable[..., Any] = function
        return found


async def _outcome(awaitable: Any) -> Any:
    return await awaitable
