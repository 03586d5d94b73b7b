from __future__ import annotations

import json
from itertools import count

import pytest

from floodline.errors import ConfigError
from floodline.leaks import Live
from floodline.leaks._figures.reasons import unnamed_objects
from floodline.leaks._live import holder_search, judge
from floodline.leaks._live.readings.tracks import MAX_POINTS
from floodline.leaks._live.readings.watched_slots import MAX_MANY, MAX_WATCHED, Ticks
from floodline.leaks._live.watch import LONGEST, SLICE
from floodline.leaks._objects import outline as outline_module
from live_watch import Watched
from soak_programs import CHAIN, FILLING, MANY, module


@pytest.fixture
def watched(tmp_path, monkeypatch):
    def watch(source, *, name="served", **options):
        made = module(name, source, tmp_path, monkeypatch)
        return made, Watched(monkeypatch, made, **options)

    return watch


def test_every_leak_is_named_with_the_line_that_feeds_it(watched):
    made, watch = watched(MANY)
    answer = watch.run(100, made.round)
    assert (answer.verdict, answer.where, answer.needed) == ("growing", "python", None)
    lines = {s.owner: MANY.splitlines()[s.line - 1] for s in answer.suspects if s.line}
    assert {owner: text.strip()[:16] for owner, text in lines.items()} == {
        "served.Service.transcript": "self.transcript ",
        "served.Service.by_id": "self.by_id[i] = ",
        "served.BY_KEY": "BY_KEY[key] = Ho",
        "served.Service.seen": "self.seen.add((i",
        "served.TOKENS": 'TOKENS["t%d" % i',
        "served.Service.turns": "self.turns = sel",
        "served.Chat.events": "CHATS[i % 50].ev",
        "served.make_counter.<locals>.count{rows}": "rows.append([i])",
        "served.Service.shared": "cls.shared.appen",
        "served.worker()backlog": "backlog.append([",
        "served.cached": "@functools.lru_c",
    }
    assert {s.line_source for s in answer.suspects} == {"static"}
    first = next(s for s in answer.suspects if s.owner == "served.Service.by_id")
    assert (first.type, first.holds) == ("dict", f"dict ×{first.len}")
    assert first.per_round == pytest.approx(2, abs=0.1)
    assert first.bytes_per_round > 2 * 184  # the dict of each item


def test_a_suspect_is_named_before_the_verdict_is_sure(watched):
    made, watch = watched(MANY)
    answer = watch.run(30, made.round)
    assert (answer.verdict, answer.where) == ("undecided", "python")
    assert "served.Service.by_id" in {s.owner for s in answer.suspects}
    assert {s.verdict for s in answer.suspects} == {"undecided"}
    assert answer.needed["seconds"] > 0
    assert "per second; watched for" in answer.needed["why"]
    assert answer.expected_seconds > 0


def test_a_chain_without_a_container_is_named_by_its_head(watched):
    made, watch = watched(CHAIN)
    answer = watch.run(150, made.round)
    assert answer.verdict == "growing"
    assert [s.owner for s in answer.suspects] == ["served.Stack.head"]
    assert answer.suspects[0].per_round == pytest.approx(4, abs=0.3)


LENT = """
import types
import pluggy
STATE, LENT = types.SimpleNamespace(rows=[]), pluggy.PluginManager("lent")
LENT.tokens = {}
def round(i):
    STATE.rows.append([i])
    LENT.tokens[i] = [i]
"""


def test_what_the_program_gives_to_an_object_of_a_library_is_fed_by_the_program(
    watched, monkeypatch
):
    made, watch = watched(LENT)
    monkeypatch.setattr(outline_module, "program_modules", lambda: ["served"])
    found = {one.owner: one.line for one in watch.run(60, made.round).suspects}
    assert found == {"served.STATE.rows": 7, "pluggy._manager.PluginManager.tokens": 8}


CALM = """
import collections, functools
RECENT = collections.deque(maxlen=10)
SAW, SESSIONS, CATALOGUE = [], {}, {i: [i] for i in range(500)}
@functools.lru_cache(maxsize=8)
def cached(i):
    return [i]
def round(i):
    RECENT.append([i]); SAW.append([i]); cached(i); SESSIONS[i] = [i]
    SESSIONS.pop(i - 5, None)
    if len(SAW) > 20:
        SAW.clear()
"""


def test_a_program_that_keeps_its_bounds_is_bounded_and_has_no_suspect(watched):
    made, watch = watched(CALM)
    assert watch.run(40, made.round).verdict == "undecided"
    answer = watch.run(60, made.round)
    assert (answer.verdict, answer.where, answer.suspects) == ("bounded", "none", ())
    assert (answer.needed, answer.expected_seconds) == (None, 0.0)


def test_a_cache_with_a_cap_is_undecided_and_says_when_it_is_full(watched):
    made, watch = watched(FILLING)
    answer = watch.run(150, made.round)
    assert (answer.verdict, answer.where) == ("undecided", "python")
    assert "full at" in answer.needed["why"]
    assert answer.needed["why"].endswith("seconds")


def test_a_functools_cache_that_fills_is_as_long_as_it_says(watched):
    source = "import functools\n@functools.lru_cache(maxsize=700)\ndef round(i): return [i]\n"
    made, watch = watched(source)
    answer = watch.run(200, made.round)
    assert (answer.verdict, answer.suspects[0].len) == ("undecided", pytest.approx(400, abs=5))
    assert "full at 700" in answer.needed["why"]


def test_what_fills_and_slows_down_is_not_called_growing(watched):
    source = "KEYS = {}\ndef round(i):\n    KEYS[hash((i, 7)) % 150] = [i]\n"
    made, watch = watched(source)
    verdicts = {watch.run(20, made.round).verdict for _ in range(12)}
    assert "growing" not in verdicts


HEAVY = "ROWS = {i: [[i], [i]] for i in range(3000)}\n"


def test_the_budget_is_kept(watched):
    made, watch = watched(HEAVY + CALM, budget=0.002)
    watch.work = 0.000_5
    first = watch.run(60, made.round)
    assert first.cost_seconds <= 0.002 * 60 + 0.002 * 300
    while not watch.live.answer().walks:
        watch.run(10, made.round)
    before, began = watch.live.answer().cost_seconds, watch.now
    spent = watch.run(60, made.round).cost_seconds - before
    assert 0.001 * (watch.now - began) < spent <= 0.0021 * (watch.now - began)
    assert watch.live.answer().cost_seconds == pytest.approx(watch.spent, rel=0.3)


def test_what_is_dear_to_read_delays_nothing_that_is_cheap(watched, monkeypatch):
    source = "ROWS, SEEN = [[[n]] for n in range(50)], {}\ndef round(i):\n    SEEN[i] = i\n"
    source += "    ROWS[i % 50].append([i])\n"
    made, watch = watched(source)
    read = Ticks._read

    def dear(self, slot):
        watch.spent += 0.1 if slot.starred else 0.0
        return read(self, slot)

    monkeypatch.setattr(Ticks, "_read", dear)
    answer = watch.run(130, made.round)
    assert answer.verdict == "growing"
    assert "served.SEEN" in {one.owner for one in answer.suspects}


def test_a_walk_takes_many_steps_of_about_a_millisecond(watched):
    _, watch = watched(HEAVY)
    watch.work = 0.000_2
    longest, steps = 0.0, 0
    while not watch.live.answer().walks:
        before = watch.spent
        watch.now += max(watch.live.step(), 0.001)
        longest, steps = max(longest, watch.spent - before), steps + 1
    assert steps > 10
    assert longest < 2 * SLICE


def test_the_watch_stops_while_memory_is_short(watched):
    room = [(10, 100)]
    made, watch = watched(MANY, limit=lambda: room[0])
    watch.run(20, made.round)
    room[0] = (91, 100)
    watch.run(2, made.round)
    cost = watch.live.answer().cost_seconds
    answer = watch.run(30, made.round)
    assert any("memory limit" in spot for spot in answer.blind_spots)
    assert answer.cost_seconds - cost < 0.01
    assert watch.live.step() >= LONGEST
    room[0] = (91, None)
    watch.run(2)
    assert not any("memory limit" in spot for spot in watch.live.answer().blind_spots)


def test_a_large_container_is_sampled_and_the_answer_says_so(watched):
    source = "BIG = {i: [i] for i in range(20_000)}\ndef round(i):\n    BIG[-i] = [i]\n"
    made, watch = watched(source)
    answer = watch.run(100, made.round)
    assert answer.objects < 2_000
    assert any("served.BIG has 20," in spot for spot in answer.blind_spots)
    assert [s.owner for s in answer.suspects] == ["served.BIG"]
    assert answer.suspects[0].holds == f"list ×{answer.suspects[0].len}"


def test_growth_that_no_name_leads_to_is_said(watched):
    made, watch = watched(CALM)
    watch.run(30, made.round)
    for second in range(100):
        watch.blocks = 10_000 + 50 * second
        answer = watch.run(1, made.round)
    assert (answer.verdict, answer.where) == ("undecided", "python")
    assert "blocks in Python's allocator per second" in answer.needed["why"]


def test_the_census_tells_of_objects_without_a_name(watched, monkeypatch):
    made, watch = watched(CALM)
    for second in range(1500):
        watch.objects = 10_000 + 20 * second
        answer = watch.run(1, made.round)
        if answer.verdict == "growing":
            break
    assert (answer.verdict, answer.where, answer.suspects) == ("growing", "python", ())
    assert "more objects per second" in answer.needed["why"]


def test_holders_are_looked_for_while_objects_have_no_name(monkeypatch, watched):
    made, watch = watched(CALM)
    monkeypatch.setattr(holder_search, "newest", lambda *_: holder_search.Met([made]))
    live = watch.live
    live._sampler.process.counted.ids = frozenset({id(type(made))})
    for unnamed in (False, True):
        live._judge.unnamed = unnamed
        live.step()
        assert bool(live._search.passes) is unnamed
    told = unnamed_objects(5.0, "second", live._sampler.process.counted).text
    assert told == unnamed_objects(5.0, "second").text  # no type is known yet
    live._sampler.process.counted.kinds = ("app.Event",)
    told = unnamed_objects(5.0, "second", live._sampler.process.counted).text
    assert "; looked for their holders in " in told


def test_memory_of_c_code_is_native(watched):
    made, watch = watched(CALM)
    watch.run(30, made.round)
    for second in range(85):
        watch.malloc = (200_000 * second, 0, 0)
        watch.rss = (50 << 20) + 200_000 * second
        answer = watch.run(1, made.round)
    assert (answer.verdict, answer.where) == ("growing", "native")
    assert "each second" in answer.needed["why"]


def test_malloc_is_asked_less_often_if_that_takes_long(monkeypatch, watched):
    _, watch = watched(CALM)
    asked, ticks = [], count()
    sampler = watch.live._sampler
    watch.live._rare.timer = lambda: next(ticks) * 0.02
    watch.live._rare.reserved = "malloc"
    monkeypatch.setattr(
        "floodline.leaks._live.readings.process_sampler.judged_malloc",
        lambda: asked.append(1) or (0, 0, 0),
    )
    for second in range(300):
        watch.now = float(second)
        sampler.sample(watch.now)
    assert len(asked) == 3


def test_library_containers_of_the_same_things_are_echoes(watched):
    source = (
        "class Bus:\n    def __init__(self):\n        self.tasks = []\n        self.index = {}\n"
        "BUS = Bus()\ndef round(i):\n    t = [i]\n    BUS.tasks.append(t)\n    BUS.index[i] = t\n"
    )
    made, watch = watched(source)
    answer = watch.run(120, made.round)
    assert len(answer.suspects) == 1
    assert {answer.suspects[0].owner, *answer.suspects[0].echoes} == {
        "served.Bus.tasks",
        "served.Bus.index",
    }


def test_the_record_is_plain_json(watched):
    made, watch = watched(MANY)
    record = watch.run(35, made.round).as_record()
    assert json.loads(json.dumps(record)) == record
    assert record["unit"] == "second"
    assert record["walks"] > 1
    assert record["suspects"][0]["rank"] == 1


def test_the_room_of_the_watch_does_not_grow(watched, monkeypatch):
    source = MANY.replace("SERVICE.say(i)", "SERVICE.by_id.pop(i - 50, None)")
    made, watch = watched(source)
    monkeypatch.setattr("floodline.leaks._live.readings.tracks.MAX_SPACING", 1.5)
    watch.run(110, made.round, rate=0.5)
    live = watch.live
    tracks = [*live._tracks.by_index.values(), *live._walked.by_index.values()]
    assert max(len(track) for track in tracks) < MAX_POINTS
    assert len(live._sampler.process) < MAX_POINTS
    before = len(live._slots), len(live._anchors)
    watch.run(30, made.round, rate=0.5)
    assert (len(live._slots), len(live._anchors)) == before
    assert len(live._tracks.by_index) < 60


def test_more_places_than_are_watched_are_left_to_the_walk(watched):
    _, watch = watched(CALM)
    ticks, slots = watch.live._ticks, watch.live._slots
    root = slots.root("app")
    rows = slots.child(slots.child(root, "app", ".ROWS"), "", "[*]")
    for n in range(MAX_MANY + 10):
        ticks.watch(slots.child(rows, "app.Row", f".a{n}"))
    assert len(ticks) == MAX_MANY
    for n in range(MAX_WATCHED + 10):
        ticks.watch(slots.child(root, "app", f".a{n}"))
    assert len(ticks) == MAX_WATCHED


def test_many_names_are_forgotten_and_found_again(watched, monkeypatch):
    monkeypatch.setattr(judge, "MAX_NAMED", 1)
    source = "A, B = [], []\ndef round(i):\n    A.append([i])\n    B.append((i,))\n"
    made, watch = watched(source)
    owners = {s.owner for _ in range(20) for s in watch.run(5, made.round).suspects}
    assert owners == {"served.A", "served.B"}


@pytest.mark.parametrize("budget", [0, -1, 1.5])
def test_a_budget_outside_of_one_processor_is_refused(budget):
    with pytest.raises(ConfigError, match="budget="):
        Live(budget=budget)


def test_a_real_process_is_watched_without_any_setting():
    live = Live()
    assert live.step() > 0
    answer = live.answer()
    assert (answer.verdict, answer.walks) == ("undecided", 0)
    assert answer.expected_seconds > 60
    assert answer.cost_seconds > 0


SAW = """
ROWS = []
def round(i):
    ROWS.append([i])
    if len(ROWS) >= 180:
        ROWS.clear()
"""
WARM = """
TABLE = {}
def round(i):
    TABLE[i % 140] = [i]
"""


@pytest.mark.parametrize(("source", "seconds"), [(SAW, 330), (WARM, 200)])
def test_a_long_saw_tooth_and_a_warm_up_are_never_called_growing(watched, source, seconds):
    made, watch = watched(source)
    said = [watch.run(5, made.round).verdict for _ in range(seconds // 5)]
    assert "growing" not in said
    assert said[-1] == "bounded"


def test_a_full_cache_of_many_items_is_bounded(watched, monkeypatch):
    monkeypatch.setattr("floodline.leaks._live.readings.watched_slots.MOST_PLACES", 50)
    made, watch = watched(WARM)
    assert watch.run(200, made.round).verdict == "bounded"
