"""How the probe gets into a process: late, never in the way, and not where a process only forks."""

from __future__ import annotations

import ast
import gc
import os
import runpy
import subprocess
import sys
import threading
import types
import venv
from pathlib import Path

import pytest

from floodline.recorder import Recorder
from floodline.recorder._probe import dormant as dormant_module
from floodline.recorder._probe.site import _floodline_arm as arming
from floodline.recorder._probe.site._floodline_arm import Arm
from floodline.recorder._processes.command_line import watched_environment
from floodline.recorder._processes.process_tree import SITE

PATIENCE = 60.0


class Probe:
    """Runs until its nap is ended."""

    def __init__(self, error=None):
        self.began = threading.Event()
        self.runs = self.closed = self.abandoned = self.interrupted = 0
        self.error = error

    def run(self, nap):
        self.runs += 1
        self.began.set()
        if self.error:
            raise self.error
        while not nap(PATIENCE):
            pass

    def interrupt(self):
        self.interrupted += 1

    def close(self):
        self.closed += 1

    def abandon(self):
        self.abandoned += 1


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(arming, "PATIENCE", PATIENCE)
    monkeypatch.setattr(arming, "AT_EXIT", PATIENCE)


@pytest.fixture
def probe():
    return Probe()


@pytest.fixture
def arm(probe, monkeypatch):
    monkeypatch.setattr(gc, "callbacks", [])
    arm = Arm(lambda: probe, delay=0.0)
    yield arm
    arm.end()


def run_here(arm, *, stopped):
    """Run what the thread runs, on this one."""
    stop, done = threading.Lock(), threading.Lock()
    done.acquire()
    if not stopped:
        stop.acquire()
    arm._run(stop, done)
    return done.acquire(blocking=False)


def test_one_that_is_ended_in_its_first_second_makes_nothing():
    made = []
    assert run_here(Arm(lambda: made.append(1)), stopped=True)
    assert made == []


def test_the_probe_is_made_once_and_runs_until_it_is_ended():
    naps = []

    class Napping(Probe):
        def run(self, nap):
            naps.append(nap(0.0))

    made = []
    arm = Arm(lambda: made.append(1) or Napping(), delay=0.0)
    assert run_here(arm, stopped=False)
    assert run_here(arm, stopped=False)
    assert naps == [False, False]
    assert len(made) == 1


def test_a_nap_stays_ended():
    class Napping(Probe):
        def run(self, nap):
            self.naps = [nap(0.0), nap(0.0)]

    arm = Arm(Napping, delay=0.0)
    stop, done = threading.Lock(), threading.Lock()
    stop.acquire()
    done.acquire()
    arm._make = lambda: stop.release() or Napping()
    arm._run(stop, done)
    assert arm.probe.naps == [True, True]


def test_what_breaks_is_told_and_the_thread_is_done():
    told = []
    arm = Arm(lambda: Probe(ZeroDivisionError("x")), delay=0.0, failed=told.append)
    assert run_here(arm, stopped=False)
    assert len(told) == 1


def test_the_thread_runs_the_probe_and_threading_does_not_know_it(arm, probe):
    known = set(threading.enumerate())
    arm.begin()
    assert probe.began.wait(PATIENCE)
    assert set(threading.enumerate()) <= known


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the threads of the kernel")
def test_before_a_fork_the_thread_is_gone_for_the_kernel_too(arm, probe):
    arm.begin()
    assert probe.began.wait(PATIENCE)
    thread = Path("/proc/self/task", str(arm._native))
    assert thread.exists()
    arm.before_fork()
    assert not thread.exists()
    assert not arm.running


def test_in_the_first_second_nothing_is_made_and_ending_is_quick():
    made = []
    arm = Arm(lambda: made.append(1), delay=PATIENCE)
    arm.begin()
    arm.end()
    arm.end()
    assert made == []


def test_a_parent_that_only_forks_gets_no_thread_again(arm, probe):
    arm.before_fork()
    arm.after_in_parent()
    assert not arm.running
    arm.on_collection("start", {})
    assert not arm.running


def test_a_parent_that_works_goes_on_with_the_same_probe(arm, probe):
    arm.begin()
    assert probe.began.wait(PATIENCE)
    arm.before_fork()
    arm.after_in_parent()
    probe.began.clear()
    arm.on_collection("stop", {})
    assert probe.began.wait(PATIENCE)
    assert probe.runs == 2
    arm.on_collection("stop", {})  # it runs already
    assert probe.runs == 2


def test_a_collection_too_soon_after_a_fork_is_no_work(monkeypatch):
    monkeypatch.setattr(gc, "callbacks", [])
    arm = Arm(Probe, delay=PATIENCE)
    arm.after_in_parent()
    arm.on_collection("stop", {})
    assert not arm.running


def test_one_that_only_waits_to_be_called_begins_again_at_once(probe):
    arm = Arm(lambda: probe, delay=0.0, eager=True)
    arm.after_in_parent()
    assert probe.began.wait(PATIENCE)
    arm.end()


def test_a_child_lets_go_of_what_it_inherited_and_makes_its_own(probe):
    fresh = Probe()
    arm = Arm(lambda: fresh, delay=0.0)
    arm.probe = probe
    arm.after_in_child()
    assert fresh.began.wait(PATIENCE)
    assert probe.abandoned == 1
    arm.end()
    Arm(lambda: fresh, delay=PATIENCE).after_in_child()


def test_a_program_that_ends_does_not_wait_for_a_busy_probe(monkeypatch):
    monkeypatch.setattr(arming, "AT_EXIT", 0.0)
    busy, began = threading.Event(), threading.Event()
    said = []

    class Busy:
        def run(self, nap):
            began.set()
            busy.wait(PATIENCE)

        def interrupt(self):
            pass

        def close(self):
            said.append("close")

        def leave(self):
            said.append("leave")

    arm = Arm(Busy, delay=0.0)
    arm.begin()
    assert began.wait(PATIENCE)
    arm.last_words()
    assert said == ["leave"]
    busy.set()


def test_last_words_are_said_once(arm, probe):
    arm.begin()
    assert probe.began.wait(PATIENCE)
    arm.last_words()
    arm.last_words()
    assert probe.closed == 1


def test_a_probe_that_breaks_ends_alone_and_says_why():
    told = []
    said = threading.Event()
    arm = Arm(
        lambda: Probe(ZeroDivisionError("x")),
        delay=0.0,
        failed=lambda error: (told.append(error), said.set()),
    )
    arm.begin()
    assert said.wait(PATIENCE)
    arm.end()
    assert isinstance(told[0], ZeroDivisionError)


def test_without_a_further_thread_nobody_watches(monkeypatch, arm):
    def none(*arguments):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(arming._thread, "start_new_thread", none)
    arm.begin()
    assert not arm.running


def test_children_of_multiprocessing_say_their_last_words(monkeypatch, arm):
    asked = []

    class Util:
        @staticmethod
        def Finalize(*arguments, **options):
            asked.append((arguments, options))

    monkeypatch.setitem(sys.modules, "multiprocessing.util", Util)
    arm._ask_multiprocessing()
    assert asked == [((None, arm.last_words), {"exitpriority": -1000})]
    monkeypatch.delitem(sys.modules, "multiprocessing.util")
    arm._ask_multiprocessing()
    assert len(asked) == 1


def test_enlisting_asks_for_forks_and_the_exit(monkeypatch, arm, probe):
    asked = []
    monkeypatch.setattr(os, "register_at_fork", lambda **hooks: asked.append(sorted(hooks)))
    monkeypatch.setattr(arming.atexit, "register", asked.append)
    arming.enlist(arm)
    assert asked == [["after_in_child", "after_in_parent", "before"], arm.last_words]
    assert probe.began.wait(PATIENCE)
    assert gc.callbacks == []  # a process that never forks pays nothing for it


def test_after_a_fork_collections_are_looked_at(arm):
    arm.after_in_parent()
    arm.after_in_parent()
    assert gc.callbacks == [arm.on_collection]


def enlisted(monkeypatch):
    arms = []
    monkeypatch.setattr(arming, "enlist", arms.append)
    return arms


def test_what_the_environment_asks_for_is_armed(monkeypatch):
    arms = enlisted(monkeypatch)
    monkeypatch.setenv("FLOODLINE_PROBE", "127.0.0.1:1:token")
    arming.arm()
    assert type(arms[0]._make()).__name__ == "Probe"
    monkeypatch.setenv("FLOODLINE_PROBE", "nonsense")
    arming.arm()
    assert len(arms) == 1


def test_helpers_of_python_are_left_alone(monkeypatch):
    arms = enlisted(monkeypatch)
    monkeypatch.setenv("FLOODLINE_PROBE", "127.0.0.1:1:token")
    helper = ["python", "-c", "from multiprocessing.resource_tracker import main;main(3)"]
    monkeypatch.setattr(sys, "orig_argv", helper)
    arming.arm()
    assert arms == []


def test_dormant_sleeps_once(monkeypatch):
    arms = enlisted(monkeypatch)
    monkeypatch.setattr(dormant_module, "_arm", None)
    monkeypatch.setenv("FLOODLINE_PROBE", "dormant")
    arming.arm()
    dormant_module.watch()
    assert len(arms) == 1


def test_under_run_there_is_nothing_to_wake(monkeypatch):
    arms = enlisted(monkeypatch)
    monkeypatch.setattr(dormant_module, "_arm", None)
    monkeypatch.setenv("FLOODLINE_PROBE", "127.0.0.1:1:token")
    dormant_module.watch()
    assert arms == []


def test_what_is_run_in_a_later_python_watches_at_once(monkeypatch):
    arms = enlisted(monkeypatch)
    arming.wake("127.0.0.1:1:token", 5.0)
    assert arms[0]._delay == 0.0
    assert type(arms[0]._make()).__name__ == "Probe"


def test_what_an_attach_has_started_is_gone_when_it_is_over(monkeypatch):
    hooks, probes = [], []
    monkeypatch.setattr(arming.atexit, "unregister", hooks.append)
    monkeypatch.setattr(gc, "callbacks", [])

    class Brief:
        def __init__(self):
            probes.append(self)

        def run(self, nap):
            pass

        def abandon(self):
            pass

    arm = Arm(Brief, delay=0.0, eager=True, once=True)
    assert run_here(arm, stopped=False)
    assert (arm.running, arm.probe, hooks) == (False, None, [arm.last_words])
    arm.before_fork()
    arm.after_in_parent()
    arm.after_in_child()
    arm.begin()
    assert not arm.running
    assert (len(probes), gc.callbacks) == (1, [])


def test_a_fork_while_attached_goes_on_in_the_parent_only(probe, monkeypatch):
    monkeypatch.setattr(arming._thread, "start_new_thread", lambda *call: None)
    arm = Arm(lambda: probe, delay=0.0, eager=True, once=True)
    arm.begin()
    arm.running = False  # as if its thread had ended before the fork
    arm.after_in_parent()
    assert arm.running
    arm.after_in_child()
    assert not arm.running


def test_a_failure_is_told_to_the_recorder():
    recorder = Recorder("app.py")
    address = recorder.address
    arming.tell_failure(address, ImportError("no module named x"))
    for _ in range(600):
        recorder.tick()
        if recorder.state()["not_covered"]:
            break
        recorder.wait_for_news(0.1)
    recorder.close()
    assert "no module named x" in recorder.state()["not_covered"][0]
    arming.tell_failure(address, ImportError("nobody hears this"))


def test_where_there_is_no_fork_only_the_exit_is_asked_for(monkeypatch, arm):
    asked = []
    monkeypatch.delattr(os, "register_at_fork")
    monkeypatch.setattr(arming.atexit, "register", asked.append)
    arming.enlist(arm)
    assert asked == [arm.last_words]


def test_a_thread_that_does_not_end_is_waited_for_no_longer_than_patience(monkeypatch, arm):
    monkeypatch.setattr(arming, "PATIENCE", 0.01)
    monkeypatch.setattr(arming._thread, "start_new_thread", lambda *call: None)
    arm.begin()
    arm.end()
    assert not arm.running
    monkeypatch.setattr(arming.time, "sleep", lambda seconds: None)
    arm._native = os.getpid()
    arm._until_gone("/")  # it is always there


def test_the_package_of_the_program_is_taken_if_it_has_one(monkeypatch, tmp_path):
    arming.take_package("/nowhere")
    monkeypatch.delitem(sys.modules, "floodline")
    arming.take_package("/nowhere")  # it can be imported, so it is left to be
    assert "floodline" not in sys.modules


def test_else_ours_is(monkeypatch, tmp_path):
    (tmp_path / "__init__.py").write_text("ours = True\n")
    monkeypatch.setitem(sys.modules, "floodline", None)
    monkeypatch.delitem(sys.modules, "floodline")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    arming.take_package(str(tmp_path))
    assert sys.modules["floodline"].ours


# ---- sitecustomize, here and in a process of its own


@pytest.fixture
def site(monkeypatch):
    """Return what runs our sitecustomize in this process, which is as before afterwards."""
    armed = []
    monkeypatch.setattr(sys, "path", [SITE, *sys.path])
    monkeypatch.setitem(sys.modules, "sitecustomize", sys)
    stand_in = types.ModuleType("_floodline_arm")
    stand_in.arm = lambda: armed.append(1)
    monkeypatch.setitem(sys.modules, "_floodline_arm", stand_in)

    def run():
        name = "floodline.recorder._probe.site.sitecustomize"
        runpy.run_path(str(Path(SITE, "sitecustomize.py")), run_name=name)
        return len(armed)

    run.stand_in = stand_in
    return run


def test_it_arms_and_leaves_the_path(site, monkeypatch):
    monkeypatch.setenv("FLOODLINE_PROBE", "h:1:t")
    assert site() == 1
    assert SITE not in sys.path
    assert "sitecustomize" in sys.modules


def test_without_the_variable_it_does_nothing(site, monkeypatch):
    monkeypatch.delenv("FLOODLINE_PROBE", raising=False)
    monkeypatch.delitem(sys.modules, "sitecustomize")
    assert site() == 0


def test_the_program_starts_whatever_is_wrong_with_us(site, monkeypatch, capsys):
    monkeypatch.setenv("FLOODLINE_PROBE", "h:1:t")
    del site.stand_in.arm
    assert site() == 0
    assert "not watched" in capsys.readouterr().err


def test_an_error_of_the_hidden_one_is_its_own(site, monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import does_not_exist")
    monkeypatch.setattr(sys, "path", [SITE, str(tmp_path), *sys.path])
    monkeypatch.delenv("FLOODLINE_PROBE", raising=False)
    with pytest.raises(ImportError, match="does_not_exist"):
        site()


def test_sitecustomize_parses_on_every_python_from_3_6():
    source = Path(SITE, "sitecustomize.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))
    assert "annotations" not in source


def python(code, *folders, address="127.0.0.1:1:t", executable=sys.executable, **environ):
    plain = {name: text for name, text in os.environ.items() if not name.startswith("COVERAGE")}
    env = watched_environment(address, {**plain, **environ})
    env["PYTHONPATH"] = os.pathsep.join([SITE, *map(str, folders)])
    run = subprocess.run(
        [executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    return run.stdout.strip()


def test_the_sitecustomize_that_is_shadowed_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.theirs = __file__\n")
    code = "import sys; print(theirs, sys.modules['sitecustomize'].__file__)"
    theirs = str(tmp_path / "sitecustomize.py")
    assert python(code, tmp_path) == f"{theirs} {theirs}"


def test_a_sitecustomize_that_cannot_import_what_it_needs_says_so(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import does_not_exist\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([SITE, str(tmp_path)])}
    run = subprocess.run(
        [sys.executable, "-c", "print(1)"], env=env, capture_output=True, text=True, check=False
    )
    assert run.stdout == "1\n"
    assert "does_not_exist" in run.stderr  # as without us


def test_the_path_is_as_it_would_be_without_us(tmp_path):
    code = "import sys; print(sys.path)"
    plain = python(code, tmp_path)
    assert SITE not in plain
    assert str(tmp_path) in plain


def test_a_quick_program_pays_nothing_but_a_sleeping_thread(tmp_path):
    """Its interpreter makes the thread sleep long enough: a second may be short for a program."""
    venv.create(tmp_path, with_pip=False, symlinks=True)
    (folder,) = tmp_path.glob("lib/python*/site-packages")
    slow = "import _floodline_arm; _floodline_arm.Arm.__init__.__kwdefaults__['delay'] = 600.0\n"
    (folder / "slow.pth").write_text(slow)
    code = (
        "import sys, threading; "
        "print(threading.active_count(), [name for name in sys.modules if 'floodline' in name])"
    )
    assert python(code, executable=tmp_path / "bin" / "python") == "1 ['_floodline_arm']"


def test_a_fork_is_no_warning_on_any_python():
    code = (
        "import os, warnings; warnings.simplefilter('error'); "
        "pid = os.fork(); "
        "tasks = len(os.listdir('/proc/self/task')); "
        "os._exit(0) if pid == 0 else print(os.waitpid(pid, 0)[1], tasks)"
    )
    assert python(code) == "0 1"
