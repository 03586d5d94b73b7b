"""The program of the recording and the baseline beside it: one dict leaks, the rest is bounded."""

from __future__ import annotations

import sys
import time

from floodline import BoundedLog, BoundedMap, Sessions


class Note:
    """What was said once."""

    def __init__(self, number: int) -> None:
        self.number, self.text = number, f"note {number} " * 4


class Notebook:
    """Keeps every note in an attribute of the class."""

    notes: dict[str, Note] = {}  # noqa: RUF012 - it is the leak

    @classmethod
    def write(cls, number: int) -> None:
        """Keep one more."""
        cls.notes[f"note-{number}"] = Note(number)


CHATS = Sessions(dict, max_sessions=50, name="chats")
REPLIES: BoundedMap[int, str] = BoundedMap(100, name="replies")
AUDIT: BoundedLog[str] = BoundedLog(200, name="audit")


def main(seconds: float) -> None:
    """Write notes for so long."""
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with CHATS.use(f"user-{number % 80}") as chat:
            chat["turns"] = chat.get("turns", 0) + 1
        Notebook.write(number)
        REPLIES[number] = "a reply"
        AUDIT.append(f"note {number}")
        number += 1
        time.sleep(0.005)


if __name__ == "__main__":
    main(float(sys.argv[1]))
