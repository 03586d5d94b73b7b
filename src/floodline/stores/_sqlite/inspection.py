"""Checks a whole file in the background, after a process has ended without closing it."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from floodline.errors import StoreCorrupt, StoreError
from floodline.stores._sqlite.database import Database
from floodline.stores._writer import Writer

_SLICE = 200  # rows that one call compares: about a millisecond
_REST = 20  # times what a slice took: at most a twentieth of one CPU
_LONGEST_REST = 1.0


def inspect_beside(database: Database, writer: Writer) -> None:
    """Compare the table of sessions with its index, in slices between the calls of others."""
    thread = threading.Thread(
        target=inspect, args=(database, writer), name="floodline-store-check", daemon=True
    )
    with suppress(RuntimeError):  # no thread available; the work continues without it
        thread.start()


def inspect(database: Database, writer: Writer) -> None:
    """Go through both trees once; a contradiction is noted in the database."""
    after: object = 0
    try:
        while after is not None:
            began = time.monotonic()
            after = writer.ask("inspect", after, _SLICE)
            time.sleep(min(_LONGEST_REST, _REST * (time.monotonic() - began)))
    except StoreCorrupt as error:
        database.note_damage(f"a page cannot be read ({error})")
    except StoreError:  # closed in the meantime, or out of reach
        return
