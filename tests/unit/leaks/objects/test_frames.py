from __future__ import annotations

import sys
import weakref

from floodline.leaks._objects.frames import code_label, is_ours, read_local, read_locals


def test_the_file_that_starts_the_engine_in_a_child_is_never_shown():
    own = {"__name__": "__main__", "_floodline_engine": True, "sys": sys}
    exec("def frame():\n    return sys._getframe()", own)
    assert is_ours(own["frame"]())
    assert not is_ours(sys._getframe())


def test_locals_that_are_dropped_die_after_a_look():
    class Thing:
        pass

    def work():
        thing = Thing()
        ref = weakref.ref(thing)
        yield ref
        del thing
        yield ref

    running = work()
    ref = next(running)
    assert read_locals(running.gi_frame)["thing"] is ref()
    next(running)
    assert ref() is None


def test_the_copy_that_a_program_took_of_its_locals_is_left_alone():
    def work():
        a = 1
        mine = locals()
        yield mine
        yield a

    running = work()
    mine = next(running)
    read_locals(running.gi_frame)
    assert mine["a"] == 1


def test_the_body_of_a_module_has_no_locals():
    code = compile("frame = __import__('sys')._getframe()", "x", "exec")
    names = {}
    exec(code, names)
    assert read_locals(names["frame"]) == {}
    assert code_label(code, {}) == "<module>"


def test_to_read_a_variable_in_a_trace_function_leaves_the_others_alone():
    seen = []

    def traced():
        first, second = [1], [2]
        second = [*second, 3]
        return first, second

    def tracer(frame, event, _):
        seen.append(read_local(frame, "second"))
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        found = traced()
    finally:
        sys.settrace(before)
    assert found == ([1], [2, 3])
    assert [2, 3] in seen
