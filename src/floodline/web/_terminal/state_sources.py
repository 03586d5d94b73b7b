"""Successive states, from a running recorder over HTTP or from a recording."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

from floodline.errors import ConfigError
from floodline.recorder import read_recording
from floodline.recorder._recording.completed import completed
from floodline.recorder._snapshot import Snapshot

PATIENCE = 20.0  # seconds of silence after which a recorder counts as gone
LARGEST = 64 * 1024 * 1024


class Remote:
    """A recorder that serves its state at a url; the token may be in the url."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is not an address; give one such as http://127.0.0.1:7357")
        self.base = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
        self._token = token or next(iter(parse_qs(parts.query).get("token", ())), None)

    def state(self) -> Snapshot:
        """Return the newest state."""
        with self._open("/api/state") as answer:
            return _decoded(answer.read(LARGEST))

    def states(self) -> Iterator[Snapshot]:
        """Yield each new state until the program or its recorder has ended."""
        with self._open("/api/live") as answer:
            try:
                while line := answer.readline(LARGEST):
                    if line.startswith(b"data: "):
                        state = _decoded(line.removeprefix(b"data: "))
                        yield state
                        if state["closed"]:
                            return
            except (OSError, HTTPException):
                return  # the recorder is gone, and there is nothing more to say

    def _open(self, path: str) -> HTTPResponse:
        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
        request = urllib.request.Request(self.base + path, headers=headers)
        # a proxy must not see requests to this machine
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            answer: HTTPResponse = opener.open(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(500).decode(errors="replace").strip()
            raise ConfigError(f"{self.base} refused with status {error.code}: {said}") from error
        except (OSError, HTTPException) as error:
            why = getattr(error, "reason", error)
            raise ConfigError(f"no recorder answers at {self.base}: {why}") from error
        return answer


class Tail:
    """A recording that is still being written, by a recorder without a dashboard."""

    def __init__(self, file: Path, *, sleep: Callable[[float], object] = time.sleep) -> None:
        self._file, self._sleep = file, sleep

    def state(self) -> Snapshot:
        """Return the newest state."""
        return read_recording(self._file).state()

    def states(self) -> Iterator[Snapshot]:
        """Yield the state each second until the program or its recorder has ended."""
        while True:
            recording = read_recording(self._file)
            yield recording.state()
            if not recording.running:
                return
            self._sleep(1.0)


def _decoded(data: bytes) -> Snapshot:
    try:
        state = json.loads(data)
    except ValueError as error:
        raise ConfigError(f"that is not a recorder: its answer is not JSON ({error})") from error
    if not isinstance(state, dict) or "verdict" not in state:
        raise ConfigError("that is not a recorder: its answer has no verdict")
    try:
        return completed(state)
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigError(
            f"that is not a recorder: its answer cannot be read ({error!r})"
        ) from error


def paced(
    frames: Iterator[Snapshot],
    speed: float,
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[Snapshot]:
    """Yield recorded states at `speed` times their pace; no pause is longer than 2 s."""
    before: float | None = None
    for frame in frames:
        if before is not None and frame["now"] > before:
            sleep(min((frame["now"] - before) / speed, 2.0))
        before = frame["now"]
        yield frame
