"""How much memory Python's own allocator has mapped; only its debug print tells."""

from __future__ import annotations

import os
import re
import sys
import tempfile

_CURRENT = re.compile(rb"# arenas allocated current\s*=\s*([\d,]+)")
_EACH = re.compile(rb"arenas \* (\d+) bytes/arena")


def arena_bytes() -> int | None:
    """Return the bytes of all arenas, None where the allocator is another or cannot be asked.

    It prints to the file of stderr, which is led into a temporary file for that moment.
    """
    ask = getattr(sys, "_debugmallocstats", None)
    if ask is None:
        return None
    try:
        with tempfile.TemporaryFile() as printed:
            kept = os.dup(2)
            try:
                os.dup2(printed.fileno(), 2)
                ask()
            finally:
                os.dup2(kept, 2)
                os.close(kept)
            printed.seek(0)
            return _parsed(printed.read())
    except OSError:  # a process without stderr
        return None


def _parsed(text: bytes) -> int | None:
    current, each = _CURRENT.search(text), _EACH.search(text)
    if current is None or each is None:
        return None
    return int(current[1].replace(b",", b"")) * int(each[1])
