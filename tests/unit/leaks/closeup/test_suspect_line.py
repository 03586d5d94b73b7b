from __future__ import annotations

import linecache

import pytest

from floodline.leaks import Suspect
from floodline.leaks._closeup import suspect_line
from floodline.leaks._closeup.feeding_line import Watch
from floodline.leaks._closeup.suspect_line import line_names, with_static_line, with_traced_line
from floodline.leaks._source.place import Place
from soak_programs import module


class Close:
    """A container that is no cache and shows no limit."""

    nested = False

    def definition(self):
        return None

    def held_by_c(self):
        return None

    def cap_at(self, place):
        return None, False


@pytest.fixture
def suspect(tmp_path, monkeypatch):
    module("soaked", "ROWS = []\ndef round(i):\n    ROWS.append([i])\n", tmp_path, monkeypatch)
    return Suspect(1, "growing", "soaked.ROWS", "soaked", "soaked.ROWS", "list", "", 9, 1.0, 8.0)


def watch_that_saw(place, *, blind):
    watch = Watch([], "soaked.ROWS")
    watch.blind = blind
    watch._stayed = [[(place, 1)]]
    return watch


def test_a_line_that_the_tracer_cannot_have_seen_gives_way_to_the_source(suspect, monkeypatch):
    monkeypatch.setattr(suspect_line, "line_names", lambda place, name: False)
    elsewhere = Place("other.py", 9, "wait")
    fixed = with_traced_line(suspect, Close(), watch_that_saw(elsewhere, blind=True))
    assert (fixed.line, fixed.line_source) == (3, "static")
    seen = with_traced_line(suspect, Close(), watch_that_saw(elsewhere, blind=False))
    assert (seen.line, seen.line_source) == (9, "trace")


def test_a_suspect_that_no_source_mentions_has_no_line(suspect):
    lost = suspect.but(owner="nobody.x", defined_in="nobody")
    assert with_traced_line(lost, Close(), None).file is None


def test_what_only_c_code_holds_shows_where_its_function_is_defined(suspect, monkeypatch):
    code = test_a_line_names_what_it_feeds.__code__
    monkeypatch.setattr(Close, "held_by_c", lambda _: code)
    lost = suspect.but(owner="nobody.x", defined_in="nobody")
    found = with_traced_line(lost, Close(), None)
    assert (found.line, found.line_source) == (code.co_firstlineno, "static")


def test_a_line_names_what_it_feeds(tmp_path):
    file = tmp_path / "a.py"
    file.write_text("rows.append(1)\n", encoding="utf-8")
    place = Place(str(file), 1, "f")
    assert line_names(place, "rows")
    assert not line_names(place, "other")


LIBRARY = """
class Bus:
    def __init__(self):
        self.held = self.lost = {}
    def add(self, x):
        self.held[x] = x
    def subscribe(self, x):
        self.lost[x] = x
"""
PROGRAM = """
from bus_library import Bus
bus, other = Bus(), Bus()
other.seen = {}

def on(x):
    bus.add(x)

def inside(x):
    other["rows"][x] = x
    other.close()

def hear(x):
    x.subscribe(x)
    other.seen[x] = x
"""


@pytest.mark.parametrize(
    ("name", "attr", "nested", "line", "called"),
    [
        ("bus", "held", False, "self.held[x] = x", "bus.add(x)"),
        ("other", "held", True, "self.held[x] = x", 'other["rows"][x] = x'),
        ("other", "held", False, "self.held[x] = x", "other.close()"),
        ("none", "lost", False, "self.lost[x] = x", "x.subscribe(x)"),
        (None, "lost", False, "self.lost[x] = x", "x.subscribe(x)"),
        ("other", "seen", False, "other.seen[x] = x", None),
    ],
)
def test_a_line_of_a_library_comes_with_the_line_that_leads_there(
    tmp_path, monkeypatch, suspect, name, attr, nested, line, called
):
    (tmp_path / "site-packages").mkdir()
    module("bus_library", LIBRARY, tmp_path / "site-packages", monkeypatch)
    module("bus_program", PROGRAM, tmp_path, monkeypatch)
    monkeypatch.setattr(suspect_line, "program_modules", lambda: ["bus_program"])
    close = Close()
    close.stored, close.nested, close.defined_in = None, nested, "bus_library.Bus"
    close.name_in_program = lambda: ("bus_program", name) if name else None
    one = suspect.but(owner=f"bus_library.Bus.{attr}", defined_in="bus_library.Bus")
    found = with_static_line(one, close)
    assert linecache.getline(found.file, found.line).strip() == line
    at = linecache.getline(*found.caller).strip() if found.caller else None
    assert at == called
