"""[E4], [E5]: forked children start empty, and interpreters that end save what is live."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from floodline import Sessions
from floodline.stores import SQLiteStore

PRELUDE = """
    import atexit, logging, os, sys, threading, time, warnings
    from floodline import Sessions, SessionScope
    from floodline._clock import sweeper
    from floodline.stores import SQLiteStore
    warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of threads beside a fork
    logging.disable()  # what is reported is not what is tested here
    PATH = sys.argv[1]

    def in_child(work):
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                work()
                sys.stdout.flush()
                os._exit(0)
            except BaseException:
                import traceback
                traceback.print_exc()
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def run(program: str, *args: object, code: int = 0) -> str:
    source = textwrap.dedent(PRELUDE) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", source, *map(str, args)],
        capture_output=True,
        timeout=400,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    return done.stdout


@needs_fork
def test_e4_a_forked_child_starts_empty_and_finalizes_nothing(tmp_path: Path) -> None:
    out = run(
        """
        class State(dict):
            def close(self): print("close", os.getpid() == PARENT)
            def __del__(self):
                if id(self) in INHERITED: print("freed", os.getpid() == PARENT)
            def __floodline_dump__(self): return dict(self)
            @classmethod
            def __floodline_load__(cls, data): return cls(data)

        PARENT, INHERITED = os.getpid(), set()
        store, scope = SQLiteStore(PATH), SessionScope()
        notes = scope.map("notes", on_leave=lambda *a: print("note left", os.getpid() == PARENT))
        sessions = Sessions(State, store=store, durability="park", scope=scope,
                            on_leave=lambda *a: print("left", os.getpid() == PARENT))
        with sessions.use("idle") as state:
            state["n"] = 1
        notes["idle"] = State()
        owner = sessions._core.owner

        def child():
            assert len(sessions) == 0 and sessions.ids() == [] and len(notes) == 0
            assert sessions.stats().leases == sessions.stats().held == 0
            assert sessions._core.owner != owner
            assert not sweeper.running()
            with sessions.use("child") as state:
                state["n"] = 2
            assert sweeper.running()
            assert sessions._core.table.seats.taken == 1
            print("parking"); sys.stdout.flush()
            sessions.park("child")
            sessions.sweep()
            assert sessions.shutdown() == 0

        hold = sessions.use("held")
        state = hold.__enter__()
        state["n"] = 3
        pinned = sessions.use("pinned", shared=True)
        pinned.__enter__()

        INHERITED |= {id(sessions.peek(key)) for key in sessions.ids()} | {id(notes["idle"])}
        assert len(INHERITED) == 4

        def child_with_holds():
            child()
            hold.__exit__(None, None, None)     # ends without a trace
            pinned.__exit__(None, None, None)
            table = sessions._core.table
            assert (table.live, table.seats.taken, table.seats.parking) == (0, 0, 0)
            assert store.load("sessions", "held") is None

        in_child(child_with_holds)
        print("parent")
        assert sorted(sessions.ids()) == ["held", "idle", "pinned"]
        hold.__exit__(None, None, None)
        pinned.__exit__(None, None, None)
        del state, hold, pinned
        assert sessions.shutdown() == 0
        print(*store.ids("sessions"))
        """,
        tmp_path / "s.db",
    )
    before, _, after = out.partition("parent\n")
    # the child has ended its own session, and nothing of what it inherited
    assert before.splitlines() == ["parking", "left False", "close False"]
    assert after.count("left True") == 3 + 1  # three sessions and a note
    assert after.count("freed True") >= 4  # an address may serve twice
    assert after.splitlines()[-1] == "child held idle"


@needs_fork
def test_e4_children_count_beside_their_parent_on_one_file(tmp_path: Path) -> None:
    run(
        """
        sessions = Sessions(dict, store=SQLiteStore(PATH, busy_timeout="30 s"))

        def count():
            for _ in range(25):
                with sessions.use("counter") as state:
                    state["n"] = state.get("n", 0) + 1

        count()
        thread = threading.Thread(target=count)
        thread.start()
        for _ in range(3):
            in_child(count)
        thread.join()
        count()
        with sessions.use("counter") as state:
            assert state["n"] == 25 * 6, state
        """,
        tmp_path / "s.db",
    )


@needs_fork
def test_e4_a_fork_while_others_work_leaves_the_child_able_to_work(tmp_path: Path) -> None:
    run(
        """
        sessions = Sessions(dict, store=SQLiteStore(PATH, busy_timeout="30 s"), max_sessions=4)
        stop = threading.Event()

        def work(name):
            n = 0
            while not stop.is_set():
                n += 1
                with sessions.use(f"{name}{n % 6}") as state:
                    state["n"] = n

        threads = [threading.Thread(target=work, args=(f"t{m}",)) for m in range(3)]
        for thread in threads: thread.start()

        def child():
            for n in range(10):
                with sessions.use(f"child{n}") as state:
                    state["pid"] = os.getpid()
            assert len(sessions) <= 4
            assert sessions.shutdown() == 0

        for _ in range(6):
            in_child(child)
        stop.set()
        for thread in threads: thread.join()
        assert sessions.shutdown() == 0
        """,
        tmp_path / "s.db",
    )


EXIT = """
    sessions = Sessions(dict, store=SQLiteStore(PATH), durability="park",
                        on_leave=lambda id, state, reason: print("left", id, reason))
    others = Sessions(dict, on_leave=lambda *a: sys.exit(7), name="others")  # must not stop ours
    with others.use("x"):
        pass
    with sessions.use("idle") as state:
        state["n"] = 1
"""


def check_saved(path: Path, *ids: str) -> None:
    with Sessions(dict, store=f"sqlite:///{path}", busy_wait=0) as sessions:
        for one in ids:
            with sessions.use(one, create=False) as state:
                assert state == {"n": 1}


def test_e5_what_is_live_at_exit_is_saved(tmp_path: Path) -> None:
    out = run(EXIT, tmp_path / "s.db")
    assert out == "left idle shutdown\n"
    check_saved(tmp_path / "s.db", "idle")


def test_e5_an_exit_in_the_middle_of_a_use_saves_it(tmp_path: Path) -> None:
    out = run(
        EXIT
        + """
    with sessions.use("used") as state:
        state["n"] = 1
        sys.exit(3)
""",
        tmp_path / "s.db",
        code=3,
    )
    assert sorted(out.splitlines()) == ["left idle shutdown", "left used shutdown"]
    check_saved(tmp_path / "s.db", "idle", "used")


def test_e5_a_daemon_thread_that_holds_one_does_not_stop_the_others(tmp_path: Path) -> None:
    out = run(
        EXIT
        + """
    held = threading.Event()

    def hold():
        with sessions.use("held") as state:
            state["n"] = 1
            held.set()
            time.sleep(600)

    threading.Thread(target=hold, daemon=True).start()
    held.wait()
""",
        tmp_path / "s.db",
    )
    assert out == "left idle shutdown\n"
    check_saved(tmp_path / "s.db", "idle")
    store = SQLiteStore(tmp_path / "s.db")
    assert store.ids("sessions") == ["idle"]
    store.close()


def test_e5_a_use_inside_an_exit_handler_is_saved(tmp_path: Path) -> None:
    run(
        """
        def last():
            with sessions.use("late") as state:
                state["n"] = 1

        sessions = Sessions(dict, store=SQLiteStore(PATH))
        atexit.register(last)
        """,
        tmp_path / "s.db",
    )
    check_saved(tmp_path / "s.db", "late")


def test_e5_a_collected_sessions_object_saves_what_it_has(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "s.db")
    sessions = Sessions(dict, store=store, durability="park")
    with sessions.use("a") as state:
        state["n"] = 1
    del sessions, state
    assert store.ids("sessions") == ["a"]
    store.close()
