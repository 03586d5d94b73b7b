"""Reads what a run saw: the suspects of a recording, or of the JSON of a soak or a report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from floodline.errors import ConfigError


def suspects_of(path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the suspects; a file of another kind raises `ConfigError`."""
    with path.open("rb") as file:
        is_json = file.read(64).lstrip().startswith(b"{")
    if not is_json:
        from floodline.recorder import read_recording

        return read_recording(path).state()["suspects"]
    try:
        suspects = json.loads(path.read_text(encoding="utf-8"))["suspects"]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} is neither a recording nor the JSON of a soak ({error!r}); write one with "
            "`floodline soak --json FILE` or `floodline run --record FILE`"
        ) from error
    return [suspect for suspect in suspects if isinstance(suspect, dict)]
