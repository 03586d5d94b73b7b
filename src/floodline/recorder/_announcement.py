"""How `floodline top` finds running recorders."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NotRequired, TypedDict

from floodline.errors import ConfigError
from floodline.recorder._proc import alive
from floodline.recorder._runtime_folder import create_private, runtime_folder


class Announced(TypedDict):
    """Where a running recorder is found: at a url, or by its recording."""

    url: str | None
    token: str | None
    record: NotRequired[str | None]
    pid: int


class Announcement:
    """The file that lets `floodline top` find a running recorder; removed when that ends.

    If it cannot be written, the run continues, but `top` does not find it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._file: Path | None = None

    def publish(self, *, url: str | None, token: str | None, record: str | None = None) -> None:
        """Write the file, readable by this user only."""
        facts: Announced = {"url": url, "token": token, "record": record, "pid": os.getpid()}
        with suppress(OSError, ConfigError):
            file = (self._folder or runtime_folder()) / f"recorder-{os.getpid()}.json"
            fresh = file.with_suffix(".new")
            fresh.unlink(missing_ok=True)  # of a process that had this number before
            with os.fdopen(create_private(fresh), "w", encoding="utf-8") as opened:
                opened.write(json.dumps(facts))
            self._file = fresh.replace(file)

    def withdraw(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def announced(folder: Path | None = None) -> list[Announced]:
    """Return the running recorders, newest first; files of killed ones are removed."""
    found: list[Announced] = []
    files = (folder or runtime_folder()).glob("recorder-*.json")
    for file in sorted(files, key=lambda one: one.stat().st_mtime, reverse=True):
        try:
            facts = json.loads(file.read_text(encoding="utf-8"))
            if alive(facts["pid"]):
                found.append(facts)
            else:
                file.unlink(missing_ok=True)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found
