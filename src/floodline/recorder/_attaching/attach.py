"""Wakes the probe of a process that is already running."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from floodline.errors import ConfigError
from floodline.recorder._attaching.entrance import LATEST, enter, python_of
from floodline.recorder._probe.dormant import PATIENCE, Request, socket_of
from floodline.recorder._probe_site import SITE, VARIABLE
from floodline.recorder._proc import NoProbe, alive, environment_of, look, owner_of
from floodline.recorder._runtime_folder import runtime_folder

ADVICE = (
    "start it with FLOODLINE_PROBE=dormant in its environment (and floodline installed there), or "
    "call floodline.watch() in it; on Python 3.14 and later neither is needed"
)
SCRIPT = """\
import sys
sys.path.insert(0, {site!r})
try:
    import _floodline_arm
finally:
    sys.path.remove({site!r})
_floodline_arm.wake({where!r}, {seconds!r}, {now!r})
"""

LONGEST_ANSWER = 4096

RemoteExec = Callable[[int, str], object]
REMOTE_EXEC: RemoteExec | None = getattr(sys, "remote_exec", None)  # from 3.14 on


def wake(
    pid: int,
    where: str,
    seconds: float | None,
    *,
    now: bool = False,
    folder: Path | None = None,
    remote_exec: RemoteExec | None = REMOTE_EXEC,
    enter: Callable[[int, str], object] = enter,
) -> None:
    """Have the process report to `where` for some seconds; `ConfigError` says why it cannot."""
    if not alive(pid):
        raise ConfigError(f"there is no process {pid}; give the PID of a running Python program")
    for candidate in [folder] if folder else _folders(pid):
        file = socket_of(pid, candidate)
        if file.exists() and _ask(pid, file, {"where": where, "seconds": seconds, "now": now}):
            return
    if ":" in (environment_of(pid) or {}).get(VARIABLE, ""):
        raise ConfigError(f"process {pid} is already watched by floodline run; see floodline top")
    if why := _refusal(pid):
        raise ConfigError(why)
    script = SCRIPT.format(site=SITE, where=where, seconds=seconds, now=now)
    if remote_exec is not None and (python_of(pid) or LATEST + 1) > LATEST:
        _inject(pid, script, remote_exec)
        return
    try:
        enter(pid, script)
    except ConfigError as error:
        lacks = f"process {pid} has no probe that sleeps{_lacking(pid)}"
        raise ConfigError(f"{lacks}: {error}") from error


def _refusal(pid: int) -> str | None:
    """Say why a process can never be watched from here, None if it may be."""
    owner, we = owner_of(pid), os.getuid()
    if owner not in (None, we):
        return (
            f"process {pid} belongs to user {owner}, not {we}: attach as that user, "
            f"for example sudo -u '#{owner}' floodline attach {pid}"
        )
    found = look(pid, 0, SITE)
    if found is not None and found.key == NoProbe.OTHER:
        return f"process {pid} ({found.command}) is not a Python program; give the PID of one"
    if found is not None and found.key == NoProbe.OLD:
        return f"process {pid} ({found.command}) cannot be watched: {found.why}"
    return None


def _lacking(pid: int) -> str:
    """Say what a process lacks that was meant to be prepared."""
    if (environment_of(pid) or {}).get(VARIABLE) != "dormant":
        return ""
    return (
        f", although it was started with {VARIABLE}=dormant (is floodline installed there? An "
        "editable install is not enough, and -I, -E and -S keep it out)"
    )


def _folders(pid: int) -> list[Path]:
    """Return where the socket may be: its environment may differ from ours."""
    folders = [runtime_folder()]
    told = environment_of(pid) or {}
    bases = (told.get("XDG_RUNTIME_DIR"), f"/run/user/{os.getuid()}")
    folders += [Path(base) / "floodline" for base in bases if base]
    temporary = [told.get("TMPDIR")]
    with suppress(FileNotFoundError):  # none is writable; the socket may be elsewhere
        temporary.append(tempfile.gettempdir())
    folders += [Path(base) / f"floodline-{os.getuid()}" for base in temporary if base]
    return list(dict.fromkeys(folders))


def _ask(pid: int, file: Path, request: Request) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(PATIENCE)
            line.connect(str(file))
            line.sendall(json.dumps(request).encode() + b"\n")
            return bool(line.recv(LONGEST_ANSWER))
    except TimeoutError:
        raise ConfigError(
            f"the probe of process {pid} did not answer within {PATIENCE:g} s: another attach "
            "is watching it, or the process is stopped; wait until that is over, or end it"
        ) from None
    except OSError:  # left by a killed process, or another user's
        return False


def _inject(pid: int, script: str, remote_exec: RemoteExec) -> None:
    with tempfile.NamedTemporaryFile(
        "w", suffix=".py", prefix="floodline-", delete=False, encoding="utf-8"
    ) as file:
        file.write(script)  # stays: the process reads it when it next can
    try:
        remote_exec(pid, file.name)
    except (OSError, RuntimeError, ValueError) as error:
        Path(file.name).unlink(missing_ok=True)
        raise ConfigError(f"process {pid} cannot be entered ({error}): {ADVICE}") from error
