"""The five systems of `examples/`: the same behaviour twice, found, named, fixed and proved."""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from example_systems import EXAMPLES, NAMES, load
from floodline.cli._demo.players import play_until_done
from floodline.memory import rss
from floodline.scan import Scan
from floodline.verify import load as load_claims
from floodline.verify import verify

VERSIONS = ("leaky", "bounded")
TESTS = Path(__file__).parents[1]
# what grows in each system, and the rule of scan that says so
OWNERS = {
    "plan_service": {"PlanService._memories": "FLD103", "PlanService._locks": "FLD103"},
    "session_worker": {
        "SessionWorker._sessions": "FLD102",
        "SessionWorker._queues": "FLD102",
        "Session.history": "FLD202",
    },
    "swarm_caches": {
        "AnalyticsCache._results": "FLD101",
        "StatusCache._status": "FLD201",
        "CookieCache._cookies": "FLD103",
        "MessageBatch._messages": "FLD103",
    },
    "stage_pipeline": {
        "Pipeline._snapshots": "FLD101",
        "Pipeline._conversation": "FLD101",
        "Pipeline._outputs": "FLD101",
        "Pipeline._events": "FLD202",
        "Tracker.samples": "FLD101",
    },
    "plugin_host": {"Plugin._tasks": "FLD102"},
}
NAMED = ("PlanService._memories", "SessionWorker._sessions", "Plugin._tasks", "Pipeline._snapshots",
         "AnalyticsCache._results", "StatusCache._status", "CookieCache._cookies",
         "MessageBatch._messages")  # fmt: skip


@pytest.fixture(params=VERSIONS)
def version(request) -> str:
    return str(request.param)


@pytest.fixture
def worker(version, tmp_path, monkeypatch) -> Any:
    monkeypatch.setenv("WORKER_STORE", f"sqlite:///{tmp_path}/worker.db")
    return load("session_worker", version).SessionWorker()


def test_plans_behave_the_same(version):
    plans = load("plan_service", version).PlanService()
    assert plans.create_plan("alice", "cross") == 1
    assert plans.run_step("alice", "pack") == 2
    with pytest.raises(ValueError, match="words"):
        plans.run_step("bob", "")
    assert plans.review("bob") == ["step: "]
    assert plans.live() == 2
    plans.clear_memory("alice")
    plans.clear_memory("alice")
    plans.clear_memory("nobody")
    assert (plans.live(), plans.review("alice")) == (1, [])


def test_workers_behave_the_same(worker):
    async def use() -> None:
        for provider in ("anthropic", "openai", "gemini"):
            assert await worker.ask(provider, "how high is it?", provider) == "You said 4 words."
            assert len(await worker.sent(provider)) == 2
        await worker.enqueue("openai", "and now")
        assert await worker.work("openai") == ["You said 2 words."]
        assert await worker.work("openai") == []
        words = [word async for word in worker.stream("openai", "why")]
        assert words == ["You", "said", "1", "words."]
        assert worker.live() == 3
        await worker.delete("gemini")
        assert await worker.sent("gemini") == []
        await worker.complete("openai")
        assert len(await worker.sent("openai")) == 6  # done, and not lost
        await worker.shutdown()
        assert worker.live() == 0

    asyncio.run(use())


def test_caches_behave_the_same(version):
    caches = load("swarm_caches", version)
    for cache in (caches.AnalyticsCache(), caches.StatusCache(), caches.CookieCache()):
        cache.put("a", "first")
        cache.put("a", "second")
        assert (cache.get("a"), cache.get("b"), len(cache)) == ("second", None, 1)
    sent: list[str] = []
    batch = caches.MessageBatch(sent.extend)
    batch.add("hello")
    assert (len(batch), sent) == (1, [])
    batch.flush()
    assert (len(batch), sent) == (0, ["hello"])
    metrics = caches.MetricsHistory()
    metrics.add(range(1500))
    assert (len(metrics), metrics.latest()) == (1000, 1499)


def test_pipelines_behave_the_same(version):
    pipeline = load("stage_pipeline", version).Pipeline()
    reply = asyncio.run(pipeline.turn("the river"))
    assert reply == "The best page begins with 'page about the river'."
    assert pipeline.last_output()["reply"] == reply
    with pytest.raises(ValueError, match="flood"):
        asyncio.run(pipeline.turn("a flood"))
    for n in range(3):
        pipeline.emit(f"event {n}")
    assert pipeline.latest(2) == ["event 1", "event 2"]
    assert pipeline.kept() == 6


def test_hosts_behave_the_same(version):
    system = load("plugin_host", version)
    bus = system.EventBus(lost=0.0)
    host = system.PluginHost(bus)
    assert [host.work("alice", "look"), host.work("alice", "report")] == [1, 2]
    assert host.work("bob", "look") == 1
    assert host.entries() == 2 * system.PLUGINS
    bus.emit("session.deleted", "alice")
    bus.emit("session.deleted", "alice")
    bus.emit("session.deleted", "nobody")
    assert host.entries() == system.PLUGINS
    assert host.work("alice", "again") == 1


@pytest.mark.parametrize("name", NAMES)
def test_scan_finds_each_leak_and_nothing_in_the_fixed_version(name):
    found = Scan([EXAMPLES / name / "leaky.py"]).report().findings
    rules = {each.symbol.partition("leaky.")[2]: each.rule for each in found}
    assert {owner: rules.get(owner) for owner in OWNERS[name]} == OWNERS[name]
    fixed = Scan([EXAMPLES / name / "bounded.py"]).report().findings
    assert [each.symbol for each in fixed if each.confidence != "low"] == []


def test_four_announced_fixes_are_refuted_and_all_are_proved_in_the_fixed_version():
    folder = EXAMPLES / "swarm_caches"
    announced = [str(verify(claim).verdict) for claim in load_claims(folder / "announced.toml")]
    assert announced == ["refuted"] * 4 + ["proved"]
    fixed = [str(verify(claim).verdict) for claim in load_claims(folder / "fixed.toml")]
    assert fixed == ["proved"] * 5


def test_soak_names_what_grows_and_calls_the_fixed_versions_bounded(tmp_path, monkeypatch):
    """All five in one soak, as the demo runs them; `nox -s systems` soaks them one by one."""
    lines = ("import sys", f"sys.path.insert(0, {str(TESTS)!r})", "from example_systems import *")
    (tmp_path / "scenario.py").write_text("\n".join(lines), encoding="utf-8")

    for name in [name for name in os.environ if name.startswith("COVERAGE")]:
        monkeypatch.delenv(name)  # a measured walk takes several times as long

    class Nothing:
        def draw(self, players: object) -> None:
            pass

    leaky, bounded = play_until_done(tmp_path, 30, Nothing())
    assert leaky.record is not None
    assert bounded.record is not None
    named = {s["owner"].removeprefix("leaky."): s for s in leaky.record["answer"]["suspects"]}
    assert (leaky.verdict, [owner for owner in NAMED if owner not in named]) == ("growing", [])
    memories = named["PlanService._memories"]
    assert Path(str(memories["file"])).parts[-2:] == ("plan_service", "leaky.py")
    source = (EXAMPLES / "plan_service" / "leaky.py").read_text(encoding="utf-8").splitlines()
    assert "self._memories[session_id] =" in source[int(memories["line"] or 0) - 1]
    assert bounded.verdict == "bounded", bounded.record["text"]
    assert leaky.curve
    assert leaky.done == 30


def test_a_thousand_turns_stay_under_five_megabytes():
    pipeline = load("stage_pipeline", "bounded").Pipeline()

    async def take(turns: int) -> None:
        for turn in range(turns):
            await pipeline.turn(f"turn {turn}: " + "what does the gauge say; " * 10)

    asyncio.run(take(50))
    before = rss()
    asyncio.run(take(1000))
    assert rss() - before < 5 << 20


@pytest.mark.long
@pytest.mark.parametrize("kind", ["baseline", "chaos"])
@pytest.mark.parametrize("name", NAMES)
def test_each_system_is_growing_and_then_bounded(name, kind, version, tmp_path):
    if kind != "baseline" and name != "stage_pipeline":
        pytest.skip("only the pipeline has other kinds of rounds")
    out = tmp_path / "answer.json"
    command = [sys.executable, "-m", "floodline", "soak", str(EXAMPLES / name / "scenario.py")]
    subprocess.run(
        [*command, "--rounds=300", f"--json={out}"],
        env={**os.environ, "VERSION": version, "PIPELINE": kind},
        check=False,
    )
    answer = json.loads(out.read_text(encoding="utf-8"))
    assert answer["verdict"] == {"leaky": "growing", "bounded": "bounded"}[version]
    named = {each["owner"].removeprefix("leaky.") for each in answer["suspects"]}
    assert not named or named & OWNERS[name].keys()


@pytest.mark.long
def test_the_claims_hold_when_the_code_is_run():
    folder = EXAMPLES / "swarm_caches"
    verdicts = {
        file: [str(verify(claim, run=True).verdict) for claim in load_claims(folder / file)]
        for file in ("announced.toml", "fixed.toml")
    }
    assert verdicts == {
        "announced.toml": ["refuted"] * 4 + ["proved"],
        "fixed.toml": ["proved"] * 5,
    }


@pytest.mark.long
def test_run_names_what_grows(tmp_path):
    report = tmp_path / "report.json"
    run = [sys.executable, "-m", "floodline", "run", "--no-dashboard", f"--report={report}"]
    play = [str(EXAMPLES / "play.py"), "plan_service", "leaky", "--seconds", "60"]
    subprocess.run([*run, f"--record={tmp_path / 'play.rec'}", *play], check=True)
    answer = json.loads(report.read_text(encoding="utf-8"))
    assert answer["verdict"] == "growing"
    assert answer["suspects"][0]["owner"] == "leaky.PlanService._memories"


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_on_the_page_are_those_of_the_program(name):
    page = (TESTS.parent / "docs" / "examples" / f"{name}.md").read_text(encoding="utf-8")
    source = (EXAMPLES / name / "leaky.py").read_text(encoding="utf-8").splitlines()
    shown = re.findall(
        r"^  leaky\.\w+\.(\w+) .*?^    fed at +\S+/leaky\.py:(\d+)", page, re.MULTILINE | re.DOTALL
    )
    assert shown
    assert [attribute for attribute, line in shown if attribute not in source[int(line) - 1]] == []
    for line in difflib.ndiff(source, (EXAMPLES / name / "bounded.py").read_text().splitlines()):
        if line.startswith("+ ") and line[2:].strip():
            assert f"\n+{line[2:]}\n" in page


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_the_test_kit_tells_them_apart(version):
    program = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from example_systems import load
from floodline.testing import SessionKit
plans = load("plan_service", {version!r}).PlanService()
kit = SessionKit(lambda id: plans.create_plan(id, "cross"), work=plans.review, live=plans.live)
kit.abandon(400)
kit.check_flat(100)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) is (version == "bounded"), done.stderr
    assert ("PlanService._memories" in done.stderr) is (version == "leaky")
