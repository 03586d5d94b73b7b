"""The folder of this user in which running recorders and dormant probes are found."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from floodline.errors import ConfigError


def runtime_folder() -> Path:
    """Return the folder, created with mode 0700; refuse one that another user owns."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(base) / "floodline" if base else _temporary(user)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:  # XDG_RUNTIME_DIR of another user, or of a session that is over
        folder = _temporary(user)
        folder.mkdir(mode=0o700, exist_ok=True)
    return _private(folder, user)


def _private(folder: Path, user: int) -> Path:
    status = folder.lstat()
    open_to_others = status.st_mode & 0o077 and os.name == "posix"
    if not stat.S_ISDIR(status.st_mode) or (os.name == "posix" and status.st_uid != user):
        raise ConfigError(
            f"{folder} is not a folder of this user; remove it or set XDG_RUNTIME_DIR"
        )
    if open_to_others:
        folder.chmod(0o700)
    return folder


def _temporary(user: int) -> Path:
    try:
        return Path(tempfile.gettempdir()) / f"floodline-{user}"
    except FileNotFoundError:  # a read-only root without a volume for it
        raise ConfigError(
            "no temporary folder is writable; set XDG_RUNTIME_DIR to one that is"
        ) from None


def recordings_folder() -> Path:
    """Return where recordings without a given name go."""
    base = os.environ.get("XDG_STATE_HOME")
    home = Path(base) if base else Path.home() / ".local" / "state"
    return home / "floodline"


def temporary_recordings() -> Path:
    """Return where they go if that is not writable: a folder that no other user can open."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = _temporary(user) / "recordings"
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    _private(folder.parent, user)
    return folder
