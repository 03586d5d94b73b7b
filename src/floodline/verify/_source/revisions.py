"""Reads a file as it was at a revision of its Git repository."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from floodline.errors import ConfigError


def at_revision(revision: str) -> Callable[[Path], bytes]:
    """Return a reader of files at a revision; a file that was not there then is not found."""

    def content(file: Path) -> bytes:
        known = _git(file, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        if known.returncode:
            told = known.stderr.decode(errors="replace").strip() or "there is no such revision"
            raise ConfigError(f"--before {revision} cannot be read for {file}: {told}")
        found = _git(file, "show", f"{revision}:./{file.name}")
        if found.returncode:
            raise FileNotFoundError(file)
        return found.stdout

    return content


def _git(file: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "-C", str(file.parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise ConfigError(f"--before needs git, which cannot be run: {error}") from error
