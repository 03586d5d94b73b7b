"""What can be seen of a process without its help."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from floodline.recorder import _proc
from floodline.recorder._proc import (
    PAGE,
    alive,
    carriers,
    carries,
    command_of,
    descendants,
    environment_of,
    look,
    resident,
)

SITE = "/opt/floodline/site"


@pytest.fixture
def proc(tmp_path):
    """Return a maker of processes in a /proc of our own."""

    def make(pid, *words, exe="/usr/bin/python3.11", environ=None, children=(), state="S"):
        folder = tmp_path / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True)
        (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
        if environ is not None:
            pairs = [f"{name}={value}\0" for name, value in environ.items()]
            (folder / "environ").write_text("".join(pairs))
        (folder / "task" / str(pid) / "children").write_text(" ".join(map(str, children)))
        (folder / "statm").write_text("900 100 1 1 0 1 0\n")
        (folder / "stat").write_text(f"{pid} (a ) b) {state} 1 1\n")
        if exe:
            (folder / "exe").symlink_to(exe)
        return folder

    make.root = tmp_path
    return make


GOOD = {"FLOODLINE_PROBE": "h:1:t", "PYTHONPATH": f"{SITE}:/x"}


@pytest.mark.parametrize(
    ("words", "exe", "environ", "why"),
    [
        (("python", "-I", "a.py"), "/usr/bin/python3.11", GOOD, "started with -I"),
        (("python", "-sE", "a.py"), "/usr/bin/python3.11", GOOD, "started with -sE"),
        (("python", "-S", "a.py"), "/usr/bin/python3.11", GOOD, "started with -S"),
        (("python", "a.py", "-I"), "/usr/bin/python3.11", GOOD, "carries the probe"),
        (("python", "--check-hash-based-pycs", "a.py"), "/usr/bin/python3.11", GOOD, "carries"),
        (("python", "-c", "pass"), "/usr/bin/python3.11", {}, "environment was cleared"),
        (("python", "a.py"), "/usr/bin/python3.11", None, "carries the probe"),
        (("python", "a.py"), "/usr/bin/python3.11", {"FLOODLINE_PROBE": "h:1:t"}, "PYTHONPATH"),
        (("python", "a.py"), "/usr/bin/python3.8", GOOD, "Python 3.8"),
        (("node", "a.js"), "/usr/bin/node", GOOD, "not a Python"),
        (("python", "a.py"), None, GOOD, "carries the probe"),
    ],
)
def test_why_a_process_has_no_probe(proc, words, exe, environ, why):
    proc(7, *words, exe=exe, environ=environ)
    found = look(7, 1, SITE, proc.root)
    assert why in found.why
    assert (found.pid, found.parent, found.command) == (7, 1, " ".join(words))


def test_what_is_gone_and_helpers_of_python_are_not_told(proc):
    assert look(7, 1, SITE, proc.root) is None
    proc(8, "python", "-c", "from multiprocessing.resource_tracker import main;main(3)")
    assert look(8, 1, SITE, proc.root) is None


def test_children_are_found_over_generations(proc):
    proc(1, "a", children=(2, 3))
    proc(2, "b", children=(4,))
    proc(3, "c")
    proc(4, "d")
    assert sorted(descendants(1, proc.root)) == [2, 3, 4]
    assert descendants(99, proc.root) == []


def test_resident_memory_and_life(proc):
    proc(5, "a")
    proc(6, "zombie", state="Z")
    assert resident(5, proc.root) == 100 * PAGE
    assert resident(99, proc.root) is None
    assert alive(5, proc.root)
    assert not alive(6, proc.root)
    assert not alive(99, proc.root)


def test_command_and_environment_of_a_process(proc):
    proc(5, "/usr/bin/python", "app.py", environ={"A": "b=c"})
    assert command_of(5, proc.root) == "python app.py"
    assert environment_of(5, proc.root) == {"A": "b=c"}
    assert command_of(99, proc.root) is None
    assert environment_of(99, proc.root) is None


def test_without_proc_psutil_is_asked(tmp_path):
    nowhere = tmp_path / "no-proc"
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert resident(child.pid, nowhere) > 0
        assert alive(child.pid, nowhere)
        assert child.pid in descendants(os.getpid(), nowhere)
    finally:
        child.communicate()
    assert resident(child.pid, nowhere) is None
    assert not alive(child.pid, nowhere)
    assert descendants(child.pid, nowhere) == []


def test_this_process_is_alive():
    assert alive(os.getpid())
    assert resident(os.getpid()) > 1 << 20
    assert _proc.PROC.is_dir() is (sys.platform == "linux")


def test_those_that_carry_the_address_of_a_run_are_found_wherever_they_went(proc):
    proc(7, "python", environ=GOOD)
    proc(8, "python", environ={"FLOODLINE_PROBE": "h:1:te"})
    proc(9, "python", environ={"X": "FLOODLINE_PROBE=h:1:t"})
    proc(10, "python", environ=GOOD, state="Z")
    proc(11, "python")
    (proc.root / "cpuinfo").touch()
    assert carriers("h:1:t", proc.root) == [7]
    assert carries(10, "h:1:t", proc.root)
    assert not carries(11, "h:1:t", proc.root)


def test_they_are_found_without_proc_too(tmp_path):
    address = "127.0.0.1:1:somebody"
    environ = {**os.environ, "FLOODLINE_PROBE": address, "PYTHONPATH": ""}
    code = "print(1, flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", code],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout.readline()
        for proc in (_proc.PROC, tmp_path / "none"):
            assert carriers(address, proc) == [child.pid]
            assert carries(child.pid, address, proc)
    finally:
        child.communicate(b"\n")
    assert not carries(child.pid, address, tmp_path / "none")
