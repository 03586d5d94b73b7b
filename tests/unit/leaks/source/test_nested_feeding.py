from __future__ import annotations

import linecache

import pytest

from floodline.leaks._source.feeding_statements import calling_place, feeding_place
from soak_programs import module

BOT = """
BY_USER = {}
LOG = []

def handle(user, text):
    data = BY_USER.setdefault(user, {"history": []})
    data["seen"] = 1
    data["history"].append(text)

def direct(user, text):
    BY_USER.setdefault(user, []).append(text)

def shown():
    return LOG[-1]

for number in range(3):
    LOG.append(number)
"""

FEEDS = {
    "alias": "def f(u, t):\n    row = ROWS[u]\n    row.append(t)\n",
    "loop": "def f(u, t):\n    for row in ROWS.values():\n        row.append(t)\n",
    "get": "def f(u, t):\n    ROWS.get(u).append(t)\n",
    "text": "def f(u, t):\n    ROWS[u] += t\n",
    "attribute": "def f(u, t):\n    row = ROWS[u]\n    row.turns.append(t)\n",
    "walrus": "def f(u, t):\n    if (row := ROWS.get(u)):\n        row.add(t)\n",
    "key": "def f(u, t):\n    row = ROWS[u]\n    row[t] = 1\n",
}


def line_of(place):
    return linecache.getline(place.file, place.line).strip()


def test_what_a_container_holds_is_fed_where_that_gets_longer(tmp_path, monkeypatch):
    module("nested_bot", BOT, tmp_path, monkeypatch)
    inner = feeding_place("nested_bot", "BY_USER", nested=True)
    assert line_of(inner) == 'data["history"].append(text)'
    outer = feeding_place("nested_bot", "BY_USER")
    assert "setdefault" in line_of(outer)


@pytest.mark.parametrize("source", FEEDS.values(), ids=FEEDS)
def test_ways_to_feed_what_a_container_holds(source, tmp_path, monkeypatch):
    module("nested_rows", "ROWS = {}\n" + source, tmp_path, monkeypatch)
    found = feeding_place("nested_rows", "ROWS", nested=True)
    assert found.line == 1 + len(source.splitlines())


def test_code_outside_functions_has_a_line_too(tmp_path, monkeypatch):
    module("nested_script", BOT, tmp_path, monkeypatch)
    found = feeding_place("nested_script", "LOG")
    assert (line_of(found), found.function) == ("LOG.append(number)", "<module>")


CALLS = """
import somewhere
signal = somewhere.Signal()
signal.setup()

class Mailer:
    def __init__(self):
        signal.connect(self.send)

    def send(self):
        signal.fire()
"""


def test_the_caller_is_the_line_that_calls_the_feeding_function(tmp_path, monkeypatch):
    source = CALLS.replace("import somewhere\n", "from unittest import mock as somewhere\n")
    source = source.replace("somewhere.Signal()", "somewhere.Mock()")
    module("nested_calls", source, tmp_path, monkeypatch)
    assert "signal.connect(" in line_of(calling_place("nested_calls", "signal", "connect"))
    assert "connect" in line_of(calling_place("nested_calls", "signal"))
    assert calling_place("nested_calls", "signal", "put") is None
    assert calling_place("nested_calls", "nobody") is None
    assert calling_place("no_such_module", "signal", "put") is None
