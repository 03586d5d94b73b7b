"""A process that appends its token and a counter to sessions of a shared store, until told to end.

    python appending_process.py STORE LOG TOKEN

It writes a line to LOG after each use: `done ID COUNTER PLACE`, or `refused ID COUNTER ERROR`.
An `h` on standard input makes the next use that is entered write `held ID COUNTER PLACE` and stay
in its body until the next byte comes. The end of standard input ends the process.
"""

from __future__ import annotations

import os
import random
import select
import sys
from typing import Any

from floodline import Sessions
from floodline.errors import SaveFailed, SessionBusy, SessionConflict, StoreUnavailable

IDS = tuple(f"id{n}" for n in range(20))


def asked() -> bytes | None:
    """The next byte of standard input, b"" at its end, or None if nothing came."""
    return os.read(0, 1) if select.select([0], [], [], 0)[0] else None


def append(store: str, log: int, token: int) -> None:
    chance = random.Random(token)
    counter, hold = 0, False
    # fewer seats than ids, so that sessions also leave and are loaded again
    sessions: Sessions[dict[str, Any]] = Sessions(
        dict, store=store, durability="use", lease="500 ms", busy_wait="200 ms", max_sessions=12
    )
    with sessions:
        while (order := asked()) != b"":
            hold = hold or order == b"h"
            one, counter = chance.choice(IDS), counter + 1
            try:
                with sessions.use(one) as state:
                    entries = state.setdefault("entries", [])
                    place = len(entries)
                    entries.append([token, counter])
                    if hold:
                        hold = False
                        os.write(log, f"held {one} {counter} {place}\n".encode())
                        os.read(0, 1)
            except (SaveFailed, SessionBusy, SessionConflict, StoreUnavailable) as error:
                line = f"refused {one} {counter} {type(error).__name__}\n"
            else:
                line = f"done {one} {counter} {place}\n"
            os.write(log, line.encode())


if __name__ == "__main__":
    append(
        sys.argv[1],
        os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        int(sys.argv[3]),
    )
