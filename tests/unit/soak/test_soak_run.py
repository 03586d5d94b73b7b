from __future__ import annotations

import asyncio
import json
import re
import sys
from itertools import pairwise

import pytest

from floodline import soak
from floodline.errors import ConfigError
from floodline.leaks import Suspect
from floodline.soak import Answer, Scenario, Soak, load
from floodline.soak._page import page
from floodline.soak._schedule import default_warmup, positions, traced_rounds
from soak_programs import CALM, CHAIN, FILLING, MANY, module, narrow


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Soak a program of which alone the walks know, on this thread."""

    def soak_it(source, *, rounds=60, name="soaked", **options):
        made = module(name, source, tmp_path, monkeypatch)
        narrow(monkeypatch, made)
        parts = {k: vars(made)[k] for k in ("setup", "teardown") if k in vars(made)}
        return soak.run(made.round, rounds=rounds, **parts, **options)

    return soak_it


def test_every_leak_is_named_with_the_line_that_feeds_it(run):
    answer = run(MANY)
    assert (answer.verdict, answer.where, answer.exit_code) == ("growing", "python", 1)
    lines = {s.owner: MANY.splitlines()[s.line - 1] for s in answer.suspects if s.line}
    assert {owner: text.strip()[:16] for owner, text in lines.items()} == {
        "soaked.Service.transcript": "self.transcript ",
        "soaked.Service.by_id": "self.by_id[i] = ",
        "soaked.BY_KEY": "BY_KEY[key] = Ho",
        "soaked.Service.seen": "self.seen.add((i",
        "soaked.TOKENS": 'TOKENS["t%d" % i',
        "soaked.Service.turns": "self.turns = sel",
        "soaked.Chat.events": "CHATS[i % 50].ev",
        "soaked.make_counter.<locals>.count{rows}": "rows.append([i])",
        "soaked.Service.shared": "cls.shared.appen",
        "soaked.worker()backlog": "backlog.append([",
        "soaked.cached": "@functools.lru_c",
    }
    first = next(s for s in answer.suspects if s.owner == "soaked.Service.by_id")
    assert (first.type, first.per_round, first.holds) == ("dict", 1.0, "dict ×60")


def test_a_chain_without_a_container_is_named_by_its_head(run):
    answer = run(CHAIN)
    assert [s.owner for s in answer.suspects] == ["soaked.Stack.head"]
    assert answer.suspects[0].per_round == 2.0


def test_a_program_that_keeps_its_bounds_has_no_suspect(run):
    answer = run(CALM, rounds=80)
    assert answer.suspects == ()
    assert answer.verdict != "growing"


def test_a_cache_below_its_cap_is_undecided(run):
    answer = run(FILLING)
    assert (answer.verdict, answer.exit_code) == ("undecided", 3)
    assert "full at 100000" in answer.why
    assert [s.verdict for s in answer.suspects] == ["undecided"]


def test_all_rounds_are_run_and_counted_from_zero(run, monkeypatch):
    seen = []
    narrow(monkeypatch)
    told = []
    answer = soak.run(
        seen.append, rounds=25, warmup=3, own=(seen, told), progress=lambda *a: told.append(a)
    )
    assert seen == list(range(25))
    assert (answer.rounds, answer.warmup) == (25, 3)
    assert [phase for _, _, phase in told][:4] == ["warm-up"] * 3 + ["measuring"]


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_a_few_rounds_are_undecided(run, rounds):
    answer = run("def round(i): pass\n", rounds=rounds)
    assert (answer.verdict, answer.needed_rounds) == ("undecided", 40)


def test_a_round_that_raises_makes_the_run_a_failed_one(run):
    answer = run("def round(i):\n    if i == 7: raise ValueError('seven')\n")
    assert answer.exit_code == 4
    assert "ValueError: seven" in answer.errors[0]
    assert answer.text().startswith("FAILED")
    assert "round 7" in answer.why


def test_an_async_scenario_runs_on_one_loop_from_setup_to_teardown(monkeypatch):
    narrow(monkeypatch)
    loops = []

    async def note(*_):
        loops.append(id(asyncio.get_running_loop()))

    soak.run(note, rounds=3, setup=lambda: loops.append(0), teardown=note)
    assert len(loops) == 5
    assert len(set(loops[1:])) == 1


def test_a_plain_scenario_cannot_wait(monkeypatch):
    narrow(monkeypatch)

    class Wait:
        def __await__(self):
            yield

    with pytest.raises(ConfigError, match="make its functions async"):
        soak.run(lambda i: Wait(), rounds=3)


@pytest.mark.parametrize(("rounds", "warmup"), [(0, None), (5, 5), (5, -1)])
def test_rounds_that_cannot_work_are_refused(rounds, warmup):
    with pytest.raises(ConfigError):
        Soak(Scenario(print), rounds=rounds, warmup=warmup)


SUSPECT = Suspect(
    rank=1, verdict="growing", owner="app.plans.PlanService._memory_services",
    defined_in="app.plans.PlanService", path="app.main.SERVICE._memory_services", type="dict",
    holds="MemoryService ×271", len=271, per_round=1.0, bytes_per_round=4000.0,
    file="app/plans.py", line=455, line_source="trace", function="get_memory_service",
    echoes=("weakref.X",),
)  # fmt: skip


def test_the_words_of_an_answer_say_what_to_do():
    answer = Answer(verdict="growing", where="python", rounds=240, warmup=0, suspects=(SUSPECT,))
    assert answer.text().splitlines() == [
        "GROWING  +1.0 item/round, +3.91 KiB/round over 240 rounds  (python)",
        "  app.plans.PlanService._memory_services   dict, 271 items",
        "    reached by  app.main.SERVICE._memory_services",
        "    fed at      app/plans.py:455  get_memory_service",
        "    holds       MemoryService ×271",
        "    echoed by   weakref.X",
    ]
    bare = SUSPECT.but(file=None, holds="", echoes=(), per_round=2.0)
    static = SUSPECT.but(line_source="static")
    text = Answer(
        verdict="growing", where="native", rounds=9, warmup=0, suspects=(bare, static), why="so"
    ).text()
    assert "+2.0 items/round" in text
    assert "(static)" in text
    calm = Answer(verdict="bounded", where=None, rounds=9, warmup=1, rss_per_round=-5.0)
    assert calm.text() == "BOUNDED  -5 B/round resident over 8 rounds"
    leak = Answer(
        verdict="growing", where="native", rounds=9, warmup=1, memory={"malloc_used_per_round": 99}
    )
    assert "+99 B/round" in leak.text()


def test_the_record_has_the_fields_of_the_design():
    record = Answer(
        verdict="growing", where="python", rounds=9, warmup=1, suspects=(SUSPECT,)
    ).as_dict()
    wanted = "schema tool python errors verdict where rounds warmup bytes_per_round"
    wanted += " objects_per_round rss_per_round suspects needed"
    assert set(wanted.split()) <= record.keys()
    fields = "rank verdict owner defined_in path type holds len per_round bytes_per_round"
    fields += " file line line_source echoes"
    assert list(record["suspects"][0]) == fields.split()
    assert json.loads(json.dumps(record)) == record


def test_the_page_shows_the_answer_and_escapes_it():
    record = Answer(
        verdict="growing", where="python", rounds=9, warmup=1, suspects=(SUSPECT,)
    ).as_dict()
    shown = page(record, "a <b> c")
    assert "a &lt;b&gt; c" in shown
    assert "_memory_services" in shown
    assert "BoundedMap" in shown
    assert "<svg" not in shown  # nothing was measured
    assert "(static)" not in shown


def test_the_page_draws_memory_by_kind_and_the_length_of_each_suspect(run):
    answer = run("ROWS = []\ndef round(i):\n    ROWS.append([i])\n", rounds=30)
    assert answer.series["suspects"][0][-1] == answer.series["rounds"][-1]
    shown = page(answer.as_dict(), answer.text())
    assert shown.count("<svg") == 2
    assert shown.count("<polyline") == 6 + 1
    for kind in ("resident", "Python objects", "malloc in use", "malloc free", "not explained"):
        assert kind in shown
    assert not re.search(r"<script|https?://|src=", shown)
    assert "prefers-color-scheme: dark" in shown
    assert "width=device-width" in shown


@pytest.mark.parametrize(
    ("verdict", "changes", "words"),
    [
        ("bounded", {}, "Nothing to do"),
        ("undecided", {"needed_rounds": 600, "why": "a rise <1>"}, "--rounds 600"),
        ("undecided", {"why": "a rise <1>"}, "A rise &lt;1&gt;."),
        ("undecided", {"why": "a rise <1>"}, "--rounds 18"),
        ("growing", {"where": "native"}, "outside of Python objects"),
        ("growing", {"where": "native", "why": "malloc holds more"}, "malloc holds more"),
        ("undecided", {"errors": ("ValueError",)}, 'data-verdict="failed"'),
    ],
)
def test_the_page_says_what_to_do_next(verdict, changes, words):
    answer = Answer(**{"verdict": verdict, "where": None, "rounds": 9, "warmup": 1} | changes)
    assert words in page(answer.as_dict(), answer.text())


def test_samples_are_spread_over_the_run_and_dense_at_its_end():
    chosen = positions(30, 400, 0.2, 6.0)
    assert (chosen[0], chosen[-1]) == (30, 400)
    assert len(chosen) <= 40
    assert sum(at >= 363 for at in chosen) >= 6
    assert len({b - a for a, b in pairwise(chosen)}) > 3
    assert positions(1, 5, 1.0, 1.0) == [1, 2, 3, 4, 5]


def test_the_budget_of_rounds_is_shared_out():
    assert [default_warmup(n) for n in (1, 2, 50, 300, 5000)] == [0, 1, 5, 30, 100]
    assert [traced_rounds(n) for n in (5, 20, 100, 1000)] == [0, 1, 5, 10]


def test_a_scenario_file_is_imported_with_its_folder_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "beside_it.py").write_text("X = 5\n", encoding="utf-8")
    file = tmp_path / "scene_one.py"
    file.write_text("import beside_it\ndef round(i): return beside_it.X\n", encoding="utf-8")
    found = load(file)
    assert found.round(0) == 5
    assert not found.asynchronous
    assert found.setup() is None
    for name in ("scene_one", "beside_it"):
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("name", "text"), [("missing.py", None), ("no_round.py", "x = 1\n"), ("scene.txt", "x = 1\n")]
)
def test_a_file_that_is_no_scenario_is_refused(tmp_path, monkeypatch, name, text):
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / name
    if text:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="scenario"):
        load(file)
    sys.modules.pop("no_round", None)
