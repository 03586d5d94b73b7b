"""Names of what hides behind objects of the library that a program has many of."""

from __future__ import annotations

import ast
import functools
import logging
import types
from collections import deque

from floodline.leaks._closeup import closeup as inspect
from floodline.leaks._closeup.closeup import look_closer
from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.trend import Trend
from floodline.leaks._heap import owner_names as naming
from floodline.leaks._heap import slot_owner as above
from floodline.leaks._heap.container_limit import shown_limit
from floodline.leaks._heap.roots import survey
from floodline.leaks._heap.slots import Slots
from floodline.leaks._heap.walk import Held
from floodline.leaks._source.feeding_statements import feeding_place
from floodline.leaks._source.limit_checks import caps
from soak_programs import line_of, module, narrow

SOURCE = """
import contextlib, logging

class Channel:
    def __init__(self):
        self.first = contextlib.ExitStack()
        self.second = contextlib.ExitStack()
        self.links = {"a": contextlib.ExitStack()}

CHANNELS = [Channel()]
STACKS = [contextlib.ExitStack()]
LOG = logging.getLogger("above")
"""
PRIVATE = """
class _Box:
    def __init__(self):
        self.__rows = {}
    def put(self, i):
        self.__rows[i] = [i]           # feeds rows

class Sub(_Box):
    pass

ONE = Sub()
"""
SHARED = "*contextlib.ExitStack._exit_callbacks"


def fill(stack, count):
    for _ in range(count):
        stack.callback(print)


def close_to(key, made, monkeypatch, prepare=lambda: None):
    narrow(monkeypatch, made)
    slots = Slots()
    survey(slots)
    prepare()
    one = Candidate(slots.get(key), "length", Trend("growing", 1.0, 10.0, 1.0), 10.0, 5)
    return look_closer(slots, [one])[0]


def test_what_one_of_many_objects_of_the_library_holds_is_named_by_where_that_one_lies(
    tmp_path, monkeypatch
):
    made = module("above", SOURCE, tmp_path, monkeypatch)
    channel = made.CHANNELS[0]
    fill(made.STACKS[0], 2)
    fill(channel.first, 3)
    fill(channel.second, 30)
    found = close_to(SHARED, made, monkeypatch)
    assert (found.owner, found.defined_in) == ("above.Channel.second", "above.Channel")
    suspect = found.suspect(1)
    assert suspect.path == "above.CHANNELS[*].second._exit_callbacks"
    assert suspect.type == "ExitStack"
    assert [held.value for held in found.held] == [channel.second._exit_callbacks]


def test_the_name_is_that_of_the_container_if_it_lies_in_one(tmp_path, monkeypatch):
    made = module("above", SOURCE, tmp_path, monkeypatch)
    fill(made.CHANNELS[0].links["a"], 30)
    found = close_to(SHARED, made, monkeypatch)
    assert found.owner == "above.Channel.links"
    assert found.suspect(1).path == "above.CHANNELS[*].links[*]._exit_callbacks"


def test_a_name_stays_if_no_holder_is_met_again(tmp_path, monkeypatch):
    made = module("above", SOURCE, tmp_path, monkeypatch)
    narrow(monkeypatch, made)
    slots = Slots()
    lost = [Held(object(), [1])]
    assert above.find_above(slots, [lost], ()) == [None]
    monkeypatch.setattr(inspect, "find_above", lambda *_: [None])
    found = close_to(SHARED, made, monkeypatch)
    assert found.owner.startswith("above.")


def test_what_the_library_has_itself_is_not_of_the_program_that_leads_there(tmp_path, monkeypatch):
    made = module("above", SOURCE, tmp_path, monkeypatch)
    found = close_to("above.LOG.manager.loggerDict", made, monkeypatch)
    assert (found.owner, found.defined_in) == ("logging.Manager.loggerDict", "logging.Manager")
    assert found.suspect(1).type == "dict"


def test_the_library_has_its_globals_and_the_attributes_of_its_classes():
    assert above.kept_by_library(logging.root)
    assert above.kept_by_library(logging.Logger.manager)
    assert above.kept_by_library(logging._handlerList)
    assert not above.kept_by_library(logging.getLogger("above"))


def test_the_fullest_of_many_containers_are_watched_and_some_of_the_others():
    many = [Held(None, [0] * size) for size in range(500)]
    chosen = inspect._watched(many)
    assert len(chosen) <= inspect.MAX_WATCHED
    assert max(len(held.value) for held in chosen) == 499
    assert min(len(held.value) for held in chosen) < 50
    few = many[:3]
    assert inspect._watched(few) is few


def test_a_finder_counts_like_any_walk(tmp_path, monkeypatch):
    made = module("above", SOURCE, tmp_path, monkeypatch)
    narrow(monkeypatch, made)
    slots = Slots()
    plain = survey(slots)
    found = above.Finder(slots, frozenset({id(made.CHANNELS)}))
    assert survey(slots, walk=found) is found
    assert found.count[: len(plain.count)] == plain.count
    slot, held = found.found[id(made.CHANNELS)]
    assert slots.key(slot) == "above.CHANNELS"
    assert isinstance(held.holder, types.ModuleType)


def test_a_private_attribute_is_named_as_its_class_writes_it(tmp_path, monkeypatch):
    made = module("private", PRIVATE, tmp_path, monkeypatch)
    found = close_to("private.ONE._Box__rows", made, monkeypatch)
    assert (found.owner, found.defined_in) == ("private._Box.__rows", "private._Box")
    assert found.suspect(1).path == "private.ONE._Box__rows"
    assert feeding_place("private", "__rows").line == line_of(PRIVATE, "# feeds rows")
    assert naming.written(made.Sub, "_Box__x__") == ("private.Sub", "_Box__x__")


def test_caches_of_one_slot_are_full_when_all_are():
    def held(most, filled):
        cache = functools.lru_cache(maxsize=most)(abs)
        for number in range(filled):
            cache(number)
        return Held(None, cache)

    caches = [held(100, 90), held(100, 50), held(None, 10)]
    assert shown_limit(caches, []) == 210
    assert shown_limit([held(100, 20), held(None, 90)], []) is None
    assert shown_limit([Held(None, [1])], [held(30, 1)]) == 30
    rings = [Held(None, deque([1], maxlen=9)), Held(None, deque([1], maxlen=5))]
    assert shown_limit(rings, []) == 14


NAMESAKES = """
class Table:
    def __init__(self):
        self.cache = {}
    def add(self, key):
        self.cache.setdefault(key, [])

class Server:
    def __init__(self):
        self.cache = Table()
        self.seen = {}
    def handle(self, records, now):
        for entry in self.cache.entries():
            if now - entry.created > 1000:
                self.cache.remove(entry)

HANDLE = Server.handle

class Small(Table):
    def __init__(self):
        self.cache = {}
    def trim(self):
        if len(self.cache) > 50:
            self.cache.popitem()
"""


def test_a_limit_is_not_that_of_another_class_with_an_attribute_of_the_name(tmp_path, monkeypatch):
    module("namesakes", NAMESAKES, tmp_path, monkeypatch)
    said = [ast.unparse(one) for one in caps("namesakes", "cache")]
    assert said == ["50", "now - entry.created > 1000"]
    assert [ast.unparse(one) for one in caps("namesakes", "cache", of="Table")] == ["50"]
    assert [ast.unparse(one) for one in caps("namesakes", "cache", of="Server")] == said[1:]


def test_a_container_grows_though_a_namesake_of_it_is_swept(tmp_path, monkeypatch):
    made = module("namesakes", NAMESAKES.partition("class Small")[0], tmp_path, monkeypatch)
    made.TABLE = made.Table()
    found = close_to("namesakes.TABLE.cache", made, monkeypatch)
    assert found.owner == "namesakes.Table.cache"
    assert not found.fills
