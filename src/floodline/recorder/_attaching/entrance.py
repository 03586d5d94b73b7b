"""Enters a running Python process that was not prepared, or says what keeps us out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from floodline.errors import ConfigError
from floodline.recorder._attaching.asleep import PROC, WAITS
from floodline.recorder._attaching.injection import BUSY, NO_PACKAGE, PATIENCE, SLACK
from floodline.recorder._probe_site import SITE, VARIABLE

EXTRA = "pip install 'floodline[attach]'"
INSTEAD = (
    f"Or prepare it: start it with {VARIABLE}=dormant in its environment (and floodline installed "
    "there), or call floodline.watch() in it"
)
LATEST = 13  # from 3.14 on, Python itself lets us in
LOOK = 0.02
LONGEST = 60.0  # seconds for the step that must not be interrupted
LIBRARY = re.compile(rb"(?:/|^)(?:libpython|python)3\.(\d+)", re.MULTILINE)
SYS_PTRACE = 1 << 19
# run on the main thread, which holds the lock of the dynamic linker then: it must not import a
# library or wait for another thread, so all it does is start one that waits a little first
FIRST = """\
import _thread
_thread.start_new_thread(exec, ({then!r}, {{"__name__": "floodline_attach"}}))
del _thread
"""
THEN = "import time\ntime.sleep(0.3)\ndel time\n"
Run = Callable[[list[str]], tuple[int | None, str]]


def enter(pid: int, script: str, *, proc: Path = PROC, run: Run | None = None) -> None:
    """Have a process run a script on a thread of its own; `ConfigError` says why it cannot."""
    if why := obstacle(pid, proc):
        raise ConfigError(f"{why}. {INSTEAD}")
    with tempfile.TemporaryDirectory(prefix="floodline-", ignore_cleanup_errors=True) as folder:
        if not same_file(pid, folder, proc) or not same_file(pid, SITE, proc):
            raise ConfigError(f"{elsewhere(pid)}. {INSTEAD}")
        file = Path(folder) / "script.py"
        file.write_text(FIRST.format(then=THEN + script), encoding="utf-8")
        words = [
            sys.executable,
            "-m",
            "floodline.recorder._attaching.injection",
            str(pid),
            str(file),
        ]
        status, said = (run or _run_in(folder))(words)
    if status != 0:
        raise ConfigError(f"{_refused(pid, status, said, proc)}. {INSTEAD}")


def obstacle(pid: int, proc: Path = PROC, machine: str | None = None) -> str | None:
    """Say what keeps us out before anything is tried, None if nothing is known to."""
    machine = machine or os.uname().machine
    if not proc.is_dir() or machine not in WAITS:
        return f"a process that is not prepared can be entered on Linux only, not on {machine}"
    if find_spec("hypno") is None:
        return f"to enter an unprepared process, the extra attach is needed; run: {EXTRA}"
    status = _status(pid, proc)
    if status.get("State", "").startswith(("T", "t")) and status.get("TracerPid", "0") == "0":
        return f"process {pid} is stopped; let it continue with kill -CONT {pid}, and try again"
    if (tracer := status.get("TracerPid", "0")) != "0":
        return f"process {pid} is traced by process {tracer}, a debugger or strace; end that first"
    version = python_of(pid, proc)
    if version is not None and version > LATEST:
        return (
            f"process {pid} runs Python 3.{version}, which lets in only a floodline on the same "
            f"version; run floodline with Python 3.{version}"
        )
    if _namespace(pid, "net", proc) != _namespace("self", "net", proc):
        return elsewhere(pid)
    return None


def elsewhere(pid: int) -> str:
    """Say that a process has other files or another network than we have."""
    return (
        f"process {pid} runs in a container with its own files or network: run floodline attach "
        "inside it, for example docker exec CONTAINER floodline attach PID, with the PID there"
    )


def same_file(pid: int, path: str, proc: Path = PROC) -> bool:
    """Return True if a process sees the same file or folder under a path as we do."""
    try:
        ours, theirs = Path(path).stat(), Path(f"{proc}/{pid}/root{Path(path).absolute()}").stat()
    except FileNotFoundError:
        return False
    except OSError:  # we may not look; trying to enter says why
        return True
    return os.path.samestat(ours, theirs)


def python_of(pid: int, proc: Path = PROC) -> int | None:
    """Return the minor version of the Python of a process, None if its files do not say."""
    try:
        found = LIBRARY.findall((proc / str(pid) / "maps").read_bytes())
    except OSError:
        return None
    return max(map(int, found), default=None)


def _namespace(pid: int | str, kind: str, proc: Path) -> str | None:
    try:
        return str((proc / str(pid) / "ns" / kind).readlink())
    except OSError:
        return str((proc / "self" / "ns" / kind).readlink()) if (proc / "self").exists() else None


def _status(pid: int, proc: Path) -> dict[str, str]:
    try:
        lines = (proc / str(pid) / "status").read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}


def _refused(pid: int, status: int | None, said: str, proc: Path) -> str:
    why = next((line[8:] for line in said.splitlines() if line.startswith("because ")), "")
    if status == NO_PACKAGE:
        return f"to enter an unprepared process, the extra attach is needed ({why}); run: {EXTRA}"
    if status == BUSY:
        return (
            f"process {pid} was not entered: in {PATIENCE:g} s its main thread was never seen "
            "waiting for events (poll, epoll, select, sleep, or read from a pipe, socket or "
            "terminal), and at any other moment entering may harm it"
        )
    if status is None and "entering" in said:
        return (
            f"process {pid} is being entered, and has not let us in within {LONGEST:g} s: some "
            "thread keeps the interpreter to itself; the attempt goes on by itself"
        )
    if status is None:
        return f"process {pid} could not be entered in time"
    return f"process {pid} may not be traced ({why}): {_permission(proc)}"


def _permission(proc: Path) -> str:
    """Say what the system forbids, and what to set."""
    try:
        scope = int((proc / "sys/kernel/yama/ptrace_scope").read_text("ascii"))
    except (OSError, ValueError):
        scope = 0
    capable = int(_status(os.getpid(), proc).get("CapEff", "0"), 16) & SYS_PTRACE
    if scope == 3:
        return "the kernel forbids tracing until the next boot (kernel.yama.ptrace_scope=3)"
    if capable:
        return "a security module such as AppArmor, SELinux or seccomp forbids it"
    if scope:
        return (
            f"the kernel lets only root trace other processes (kernel.yama.ptrace_scope={scope}); "
            "run floodline with sudo -E, or allow it with sudo sysctl kernel.yama.ptrace_scope=0"
        )
    return (
        "the capability SYS_PTRACE is missing; in a container, start it with "
        "--cap-add=SYS_PTRACE, or run floodline as the process's own user"
    )


def _run_in(folder: str) -> Run:
    def run(words: list[str]) -> tuple[int | None, str]:
        output = Path(folder) / "said"
        environ = {name: text for name, text in os.environ.items() if name != VARIABLE}
        with output.open("wb") as said:
            child = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**environ, "TMPDIR": folder},
                start_new_session=True,  # Ctrl-C is not for it
            )
        began = time.monotonic()
        while child.poll() is None:
            waited, entering = time.monotonic() - began, b"entering" in output.read_bytes()
            if waited > PATIENCE + 2 * SLACK + (LONGEST if entering else 0):
                break  # but never end it: in the middle of that step, the process would die
            time.sleep(LOOK)
        return child.returncode, output.read_text("utf-8", "replace")

    return run
