from __future__ import annotations

import asyncio

import pytest

from floodline import soak
from floodline.errors import ConfigError
from floodline.soak import Scenario, Soak
from soak_programs import CALM, CHAIN, FILLING, MANY, narrow


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
    assert "full at 100,000" in answer.why
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
    assert answer.errors[0].endswith("ValueError: seven")
    assert answer.text().startswith("FAILED  round(7) raised ValueError\n  Traceback")


@pytest.mark.parametrize("part", ["setup", "teardown"])
def test_a_failure_names_the_part_and_only_lines_of_the_scenario(run, part):
    answer = run(f"def round(i): pass\ndef {part}():\n    raise OSError('no disk')\n", rounds=2)
    assert answer.why == f"{part}() raised OSError"
    assert answer.errors[0].count("  File ") == 1


def test_an_error_without_a_line_of_the_scenario_is_told_alone(run):
    answer = run("setup = 3\ndef round(i): pass\n", rounds=2)
    assert answer.errors == ("TypeError: 'int' object is not callable",)


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
