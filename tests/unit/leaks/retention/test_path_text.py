from __future__ import annotations

import threading

from floodline import why_alive
from floodline.leaks._retention import path_text
from floodline.leaks._retention.path_text import Route

HERE = __name__


class Thing:
    pass


HOOKS: list[object] = []
LOCAL = threading.local()


def paths(why):
    return [one.path for one in why.retainers]


def test_a_dict_that_changes_while_it_is_read_is_given_up(monkeypatch):
    def changed(*_):
        raise RuntimeError("changed size")

    monkeypatch.setattr(path_text, "islice", changed)
    thing = Thing()
    monkeypatch.setitem(globals(), "HOOKS", [thing])
    assert paths(why_alive(thing)) == [f"{HERE}.?[*]"]


def test_an_ended_generator_has_no_frame():
    ended = (n for n in ())
    list(ended)
    route = Route("root", [ended, Thing()])
    assert route.path == "root→Thing"


def test_a_route_may_end_at_a_part_of_its_holder():
    def inner():
        return route

    route = Route("root", [LOCAL, {}, {}])
    assert route.path == "root"
    assert Route("root", [inner, inner.__closure__]).path.endswith("inner→tuple")
    assert Route("root", [Thing, Thing.__mro__]).path == "root→tuple"
