"""The folder of this user in which running recorders and dormant probes are found."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from floodline.errors import ConfigError

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


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
    if not stat.S_ISDIR(status.st_mode) or (os.name == "posix" and status.st_uid != user):
        raise ConfigError(
            f"{folder} is not a folder of this user; remove it or set XDG_RUNTIME_DIR"
        )
    if stat.S_IMODE(status.st_mode) != 0o700 and os.name == "posix":
        folder.chmod(0o700)  # made by something else, or under an umask that takes from its owner
    return folder


def create_private(file: Path) -> int:
    """Make a file that its owner alone can open, whatever the umask; return its descriptor.

    Nothing may be in its place: a link that somebody has put there is not followed.
    """
    opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600)
    if os.name == "posix":
        os.fchmod(opened, 0o600)
    return opened


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
