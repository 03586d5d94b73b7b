"""Names of lease holders, written so that another process can tell when one is dead.

An owner is `LABEL fl1:MACHINE:BOOT:NAMESPACE:PID:START:NONCE`. It is called dead only if that is
certain, because the lease of a living owner must be respected: a pid means something only in our
pid namespace and boot, and another boot counts only on a machine that is certainly this one.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

_OWNER = re.compile(
    r".* fl1:([0-9a-f]*):([0-9a-f-]*):([0-9]*):([0-9]+):([0-9.]*):[0-9a-f]+", re.DOTALL
)
_LINUX = sys.platform == "linux"


@dataclass(slots=True, frozen=True)
class _Place:
    """The scope in which pids are unique; an empty string is unknown on this system."""

    machine: str
    boot: str
    namespace: str


def new_owner(label: str) -> str:
    """Return a name that no other owner has, for an object of this process."""
    place, pid = _here(), os.getpid()
    start = _start_of(pid) or ""
    nonce = secrets.token_hex(6)
    return f"{label} fl1:{place.machine}:{place.boot}:{place.namespace}:{pid}:{start}:{nonce}"


def owner_is_dead(owner: str) -> bool:
    """Return True if an owner's process is certainly gone; never for an unknown form of name."""
    found = _OWNER.fullmatch(owner)
    if found is None:
        return False
    machine, boot, namespace, pid, start = found.groups()
    here = _here()
    if boot != here.boot:
        return bool(boot and here.boot and machine and machine == here.machine)
    if namespace != here.namespace or not start or (not boot and machine != here.machine):
        return False
    return _is_gone(int(pid), start)


def _is_gone(pid: int, start: str) -> bool:
    if pid == os.getpid() or pid <= 0:
        return start != _start_of(os.getpid())
    if not psutil.pid_exists(pid):
        return True
    now = _start_of(pid)
    return now is not None and now != start


def _start_of(pid: int) -> str | None:
    """Return when a process began, "" if it has ended but is not yet reaped, None if unknown."""
    if _LINUX:
        return _start_in_proc(pid)
    try:
        process = psutil.Process(pid)
        return "" if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except (psutil.Error, OSError):
        return None


def _start_in_proc(pid: int) -> str | None:
    try:
        # the program's name is in brackets and may contain anything, even brackets
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        state, threads, start = fields[0], int(fields[17]), fields[19].decode()
    except (OSError, IndexError, ValueError):
        return None
    # a main thread that has ended is a zombie too, while others of its process still run
    return "" if state in (b"Z", b"X") and threads <= 1 else start


@functools.cache
def _machine() -> str:
    identity = _text("/etc/machine-id") if _LINUX else platform.node()
    if not identity:
        return ""
    # machine ids must not be disclosed; the host name tells containers apart
    return hashlib.sha256(f"{identity} {platform.node()}".encode()).hexdigest()[:16]


def boot_id() -> str:
    """Return an id of this boot of the machine, '' if there is none."""
    return _text("/proc/sys/kernel/random/boot_id") if _LINUX else ""


def _here() -> _Place:
    namespace = ""
    if _LINUX:
        try:
            namespace = str(Path("/proc/self/ns/pid").stat().st_ino)
        except OSError:
            namespace = ""
    return _Place(_machine(), boot_id(), namespace)


def _text(path: str) -> str:
    try:
        # text mode would import a codec, which a forked child may wait for forever
        return Path(path).read_bytes().decode("ascii").strip()
    except (OSError, ValueError):
        return ""
