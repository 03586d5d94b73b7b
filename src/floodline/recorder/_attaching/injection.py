"""The child process that enters another one: `python -m` this module, `PID FILE`.

It says `entering` before the one step that must not be interrupted, and `entered` after it. It
gives up if the main thread of the process is never seen asleep, and ends by an alarm if it hangs
before that step.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodline.recorder._attaching.asleep import asleep, quiet

PATIENCE = 10.0  # seconds of looking for a moment
QUIET = 3.0  # of these, seconds in which the other threads must sleep too
SLACK = 10.0  # seconds more until the alarm
NAP = 0.002
NO_PACKAGE, BUSY, REFUSED = 3, 4, 5  # exit statuses


class NeverAsleepError(Exception):
    """There was no moment at which the process could be entered."""


class Moment:
    """Injects a library at a moment when the main thread sleeps, checked while it is held."""

    def __init__(
        self,
        attach: Callable[[int], Any],
        say: Callable[[str], object],
        *,
        clock: Callable[[], float] = time.monotonic,
        nap: Callable[[float], object] = time.sleep,
    ) -> None:
        self._attach, self._say, self._clock, self._nap = attach, say, clock, nap

    def inject(self, pid: int, library: str | bytes, uninject: bool = True) -> Any:
        """Load the library, whose constructor runs the code, and unload it again."""
        path = library.encode() if isinstance(library, str) else library
        began = self._clock()
        while (waited := self._clock() - began) < PATIENCE:
            if asleep(pid) and (waited > QUIET or quiet(pid)):
                with self._attach(pid) as injector:
                    if asleep(pid):  # it may have woken before it was held
                        signal.alarm(0)
                        self._say("entering")
                        handle = injector.inject(path)
                        if uninject:
                            injector.uninject(handle)
                        self._say("entered")
                        return handle
            self._nap(NAP)
        raise NeverAsleepError(f"never seen asleep in {PATIENCE:g} s")


def main(words: list[str], say: Callable[[str], object]) -> int:
    """Enter process `words[0]` and have it run the file `words[1]`; return the exit status."""
    try:
        from hypno import api, inject_py  # type: ignore[import-untyped]
        from pyinjector import PyInjectorError  # type: ignore[import-untyped]
        from pyinjector.api import attach  # type: ignore[import-untyped]
    except ImportError as error:
        say(f"because {error}")
        return NO_PACKAGE
    signal.alarm(round(PATIENCE + SLACK))
    api.inject = Moment(attach, say).inject
    try:
        inject_py(int(words[0]), Path(words[1]).read_bytes())
    except NeverAsleepError as error:
        say(f"because {error}")
        return BUSY
    except (PyInjectorError, OSError) as error:
        say(f"because {' '.join(str(error).split())[:300]}")
        return REFUSED
    return 0


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], _say))
