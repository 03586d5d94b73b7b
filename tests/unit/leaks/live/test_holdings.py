"""What is in memory now: the largest holders, estimated from a walk."""

from __future__ import annotations

import sys

import pytest

from floodline.leaks._live import holdings as holdings_module
from floodline.leaks._live import watch as watch_module
from floodline.leaks._live.holdings import Holdings
from live_watch import Watched
from soak_programs import module

MIB = 1 << 20
SESSIONS = """
class Message:
    def __init__(self, text):
        self.text = text

class Chat:
    def __init__(self, number):
        self.messages = [Message(f"{number} {n} " + "x" * 1000) for n in range(4)]

class Service:
    def __init__(self, many):
        self.chats = {f"user {n}": Chat(n) for n in range(many)}

SERVICE = Service(%d)
SMALL = [Message(f"{n} " + "y" * 1000) for n in range(20)]
NUMBERS = [float(n) for n in range(10_000)]
"""


@pytest.fixture
def watched(tmp_path, monkeypatch):
    def watch(source, *, resident=200 * MIB):
        monkeypatch.setattr(watch_module, "rss", lambda: resident)
        made = module("held", source, tmp_path, monkeypatch)
        return made, Watched(monkeypatch, made, budget=1.0)

    return watch


def holders(watch):
    while not watch.live.weighed:
        watch.run(1)
    return {one["owner"]: one for one in watch.live.answer().holders}


def test_the_largest_holders_are_named_with_what_is_below_them(watched):
    _, watch = watched(SESSIONS % 500)
    found = holders(watch)
    chats = found["held.Service.chats"]
    assert (chats["type"], chats["items"], chats["within"]) == ("dict", 500, None)
    assert chats["path"] == "held.SERVICE.chats"
    texts = 500 * 4 * sys.getsizeof("499 3 " + "x" * 1000)
    assert texts < chats["bytes"] < 1.4 * texts
    assert chats["own"] == pytest.approx(sys.getsizeof({n: n for n in range(500)}), rel=0.6)
    assert chats["share"] == pytest.approx(chats["bytes"] / (200 * MIB), abs=0.001)
    assert found["held.Chat.messages"]["within"] == "held.Service.chats"
    assert next(iter(found)) == "held.Service.chats"


def test_what_a_walk_leaves_out_of_a_large_container_is_added(watched):
    _, watch = watched(SESSIONS % 25_000)
    found = holders(watch)
    texts = 25_000 * 4 * sys.getsizeof("24999 3 " + "x" * 1000)
    assert 0.8 * texts < found["held.Service.chats"]["bytes"] < 1.4 * texts
    # the texts of all messages are in one place, and each list has its share of them
    assert found.get("held.SMALL", {"bytes": 0})["bytes"] < 4 * 20 * 1100


def test_objects_of_one_class_are_shared_among_the_lists_that_hold_them(watched):
    source = (SESSIONS % 100).replace("range(20)", "range(600)")
    _, watch = watched(source, resident=4 * MIB)
    found = holders(watch)
    one = sys.getsizeof("499 3 " + "x" * 1000)
    assert found["held.Service.chats"]["bytes"] == pytest.approx(400 * one, rel=0.4)
    assert found["held.SMALL"]["bytes"] == pytest.approx(600 * one, rel=0.4)


def test_numbers_count_though_a_walk_does_not_visit_them(watched):
    _, watch = watched(SESSIONS % 10, resident=4 * MIB)
    numbers = holders(watch)["held.NUMBERS"]
    whole = sys.getsizeof([None] * 10_000) + 10_000 * sys.getsizeof(1.5)
    assert numbers["bytes"] == pytest.approx(whole, rel=0.2)


def test_numbers_count_in_what_holds_the_lists_that_they_are_in(watched):
    source = """
class Document:
    def __init__(self, n):
        self.vector = [float(n + k) for k in range(500)]
        self.flags = [True] * 500
VECTORS = [[float(n + k) for k in range(500)] for n in range(100)]
DOCUMENTS = {n: Document(n) for n in range(100)}
LONG = [[0.5 + n for n in range(30_000)]]
"""
    _, watch = watched(source, resident=10 * MIB)
    found = holders(watch)
    one = sys.getsizeof([None] * 500) + 500 * sys.getsizeof(1.5)
    assert found["held.VECTORS"]["bytes"] == pytest.approx(100 * one, rel=0.2)
    flags = sys.getsizeof([None] * 500)
    assert found["held.DOCUMENTS"]["bytes"] == pytest.approx(100 * (one + flags), rel=0.2)
    assert found["held.LONG"]["bytes"] == pytest.approx(30_000 * (8 + 24), rel=0.2)


def test_keys_of_a_sampled_map_and_shared_small_numbers(watched):
    source = "BY_NAME = {'name of ' + str(n): 1 for n in range(40_000)}\n"
    _, watch = watched(source)
    found = holders(watch)["held.BY_NAME"]
    whole = sys.getsizeof({n: n for n in range(40_000)}) + 40_000 * sys.getsizeof("name of 12345")
    assert found["bytes"] == pytest.approx(whole, rel=0.25)
    assert found["items"] == 40_000


def test_a_text_that_many_hold_is_not_counted_in_each_of_them(watched):
    source = """
SAME, SHORT = "m" * 3000, "user of many"
ROWS = [[SAME, SAME] for _ in range(500)]
ROLES = [{"a": SHORT, "b": SHORT, "c": SHORT} for _ in range(500)]
OWN = [["n" * 3000 + str(n)] for n in range(500)]
"""
    _, watch = watched(source, resident=10 * MIB)
    found = holders(watch)
    assert found["held.ROWS"]["bytes"] < 500 * 200
    assert found["held.ROLES"]["bytes"] == pytest.approx(500 * 200, rel=0.25)
    assert found["held.OWN"]["bytes"] == pytest.approx(500 * 3150, rel=0.2)


def test_short_texts_in_a_sampled_list_are_all_weighed(watched):
    _, watch = watched("NAMES = ['name ' + str(n) for n in range(50_000)]\n")
    found = holders(watch)["held.NAMES"]
    assert found["bytes"] == pytest.approx(50_000 * (8 + sys.getsizeof("name 12345")), rel=0.25)


def test_a_path_that_leads_back_to_itself_is_counted_once(watched):
    source = """
class Node:
    def __init__(self, before):
        self.before, self.rows = before, ["r" * 3000 + str(id(self))]
        self.all = ALL

ALL = {}
for n in range(300):
    ALL[n] = Node(ALL.get(n - 1))
"""
    _, watch = watched(source)
    found = holders(watch)["held.ALL"]
    assert found["bytes"] == pytest.approx(300 * 3300, rel=0.3)


def test_no_share_is_above_the_whole(watched):
    _, watch = watched(SESSIONS % 500, resident=MIB)
    assert max(one["share"] for one in holders(watch).values()) == 1.0


def test_a_container_that_became_longer_since_it_was_met(watched):
    made, watch = watched("ROWS = [str(n) * 100 for n in range(100)]\n", resident=MIB)
    estimate = watch.live._holdings._estimate
    watch.live._holdings._estimate = lambda walk: (
        made.ROWS.extend(str(n) * 100 for n in range(300)) or estimate(walk)
    )
    found = holders(watch)["held.ROWS"]
    assert found["items"] == 400
    assert found["bytes"] > 400 * 200


def test_in_a_hurry_what_was_met_must_do(watched):
    _, watch = watched(SESSIONS % 2_000)
    watch.live.hurry()  # there is no walk yet
    while watch.live._met < 4_000:
        watch.live.step()
    watch.live.hurry()
    assert not watch.live._walks
    answer = watch.live.answer()
    assert any("no time to inspect all objects" in text for text in answer.blind_spots)
    while not watch.live.weighed:
        watch.live._holdings.work(lambda: False)
    assert "held.Service.chats" in {one["owner"] for one in watch.live.answer().holders}


def test_resident_memory_is_split_seldom_where_that_is_dear(watched, monkeypatch):
    _, watch = watched("X = []\n")
    asked = []
    split = {"resident": 1, "python": 1}
    monkeypatch.setattr(holdings_module, "split_record", lambda: asked.append(1) or split)
    weigh = Holdings(
        watch.live._slots, watch.live._places, watch.live._outlines, watch.live._rare, lambda: 1
    )
    monkeypatch.setattr(holdings_module, "DEAR", 1e12)
    weigh._measure_split()
    weigh._measure_split()
    assert (len(asked), weigh.split) == (1, split)
    record = {**watch.live.answer().as_record()}
    assert (record["holders"], record["split"]) == ([], None)
