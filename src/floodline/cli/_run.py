"""`floodline run`: start a program together with the flight recorder."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from floodline._units import format_size, parse_size
from floodline.errors import ConfigError
from floodline.recorder import Recorder
from floodline.recorder._announcement import Announcement
from floodline.recorder._answers.answer_text import text
from floodline.recorder._descriptors import Seldom
from floodline.recorder._exit_cause import processes
from floodline.recorder._processes.command_line import (
    find_interpreter,
    program_words,
    watched_environment,
)
from floodline.recorder._processes.program import Program, end_as, hold_signals
from floodline.recorder._runtime_folder import recordings_folder, temporary_recordings
from floodline.recorder._snapshot import Snapshot

if TYPE_CHECKING:
    from floodline.web import Serving

FIRST_TICKS, QUICK, TICK = 20, 0.25, 1.0
LATE = 2.0  # seconds that processes get to end after Ctrl-C
LOOPBACK = ("127.0.0.1", "localhost", "::1")
MIB = 1 << 20
KEPT = 20  # recordings without a given name


class Door(NamedTuple):
    """Where the dashboard will answer: a port we already listen on."""

    host: str
    sock: socket.socket


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", is_flag=True, help="Run a module, as python -m does.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Dashboard port; 0 for any free one. Default: the usual port or the next free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Dashboard address; off loopback it requires a token.",
)
@click.option(
    "--line", help='The flood line: warn and shed above this much memory, such as "512 MiB".'
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The recording; an existing one is kept as FILE.1.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the report when the program ends.",
)
@click.option(
    "--python",
    default=sys.executable,
    help="The interpreter that runs the app; it does not need floodline.",
)
@click.option("--no-dashboard", is_flag=True, help="Record only.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    module: bool,
    port: int | None,
    host: str,
    line: str | None,
    record: Path | None,
    report: Path | None,
    python: str,
    no_dashboard: bool,
    program: tuple[str, ...],
) -> int:
    """Run a program and record what grows in it.

    floodline run app.py ARGS…, floodline run -m MODULE ARGS…, floodline run gunicorn ARGS…, or with
    options for Python itself, floodline run python -u app.py. The program keeps its standard input,
    its terminal and its exit status; its Python child processes are watched too. Options of
    floodline come before the program.
    """
    bytes_of_line = None if line is None else _line(line)
    words = program_words(find_interpreter(python), list(program), module=module)
    if report is not None and not report.resolve().parent.is_dir():
        raise ConfigError(f"--report {report}: folder {report.parent} does not exist; create it")
    name = " ".join(["-m", *program] if module else [Path(program[0]).name, *program[1:]])[:200]
    door = None if no_dashboard else _door(host, port)
    mask = hold_signals()
    try:
        recorder = _recorder(name, program[0], record, bytes_of_line)
        try:
            code = _run(recorder, words, mask, door)
        finally:
            recorder.close()
        _finish(recorder, report)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if door is not None:
            door.sock.close()
    return end_as(code)


def _line(text: str) -> int:
    """Return the line in bytes; a bare small number is meant in another unit."""
    size = parse_size(text, "--line")
    if size < MIB and text.strip().replace("_", "").isdecimal():
        raise ConfigError(
            f"--line {text} is {format_size(size)}, less than any Python program needs; give the "
            f'unit, such as --line "{text.strip()} MiB"'
        )
    return size


def _run(recorder: Recorder, words: list[str], mask: set[int], door: Door | None) -> int:
    announcement = Announcement()
    serving = None if door is None else _serve(recorder, door, announcement)
    if serving is None:  # then floodline top reads the recording
        announcement.publish(url=None, token=None, record=_file(recorder))
    try:
        child = Program(words, watched_environment(recorder.address), mask)
        try:
            recorder.program(child.pid)
            _watch(recorder, child)
        finally:
            child.finish()
    finally:
        announcement.withdraw()
        if serving is not None:
            recorder.close()  # first, so that open pages show the end
            serving.close()
    assert child.code is not None
    return child.code


def _recorder(name: str, program: str, record: Path | None, line: int | None) -> Recorder:
    if record is not None:
        return Recorder(name, file=record, line=line)
    for folder in _folders():
        with suppress(ConfigError, OSError):
            _forget_old(folder)
            return Recorder(name, file=_unnamed(folder, program), line=line)
    _say("no writable folder for the recording; give --record FILE (in a container, on a volume)")
    return Recorder(name, line=line)


def _folders() -> Iterator[Path]:
    with suppress(RuntimeError):  # a user without a home
        yield recordings_folder()
    with suppress(OSError, ConfigError):  # a container where nothing can be written
        yield temporary_recordings()


def _unnamed(folder: Path, program: str) -> Path:
    """Return a file for the recording; a program may start twice in the same second."""
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{Path(program).name.removesuffix('.py')}"
    file = folder / f"{stamp}.rec"
    return folder / f"{stamp}-{os.getpid()}.rec" if file.exists() else file


def _forget_old(folder: Path) -> None:
    """Keep only the newest recordings without a given name."""
    known = sorted(folder.glob("*.rec"), key=lambda file: file.stat().st_mtime)
    for file in known[: max(0, len(known) - KEPT + 1)]:
        file.unlink(missing_ok=True)


def _door(host: str, port: int | None) -> Door | None:
    """Open the dashboard's port before anything is moved or started, or say what is missing."""
    try:
        from floodline.web._dashboard.server_thread import listen
    except ImportError:
        _say("no dashboard: it needs the extra web; run: pip install 'floodline[web]'")
        return None
    return Door(host, listen(host, port))


def _serve(recorder: Recorder, door: Door, announcement: Announcement) -> Serving:
    from floodline.web import make_app, serve
    from floodline.web._words.phrases import DASHBOARD_AT

    token = None if door.host in LOOPBACK else secrets.token_urlsafe(16)
    serving = serve(make_app(recorder, token=token), door.host, sock=door.sock)
    announcement.publish(url=serving.url, token=token, record=_file(recorder))
    _say(f"{DASHBOARD_AT}{serving.address(token)}")
    return serving


def _file(recorder: Recorder) -> str | None:
    file = recorder.state()["recorder"]["file"]
    return None if file is None else str(Path(file).absolute())


def _watch(recorder: Recorder, child: Program) -> None:
    ticking = _Ticking(recorder)
    while not child.wait(ticking.pause()):
        if child.stopped.is_set():
            recorder.stopping()
        ticking.tick()
    if child.code == 0 and not child.stopped.is_set() and (left := recorder.outlived(0)):
        child.leave_to(recorder.pass_on)
        end = "it ends" if len(left) == 1 else "they end"
        _say(f"the program has ended and left {processes(left)} running: recording continues "
             f"until {end}, or until Ctrl-C")  # fmt: skip
        while recorder.remaining() and not child.stopped.wait(ticking.pause()):
            ticking.tick()
        _let_end(recorder, ticking)
    recorder.ended(child.code, asked=child.asked, typed=child.typed, peak=child.peak)


def _let_end(recorder: Recorder, ticking: _Ticking) -> None:
    """Wait a little for processes that Ctrl-C has reached as well."""
    until = time.monotonic() + LATE
    while time.monotonic() < until and any(map(_in_our_group, recorder.remaining())):
        time.sleep(QUICK)
        ticking.tick()


def _in_our_group(pid: int) -> bool:
    with suppress(ProcessLookupError):
        return os.getpgid(pid) == os.getpgrp()
    return False


class _Ticking:
    """Ticks, faster at first, and prints what must not wait until the end."""

    def __init__(self, recorder: Recorder, clock: Callable[[], float] = time.monotonic) -> None:
        self._recorder = recorder
        self._ticks = 0
        self._above = self._lacking = False
        self._seldom = Seldom(clock)

    def pause(self) -> float:
        return QUICK if self._ticks < FIRST_TICKS else TICK

    def tick(self) -> None:
        recorder = self._recorder
        recorder.tick()
        self._ticks += 1
        if recorder.unwritten and not self._lacking and self._seldom():
            _say(f"{recorder.unwritten}; the program continues, and every tick is retried")
        self._lacking = recorder.unwritten is not None
        state = recorder.state()
        line, used = state["line"], state["memory"]["now"]
        if line and (used >= line) != self._above:
            self._above = not self._above
            if self._above:
                _say(f"{format_size(used)} is above the line of {format_size(line)}")


def _finish(recorder: Recorder, report: Path | None) -> None:
    state = recorder.state()
    own = state["recorder"]
    with suppress(OSError):
        click.echo(text(state), err=True)
    if report is not None:
        _write_report(state, report)
    file = own["file"]
    where = f"{file} (to read it: floodline report {file})" if file else "no file"
    kept = f"recorded to {where}"
    if recorder.unwritten:
        kept = f"{recorder.unwritten}; the end of the recording is missing"
    _say(f"{kept}; the recorder used {format_size(own['rss'])}")


def _write_report(state: Snapshot, report: Path) -> None:
    from floodline.web import write_report

    try:
        write_report(state, report)
    except ConfigError as error:  # the program's exit status matters more than our failure
        _say(f"no report: {error}; write it from the recording with floodline report")
    else:
        _say(f"report written to {report}")


def _say(words: str) -> None:
    with suppress(OSError):  # nothing reads our stderr any more
        click.echo(f"floodline: {words}", err=True)
