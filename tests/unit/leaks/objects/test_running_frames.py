from __future__ import annotations

import sys
import threading
import weakref

import pytest

from floodline.leaks._objects.frames import SEES_RUNNING, variables_of
from floodline.leaks._objects.running_frames import KNOWN_LAYOUT, running_locals

pytestmark = pytest.mark.skipif(not SEES_RUNNING, reason="this Python's frames are not known")


class Thing:
    pass


def test_variables_cells_and_unbound_names_of_a_thread_that_runs():
    ready, end = threading.Event(), threading.Event()

    def serve(given):
        rows, shared, unbound = [1], {"a": 1}, None
        del unbound

        def inner():
            return shared

        ready.set()
        end.wait(60)
        return rows, inner, given

    thread = threading.Thread(target=serve, args=("x",))
    thread.start()
    ready.wait(60)
    frame = sys._current_frames()[thread.ident]
    while frame.f_code.co_name != "serve":
        frame = frame.f_back
    found = variables_of(frame)
    end.set()
    thread.join()
    assert (found["rows"], found["shared"], found["given"]) == ([1], {"a": 1}, "x")
    assert "unbound" not in found
    assert found["ready"] is ready


def test_reading_keeps_nothing_alive():
    def run():
        thing = Thing()
        known = weakref.ref(thing)
        assert variables_of(sys._getframe())["thing"] is thing
        del thing
        return known()

    assert run() is None


def test_the_body_of_a_module_has_no_variables_of_its_own():
    body = compile("import sys\nframe = sys._getframe()\n", "<body>", "exec")
    names: dict[str, object] = {}
    exec(body, names)
    assert running_locals(names["frame"]) == {}


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="there frames are read by their proxies")
def test_the_layout_of_frames_is_known_here():
    assert KNOWN_LAYOUT
