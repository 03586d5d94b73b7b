"""The child that enters a process: it waits for the moment, and says what it does."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType

import pytest

from floodline.recorder._attaching import injection
from floodline.recorder._attaching.injection import (
    BUSY,
    NAP,
    NO_PACKAGE,
    PATIENCE,
    QUIET,
    REFUSED,
    Moment,
    NeverAsleepError,
    main,
)
from recorder_fakes import Clock


class Target:
    """A process whose main thread sleeps as told, and the injector that enters it."""

    def __init__(self, monkeypatch, *, sleeps=lambda look: True, quiet=True):
        self.clock, self.looks, self.done, self.alarms = Clock(), 0, [], []
        self._sleeps = sleeps
        monkeypatch.setattr(injection, "asleep", self._asleep)
        monkeypatch.setattr(injection, "quiet", lambda pid: quiet)
        monkeypatch.setattr(injection.signal, "alarm", self.alarms.append)

    def _asleep(self, pid):
        self.looks += 1
        return self._sleeps(self.looks)

    @contextmanager
    def attach(self, pid):
        self.done.append(f"hold {pid}")
        yield self
        self.done.append("let go")

    def inject(self, path):
        self.done.append(f"load {path.decode()}")
        return 5

    def uninject(self, handle):
        self.done.append(f"unload {handle}")

    def moment(self):
        def nap(seconds):
            self.clock.now += seconds

        return Moment(self.attach, self.done.append, clock=self.clock, nap=nap)


def test_it_enters_a_process_that_is_asleep_and_says_so_first(monkeypatch):
    target = Target(monkeypatch)
    assert target.moment().inject(7, "/x.so") == 5
    assert target.done == [
        *("hold 7", "entering", "load /x.so", "unload 5", "entered", "let go"),
    ]
    assert target.alarms == [0]  # from here on nothing may end it


def test_one_that_woke_before_it_was_held_is_let_go_and_tried_again(monkeypatch):
    target = Target(monkeypatch, sleeps=lambda look: look != 2)
    target.moment().inject(7, b"/x.so", uninject=False)
    assert target.done == [
        "hold 7",
        "let go",
        "hold 7",
        "entering",
        "load /x.so",
        "entered",
        "let go",
    ]


def test_one_that_is_never_asleep_is_left_alone(monkeypatch):
    target = Target(monkeypatch, sleeps=lambda look: False)
    with pytest.raises(NeverAsleepError, match="in 10 s"):
        target.moment().inject(7, "/x.so")
    assert target.done == []
    assert target.looks == pytest.approx(PATIENCE / NAP, abs=2)


def test_at_first_the_other_threads_must_be_quiet_too(monkeypatch):
    target = Target(monkeypatch, quiet=False)
    began = target.clock.now
    target.moment().inject(7, "/x.so")
    assert target.clock.now - began == pytest.approx(QUIET, abs=2 * NAP)


@pytest.fixture
def packages(monkeypatch):
    """Stand-ins for hypno and what it builds on."""
    monkeypatch.setattr(injection.signal, "alarm", bool)

    class Failed(Exception):
        pass

    made = {
        name: ModuleType(name) for name in ("hypno", "hypno.api", "pyinjector", "pyinjector.api")
    }
    made["hypno"].api = made["hypno.api"]
    made["pyinjector"].PyInjectorError = Failed
    made["pyinjector.api"].attach = None
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (None, 0, []),
        (NeverAsleepError("never seen"), BUSY, ["because never seen"]),
        (OSError("no such\nfile"), REFUSED, ["because no such file"]),
    ],
)
def test_how_it_ends(packages, tmp_path, raised, status, said):
    (tmp_path / "code").write_text("pass")
    entered, told = [], []

    def inject_py(pid, code):
        entered.append((pid, code))
        if raised:
            raise raised

    packages["hypno"].inject_py = inject_py
    assert main(["7", str(tmp_path / "code")], told.append) == status
    assert (entered, told) == ([(7, b"pass")], said)
    assert packages["hypno.api"].inject.__func__ is Moment.inject


def test_without_the_package_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypno", None)
    told = []
    assert main(["7", "x"], told.append) == NO_PACKAGE
    assert "hypno" in told[0]


def test_what_it_says_can_be_read_at_once(capsys):
    injection._say("entering")
    assert capsys.readouterr().out == "entering\n"
